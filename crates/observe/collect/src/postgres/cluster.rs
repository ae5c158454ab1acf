//! The files of a cluster by what they hold, asked of its server for those that are really seen.
//!
//! A name is asked for once it is wanted, and again now and then: a table may be renamed, and what is not committed is
//! not there for us yet. A name that was told stays when the relation is dropped or rewritten: the old file is still
//! what it was.

use super::files::{RelationFile, Told, Wanted, other};
use super::worker::{Ask, WeakWorker};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One server's files on this machine, and one database whose relations it can name.
pub(crate) struct Cluster {
    data: PathBuf,
    /// Host, port and database.
    connection: String,
    state: Mutex<State>,
}

struct State {
    worker: WeakWorker,
    told: Told,
    told_at: Option<Instant>,
    relations: HashMap<String, Relation>,
    /// It did not answer: left alone until then.
    rests_until: Option<Instant>,
}

/// What is known of a relation's files.
#[derive(Clone, Debug)]
struct Relation {
    name: Option<String>,
    ask_at: Instant,
    /// How often it was not there.
    missed: u32,
}

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub name: String,
    /// By its name, not by its number only.
    pub is_named: bool,
}

/// Databases and tablespaces, and names that were told, are asked for again after so long.
const ASK_AGAIN: Duration = Duration::from_secs(60);
/// A file without a name is soon asked for again, and then less and less often.
const MISSED_FIRST: Duration = Duration::from_millis(500);
const MISSED_LAST: Duration = Duration::from_secs(15);
/// Whoever asks waits no longer, and not often.
const PATIENCE: Duration = Duration::from_secs(1);
const REST: Duration = Duration::from_secs(10);
/// So many files at a time.
const WANTED_MAX: usize = 1000;
/// So many relations are remembered, whether they are still seen or not.
const RELATIONS_MAX: usize = 50_000;

impl Cluster {
    pub(super) fn new(data: PathBuf, connection: String, worker: WeakWorker) -> Cluster {
        let state = State {
            worker,
            told: Told::default(),
            told_at: None,
            relations: HashMap::new(),
            rests_until: None,
        };
        Cluster { data, connection, state: Mutex::new(state) }
    }

    /// The same database of the same cluster.
    pub fn is_same(&self, other: &Cluster) -> bool {
        (&self.data, &self.connection) == (&other.data, &other.connection)
    }

    /// Asks by the connection of another one, which is the same.
    pub fn take_over(&self, other: &Cluster) {
        let worker = other.state().worker.clone();
        let mut state = self.state();
        (state.worker, state.rests_until) = (worker, None);
    }

    /// Asks for what is not known of these files, where it is time to.
    pub fn ask(&self, paths: &[&Path], now: Instant) {
        let mut state = self.state();
        if state.rests_until.is_some_and(|until| now < until) {
            return;
        }
        if state.told_at.is_none_or(|at| now >= at + ASK_AGAIN) && !paths.is_empty() {
            state.ask(Wanted::default(), &[], now);
        }
        let files: Vec<RelationFile> = paths.iter().filter_map(|path| self.relation(&state, path)).collect();
        state.forget_all_but(&files);
        let due = |file: &&RelationFile| {
            let mine = file.database.is_none() || file.database == state.told.connected;
            mine && state.relations.get(&file.path).is_none_or(|known| now >= known.ask_at)
        };
        let mut due: Vec<&RelationFile> = files.iter().filter(due).collect();
        due.sort_by_key(|file| state.relations.get(&file.path).is_some_and(|known| known.name.is_some()));
        due.truncate(WANTED_MAX);
        if !due.is_empty() {
            let mut wanted = Wanted {
                nodes: due.iter().map(|file| file.node).collect(),
                tablespaces: due.iter().filter_map(|file| file.tablespace).collect(),
            };
            for numbers in [&mut wanted.nodes, &mut wanted.tablespaces] {
                numbers.sort_unstable();
                numbers.dedup();
            }
            let due: Vec<String> = due.into_iter().map(|file| file.path.clone()).collect();
            state.ask(wanted, &due, now);
        }
    }

    /// What is in a file; `None` of files of others.
    pub fn object(&self, path: &Path) -> Option<Object> {
        let state = self.state();
        let Some(file) = self.relation(&state, path) else {
            let name = other(&self.below(&state, path)?)?;
            return Some(Object { name, is_named: true });
        };
        let name = state.relations.get(&file.path).and_then(|known| known.name.as_deref());
        let fork = file.fork.suffix();
        let database = file.database.map(|number| {
            state.told.databases.get(&number).cloned().unwrap_or_else(|| format!("database {number}"))
        });
        let object = match (database, name) {
            (Some(database), Some(name)) => format!("{database}.{name}{fork}"),
            (None, Some(name)) => format!("{name}{fork}"),
            (Some(database), None) => format!("{database}, relfilenode {}{fork}", file.node),
            (None, None) => format!("relfilenode {}{fork}", file.node),
        };
        Some(Object { name: object, is_named: name.is_some() })
    }

    fn relation(&self, state: &State, path: &Path) -> Option<RelationFile> {
        RelationFile::of(&self.below(state, path)?)
    }

    /// The name below the data directory.
    fn below(&self, state: &State, path: &Path) -> Option<PathBuf> {
        let text = path.to_str()?;
        let path = Path::new(text.strip_suffix(" (deleted)").unwrap_or(text));
        if let Ok(below) = path.strip_prefix(&self.data) {
            return Some(below.to_owned());
        }
        let mut tablespaces = state.told.tablespaces.iter();
        tablespaces.find_map(|(place, number)| {
            let below = path.strip_prefix(place).ok()?;
            Some(Path::new("pg_tblspc").join(number.to_string()).join(below))
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Asks, and takes over what is told; `due` are the relations in question.
    fn ask(&mut self, wanted: Wanted, due: &[String], now: Instant) {
        let Some(worker) = self.worker.upgrade() else { return };
        let Ok(told) = worker.ask_within(PATIENCE, |to| Ask::Files(wanted, to)) else {
            self.rests_until = Some(now + REST);
            return;
        };
        self.take(told, due, now);
    }

    fn take(&mut self, mut told: Told, due: &[String], now: Instant) {
        self.told_at = Some(now);
        for path in due {
            let name = told.names.remove(path);
            let relation = match self.relations.entry(path.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(Relation { name: None, ask_at: now, missed: 0 }),
            };
            let wait = match (&name, &relation.name) {
                (None, None) => MISSED_FIRST.saturating_mul(1 << relation.missed.min(10)).min(MISSED_LAST),
                _ => ASK_AGAIN,
            };
            relation.missed = if name.is_some() { 0 } else { relation.missed + 1 };
            relation.name = name.or(relation.name.take());
            relation.ask_at = now + wait;
        }
        self.told.connected = told.connected;
        self.told.tablespaces = told.tablespaces;
        // Those that were dropped are remembered.
        self.told.databases.extend(told.databases);
    }

    fn forget_all_but(&mut self, files: &[RelationFile]) {
        if self.relations.len() > RELATIONS_MAX {
            let seen: std::collections::HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
            self.relations.retain(|path, _| seen.contains(path.as_str()));
        }
    }
}
