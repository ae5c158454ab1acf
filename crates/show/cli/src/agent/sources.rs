//! The databases that are watched: those that are named, else those that are found on this host.

use crate::service_log::log;
use ::agent::WatchedSource;
use collect::discovery::Engine;
use discover::{Database, Options, Scan, Scanner};
use std::collections::BTreeSet;
use terminal::{Failure, SourceName};

/// Where the list of databases comes from.
pub enum Sources {
    /// The configuration.
    Named {
        /// All of them.
        watched: Vec<WatchedSource>,
    },
    /// This host.
    Found {
        scanner: Box<Scanner>,
        /// At the last search.
        last: Vec<WatchedSource>,
        /// All that was found then, for the page.
        databases: Vec<page::Database>,
        /// Messages about databases that cannot be watched: each is logged once.
        reported: BTreeSet<String>,
    },
}

/// Messages that are remembered, at most: programs come and go.
const REPORTED_MAX: usize = 1_000;

impl Sources {
    /// Those that are named; where none is, those of this host.
    ///
    /// # Errors
    /// The processes of this host cannot be listed.
    pub fn new(named: &[SourceName]) -> Result<Sources, Failure> {
        if !named.is_empty() {
            let watched = |argument: &SourceName| WatchedSource {
                identity: argument.to_string(),
                argument: argument.clone(),
            };
            return Ok(Sources::Named { watched: named.iter().map(watched).collect() });
        }
        let scanner = Scanner::new(Options::default()).map_err(|error| {
            Failure::new(format_args!("cannot list the processes of this host: {error}"))
                .with_remedy("mount /proc, or name the databases with --source")
        })?;
        Ok(Sources::Found {
            scanner: Box::new(scanner),
            last: Vec::new(),
            databases: Vec::new(),
            reported: BTreeSet::new(),
        })
    }

    /// The databases that are there now: called every 30 s.
    pub fn there(&mut self) -> Vec<WatchedSource> {
        match self {
            Sources::Named { watched } => watched.clone(),
            Sources::Found { scanner, last, databases, reported } => {
                match scanner.scan() {
                    Ok(scan) => {
                        *databases = shown(&scan);
                        *last = watched(&scan, reported);
                    }
                    // Those of the last search may still be there.
                    Err(error) => log(4, &format!("cannot list the processes of this host: {error}")),
                }
                last.clone()
            }
        }
    }
}

impl Sources {
    /// The databases of the last search, or those that are named, for the page.
    pub fn databases(&self) -> Vec<page::Database> {
        match self {
            Sources::Named { watched } => watched.iter().map(named).collect(),
            Sources::Found { databases, .. } => databases.clone(),
        }
    }
}

fn named(source: &WatchedSource) -> page::Database {
    let identity = source.identity.as_str();
    let (engine, name) = identity.split_once(':').unwrap_or((identity, identity));
    page::Database {
        name: if name.is_empty() { engine } else { name }.to_owned(),
        engine: engine.to_owned(),
        pid: None,
        source: Some(identity.to_owned()),
        lacks: Vec::new(),
    }
}

/// All databases, also those without a source that works, with what each lacks.
fn shown(scan: &Scan) -> Vec<page::Database> {
    let one = |database: &Database| {
        let source = source_of(database).map(|source| source.identity);
        let refused = source.as_ref().err().cloned();
        page::Database {
            name: database.name.clone(),
            engine: database.engine.name().to_owned(),
            pid: Some(database.pid),
            source: source.ok(),
            lacks: refused.into_iter().chain(database.lacks.iter().cloned()).collect(),
        }
    };
    scan.databases.iter().filter(|one| one.engine != Engine::Program).map(one).collect()
}

/// The databases with a source that works, each once. Other programs with much I/O are named as neighbours.
fn watched(scan: &Scan, reported: &mut BTreeSet<String>) -> Vec<WatchedSource> {
    let mut found: Vec<WatchedSource> = Vec::new();
    for database in scan.databases.iter().filter(|one| one.engine != Engine::Program) {
        match source_of(database) {
            Ok(one) if found.iter().any(|known| known.identity == one.identity) => {}
            Ok(one) => found.push(one),
            Err(why) => {
                if reported.len() < REPORTED_MAX && reported.insert(why.clone()) {
                    log(4, &why);
                }
            }
        }
    }
    found
}

fn source_of(database: &Database) -> Result<WatchedSource, String> {
    let name = format!("{} {} (pid {})", database.engine.name(), database.name, database.pid);
    let Some(source) = &database.source else {
        let why = database.refused.first().map_or("no source works", |refusal| refusal.error.as_str());
        let remedy = database.refused.first().and_then(|refusal| refusal.remedy.as_deref());
        let remedy = remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default();
        return Err(format!("{name} cannot be watched: {why}{remedy}"));
    };
    let argument = collect::parse_source(source).map_err(|why| format!("{name} cannot be watched: {why}"))?;
    Ok(WatchedSource { identity: argument.to_string(), argument })
}
