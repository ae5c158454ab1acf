//! Assigns the kernel's keys to rows by the names of their files and processes. Each layer of each process is an instance; files
//! of equal name are one row.

use super::kept::Kept;
use super::layer::Layer;
use super::names::Names;
use super::program::{Counted, Programs};
use super::rows::{File, Row, Rows};
use super::tables::{CompactCounts, FileId, Key, command_text};
use host::Mounts;
use rustc_hash::FxHashMap;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Makes rows, and adds new keys to them.
pub(super) struct RowBuilder<'a> {
    pub programs: &'a Programs,
    pub names: &'a mut Names,
    pub kept: &'a mut Kept,
    pub mounts: &'a Mounts,
    /// All running processes.
    pub running: &'a HashSet<u32>,
}

impl RowBuilder<'_> {
    /// The rows of all counters.
    pub fn rows(mut self, counted: &Counted) -> Rows {
        let mut rows = Rows::default();
        self.extend(&mut rows, counted);
        rows.mark();
        rows
    }

    /// Adds keys that have no row yet.
    pub fn extend(&mut self, rows: &mut Rows, counted: &Counted) {
        let placed = self.place(counted);
        rows.changes |= placed.iter().any(|placed| placed.changes);
        self.sum(rows, placed);
        let who = counted.keys().filter(|key| key.tgid != 0).map(|key| (key.tgid, key.started));
        rows.who.extend(who);
        let running = rows.who.iter().map(|(tgid, _)| *tgid).filter(|tgid| self.running.contains(tgid));
        rows.processes = running.collect();
        rows.processes.sort_unstable();
        rows.processes.dedup();
    }

    /// Assigns the counters of each key to a row.
    fn place<'c>(&mut self, counted: &'c Counted) -> Vec<Placed<'c>> {
        let users = users(counted, self.running);
        // Of each process, and whether the next snapshot shows another one.
        let mut commands: HashMap<(u32, u32), (String, bool)> = HashMap::new();
        let mut instances: HashMap<(Layer, u32, u32), Arc<str>> = HashMap::new();
        // Each file is looked up once, however many keys it has.
        let mut files: FxHashMap<FileId, Arc<File>> = FxHashMap::default();
        self.names.begin_snapshot();
        let mut placed = Vec::with_capacity(counted.len());
        for (key, counts) in counted {
            let id = key.file;
            let file = files.entry(id).or_insert_with(|| {
                let of_file = users.get(&id).map_or(&[][..], Vec::as_slice);
                Arc::new(File::new(id, self.names.name(id, of_file, self.mounts), self.mounts))
            });
            let layer = Layer::from_kind(key.kind);
            let who = (key.tgid, key.started);
            let (process, changes) =
                commands.entry(who).or_insert_with(|| self.names.command(who, command(self.programs, who)));
            let instance = instances
                .entry((layer, who.0, who.1))
                .or_insert_with(|| layer.instance(key.tgid, process).into());
            let row = Row::id_of(instance, &file.path);
            let changes = file.changes || (*changes && layer != Layer::Block);
            self.kept.place(key, row, counts, changes);
            let (instance, file) = (Arc::clone(instance), Arc::clone(file));
            placed.push(Placed { key, counts, file, instance, row, changes });
        }
        placed
    }

    /// Adds the counters of each key to its row.
    fn sum(&mut self, rows: &mut Rows, placed: Vec<Placed<'_>>) {
        for Placed { key, counts, file, instance, row: id, .. } in placed {
            let began = self.kept.row(key, id);
            let new = || Row::new(id, instance, Layer::from_kind(key.kind), began, file.clone());
            rows.insert(*key, id, new).include(key, &file, &self.kept.in_row(key, counts));
        }
    }
}

/// The counters of a key, and the row that shows them.
struct Placed<'c> {
    key: &'c Key,
    counts: &'c CompactCounts,
    file: Arc<File>,
    instance: Arc<str>,
    /// The id of the row.
    row: u64,
    /// The next snapshot shows another name.
    changes: bool,
}

/// Number of processes in which a file is searched that is no longer at its path.
const USERS_MAX: usize = 64;

/// The running processes that used each file.
fn users(counted: &Counted, running: &HashSet<u32>) -> FxHashMap<FileId, Vec<u32>> {
    let mut users: FxHashMap<FileId, Vec<u32>> = FxHashMap::default();
    for key in counted.keys().filter(|key| running.contains(&key.tgid)) {
        let of_file = users.entry(key.file).or_default();
        if of_file.len() < USERS_MAX && !of_file.contains(&key.tgid) {
            of_file.push(key.tgid);
        }
    }
    users
}

/// The name of the program that a process runs or last ran, where the kernel has it.
fn command(programs: &Programs, (tgid, started): (u32, u32)) -> Option<String> {
    programs.process(tgid, started).map(|process| command_text(&process.comm))
}
