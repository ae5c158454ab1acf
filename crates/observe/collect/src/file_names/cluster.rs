//! The relations of one PostgreSQL cluster by their files. Only files that are seen are looked up.
//!
//! A name is looked up when it is needed, and again later: a table may be renamed, and an uncommitted one is not visible
//! yet. The name stays when the relation is dropped or rewritten: it is still what the old file held.

use super::relation_file::{FileLookup, LookupResult, RelationFile, describe_other};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Asks the server, for at most a second; `None` without an answer.
pub(crate) type Lookup = Box<dyn Fn(FileLookup) -> Option<LookupResult> + Send>;

/// The files of one server on this machine, and the one database whose relations it can name.
pub(crate) struct Cluster {
    data: PathBuf,
    /// Host, port and database.
    connection: String,
    state: Mutex<State>,
}

struct State {
    lookup: Lookup,
    known: LookupResult,
    known_since: Option<Instant>,
    relations: HashMap<String, Relation>,
    /// It did not answer: no lookup until then.
    rests_until: Option<Instant>,
}

/// Known facts of a relation's files.
#[derive(Clone, Debug)]
struct Relation {
    name: Option<String>,
    next_lookup: Instant,
    /// Lookups in a row that did not find it.
    misses: u32,
}

/// The object that a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub name: String,
    /// The relation's name is known, not only its number.
    pub is_named: bool,
}

/// How long names, databases and tablespaces are used before they are looked up again.
const NAME_LIFETIME: Duration = Duration::from_secs(60);
/// A file without a name is looked up again soon, then less and less often.
const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_LAST: Duration = Duration::from_secs(15);
/// After a lookup without an answer.
const REST: Duration = Duration::from_secs(10);
/// Files of one lookup.
const FILES_MAX: usize = 1000;
/// Relations that are remembered although their files are no longer seen.
const RELATIONS_MAX: usize = 50_000;

impl Cluster {
    pub fn new(data: PathBuf, connection: String, lookup: Lookup) -> Cluster {
        let state = State {
            lookup,
            known: LookupResult::default(),
            known_since: None,
            relations: HashMap::new(),
            rests_until: None,
        };
        Cluster { data, connection, state: Mutex::new(state) }
    }

    /// Whether both are one database of one cluster.
    pub fn is_same(&self, other: &Cluster) -> bool {
        (&self.data, &self.connection) == (&other.data, &other.connection)
    }

    /// Uses the connection of another one, which is the same.
    pub fn reconnect(&self, other: Cluster) {
        let other = other.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.state();
        (state.lookup, state.rests_until) = (other.lookup, None);
    }

    /// Looks up the files whose names are unknown or old.
    pub fn look_up(&self, paths: &[&Path], now: Instant) {
        let mut state = self.state();
        if state.rests_until.is_some_and(|until| now < until) {
            return;
        }
        if state.known_since.is_none_or(|since| now >= since + NAME_LIFETIME) && !paths.is_empty() {
            state.look_up(FileLookup::default(), &[], now);
        }
        let files: Vec<RelationFile> = paths.iter().filter_map(|path| self.relation(&state, path)).collect();
        state.forget_all_but(&files);
        let is_due = |file: &&RelationFile| {
            let can_name = file.database.is_none() || file.database == state.known.connected;
            can_name && state.relations.get(&file.path).is_none_or(|known| now >= known.next_lookup)
        };
        let mut due: Vec<&RelationFile> = files.iter().filter(is_due).collect();
        due.sort_by_key(|file| state.relations.get(&file.path).is_some_and(|known| known.name.is_some()));
        due.truncate(FILES_MAX);
        if !due.is_empty() {
            let mut lookup = FileLookup {
                nodes: due.iter().map(|file| file.node).collect(),
                tablespaces: due.iter().filter_map(|file| file.tablespace).collect(),
            };
            for numbers in [&mut lookup.nodes, &mut lookup.tablespaces] {
                numbers.sort_unstable();
                numbers.dedup();
            }
            let due: Vec<String> = due.into_iter().map(|file| file.path.clone()).collect();
            state.look_up(lookup, &due, now);
        }
    }

    /// The object that a file holds; `None` if it is not of this cluster.
    pub fn object(&self, path: &Path) -> Option<Object> {
        let state = self.state();
        let Some(file) = self.relation(&state, path) else {
            let name = describe_other(&self.below_data(&state, path)?)?;
            return Some(Object { name, is_named: true });
        };
        let name = state.relations.get(&file.path).and_then(|known| known.name.as_deref());
        let fork = file.fork;
        let database = file.database.map(|number| {
            state.known.databases.get(&number).cloned().unwrap_or_else(|| format!("database {number}"))
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
        RelationFile::parse(&self.below_data(state, path)?)
    }

    /// The path below the data directory.
    fn below_data(&self, state: &State, path: &Path) -> Option<PathBuf> {
        let text = path.to_str()?;
        let path = Path::new(text.strip_suffix(" (deleted)").unwrap_or(text));
        if let Ok(below) = path.strip_prefix(&self.data) {
            return Some(below.to_owned());
        }
        let mut tablespaces = state.known.tablespaces.iter();
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
    /// Asks the server and keeps the answer; `due` are the relations of the lookup.
    fn look_up(&mut self, lookup: FileLookup, due: &[String], now: Instant) {
        match (self.lookup)(lookup) {
            Some(result) => self.keep(result, due, now),
            None => self.rests_until = Some(now + REST),
        }
    }

    fn keep(&mut self, mut result: LookupResult, due: &[String], now: Instant) {
        self.known_since = Some(now);
        for path in due {
            let name = result.names.remove(path);
            let relation = match self.relations.entry(path.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(Relation { name: None, next_lookup: now, misses: 0 }),
            };
            let wait = match (&name, &relation.name) {
                (None, None) => RETRY_FIRST.saturating_mul(1 << relation.misses.min(10)).min(RETRY_LAST),
                _ => NAME_LIFETIME,
            };
            relation.misses = if name.is_some() { 0 } else { relation.misses + 1 };
            relation.name = name.or(relation.name.take());
            relation.next_lookup = now + wait;
        }
        self.known.connected = result.connected;
        self.known.tablespaces = result.tablespaces;
        // Dropped databases stay.
        self.known.databases.extend(result.databases);
    }

    fn forget_all_but(&mut self, files: &[RelationFile]) {
        if self.relations.len() > RELATIONS_MAX {
            let seen: std::collections::HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
            self.relations.retain(|path, _| seen.contains(path.as_str()));
        }
    }
}
