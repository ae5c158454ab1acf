//! Makes samples from the counters of the kernel's keys. Each layer of each process is an instance; files of equal name
//! are one sample.

use super::classify::{Class, classify};
use super::kept::Kept;
use super::losses::Losses;
use super::names::{KnownFile, Names};
use super::program::{Counted, Programs};
use super::tables::{Counts, FileId, Key, SmallCounts, command_text, kind};
use crate::volume::mount_point;
use filestats::{
    Cache, Counters, Epoch, Figure, FileIdentity, FileKind, Latencies, Meaning, Ops, Reason, Sample,
};
use host::Mounts;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

/// Everything that is needed to make rows of counters.
pub(super) struct Samples<'a> {
    pub programs: &'a Programs,
    pub names: &'a mut Names,
    pub kept: &'a mut Kept,
    pub mounts: &'a Mounts,
    /// All running processes.
    pub running: &'a HashSet<u32>,
}

/// The rows of a count: a row becomes a sample. Later counts can be made into the same rows ([`Rows::begin`]).
#[derive(Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    /// The place of each row in `rows`.
    by_id: FxHashMap<u64, usize>,
    /// The row of each key, and its column.
    of_key: FxHashMap<Key, (usize, usize)>,
    /// Number and start of each process that was counted.
    pub who: HashSet<(u32, u32)>,
    /// The running processes in them, sorted.
    pub processes: Vec<u32>,
    /// The next snapshot shows another name of a file or process.
    pub changes: bool,
}

/// What a reader of rows missed since it last read them.
#[derive(Clone, Debug, Default)]
pub(super) struct Missing {
    /// Requests of processes, of unknown files.
    pub requests: bool,
    /// Block I/O.
    pub block: bool,
    /// Devices of which the programs missed I/Os.
    pub devices: HashSet<FileId>,
}

/// The layer at which I/Os are counted. The instance of a file names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Requests of a process.
    Requests,
    /// Reads of a process that missed the page cache.
    Misses,
    /// Page faults of a process on mapped files that had to read.
    Faults,
    /// Requests to block devices.
    Block,
}

const ALL: &str = "all processes of the source";
const MISSES: &str = " page-cache misses";
const FAULTS: &str = " page faults";
const BLOCK: &str = "block layer";

impl Rows {
    pub fn iter(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    pub fn get(&self, index: usize) -> Option<&Row> {
        self.rows.get(index)
    }

    /// The row with that id.
    pub fn by_id(&self, id: u64) -> Option<&Row> {
        self.by_id.get(&id).and_then(|index| self.rows.get(*index))
    }

    /// The samples of the rows with these indexes, in the order of their names. `run` distinguishes boot and load.
    pub fn samples(&self, indexes: impl Iterator<Item = usize>, run: &str, missing: &Missing) -> Vec<Sample> {
        let mut rows: Vec<&Row> = indexes.filter_map(|index| self.rows.get(index)).collect();
        rows.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        rows.into_iter().map(|row| row.sample(run, missing)).collect()
    }

    /// All of them.
    pub fn all(&self, run: &str, missing: &Missing) -> Vec<Sample> {
        self.samples(0..self.rows.len(), run, missing)
    }

    /// Begins another count into the same rows: the first counts that are added to a column replace those that it has.
    pub fn begin(&mut self) {
        self.rows.iter_mut().for_each(|row| row.counted = [false; COLUMNS]);
    }

    /// Adds the counts of a key to its row; `false` where it has none yet.
    pub fn add(&mut self, key: &Key, counts: &Counts) -> bool {
        let Some((index, column)) = self.of_key.get(key) else { return false };
        self.rows[*index].add(*column, counts);
        true
    }

    /// Adds counts that left the kernel.
    pub fn add_small(&mut self, key: &Key, counts: &SmallCounts) {
        if let Some((index, column)) = self.of_key.get(key) {
            self.rows[*index].add_small(*column, counts);
        }
    }

    /// Takes what a key counted for another row from its row. Its counts were added before.
    pub fn subtract(&mut self, key: &Key, base: &SmallCounts) {
        let place = self.of_key.get(key);
        let row = place.and_then(|(index, column)| self.rows[*index].counts[*column].as_mut());
        row.into_iter().for_each(|counts| *counts = counts.since(base));
    }
}

impl Missing {
    /// Adds what was lost in one count.
    pub fn add(&mut self, losses: &Losses, devices: &HashSet<FileId>) {
        self.requests |= losses.requests;
        self.block |= losses.block;
        self.devices.extend(devices);
    }
}

impl Samples<'_> {
    /// The rows of all counters.
    pub fn rows(mut self, counted: &Counted) -> Rows {
        let mut rows = Rows::default();
        self.extend(&mut rows, counted);
        rows.rows.iter_mut().for_each(|row| row.before_ns = row.ns());
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
        let mut processes: HashMap<(u32, u32), (String, bool)> = HashMap::new();
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
                processes.entry(who).or_insert_with(|| self.names.command(who, command(self.programs, who)));
            let name = (layer.instance(key.tgid, process), file.path.clone());
            let row = hash(&name);
            let changes = file.changes || (*changes && layer != Layer::Block);
            self.kept.place(key, row, counts, changes);
            placed.push(Placed { key, counts, file: Arc::clone(file), name, row, changes });
        }
        placed
    }

    /// Adds the counters of each key to its row.
    fn sum(&mut self, rows: &mut Rows, placed: Vec<Placed<'_>>) {
        for Placed { key, counts, file, name, row: id, .. } in placed {
            let (layer, who) = (Layer::from_kind(key.kind), (key.tgid, key.started));
            let began = self.kept.row(key, id);
            let index = match rows.by_id.entry(id) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(free) => {
                    rows.rows.push(Row {
                        id,
                        name,
                        layer,
                        who,
                        began,
                        file: Arc::clone(&file),
                        files: BTreeSet::new(),
                        size_bytes: None,
                        counts: [const { None }; COLUMNS],
                        counted: [false; COLUMNS],
                        before_ns: 0,
                    });
                    *free.insert(rows.rows.len() - 1)
                }
            };
            let row = &mut rows.rows[index];
            // Another process had the same number and name before. The row has both, and begins with the later one.
            if (who.1.wrapping_sub(row.who.1) as i32) > 0 {
                row.who = who;
            }
            row.files.insert(key.file);
            row.size_bytes = row.size_bytes.or(file.size_bytes);
            let column = Layer::column(key.kind);
            row.add_small(column, &self.kept.in_row(key, counts));
            rows.of_key.insert(*key, (index, column));
        }
    }
}

/// Instance and path of a sample.
pub(super) type RowName = (String, String);

/// Rows that are summed: what they have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    layer: Layer,
    kind: FileKind,
    drive: Option<String>,
    /// The files are synced at times: commits may wait for those.
    is_synced: bool,
}

/// The counters of a key, and the row that shows them.
struct Placed<'c> {
    key: &'c Key,
    counts: &'c SmallCounts,
    file: Arc<File>,
    name: RowName,
    /// The id of the row.
    row: u64,
    /// The next snapshot shows another name.
    changes: bool,
}

/// A file as the current snapshot shows it.
pub(super) struct File {
    path: String,
    /// The next snapshot shows another name.
    changes: bool,
    size_bytes: Option<u64>,
    class: Class,
    drive: Option<String>,
}

impl File {
    fn new(id: FileId, known: &KnownFile, mounts: &Mounts) -> File {
        File {
            path: known.path.to_string_lossy().into_owned(),
            changes: known.changes(),
            size_bytes: known.size_bytes,
            class: class_of(id, &known.path),
            drive: mount_point(mounts, &known.path),
        }
    }
}

/// Reads, writes, syncs.
pub(super) const COLUMNS: usize = 3;

/// The sums of one sample.
pub(super) struct Row {
    /// That of its name.
    pub id: u64,
    pub name: RowName,
    layer: Layer,
    /// The process's number and start; zeros for the block layer.
    pub who: (u32, u32),
    /// The number of forgettings when the row began (kept.rs).
    pub began: u64,
    /// One of `files`.
    file: Arc<File>,
    pub files: BTreeSet<FileId>,
    pub size_bytes: Option<u64>,
    /// Of each column; most rows lack some of them.
    pub counts: [Option<SmallCounts>; COLUMNS],
    /// Which columns have got counts since [`Rows::begin`].
    counted: [bool; COLUMNS],
    /// [`Row::ns`] when the rows were made.
    before_ns: u64,
}

impl Row {
    fn add(&mut self, column: usize, counts: &Counts) {
        let has_counts = std::mem::replace(&mut self.counted[column], true);
        let own = self.counts[column].get_or_insert_default();
        if has_counts {
            own.add(&SmallCounts::from(counts));
        } else {
            own.set(counts);
        }
    }

    fn add_small(&mut self, column: usize, counts: &SmallCounts) {
        let has_counts = std::mem::replace(&mut self.counted[column], true);
        let own = self.counts[column].get_or_insert_default();
        if has_counts {
            own.add(counts);
        } else {
            own.clone_from(counts);
        }
    }

    /// Those of columns without I/O too.
    pub fn all_counts(&self) -> [Counts; COLUMNS] {
        self.counts.each_ref().map(|counts| counts.as_ref().map_or(Counts::ZERO, SmallCounts::all))
    }

    /// Summed time of its I/Os, nanoseconds.
    pub fn ns(&self) -> u64 {
        self.counts.iter().flatten().fold(0, |sum, counts| sum.wrapping_add(counts.ns))
    }

    /// Time of the I/Os that were counted since the rows were made, nanoseconds.
    pub fn new_ns(&self) -> u64 {
        self.ns().saturating_sub(self.before_ns)
    }

    /// What it is summed with.
    pub fn group(&self) -> Group {
        Group {
            layer: self.layer,
            kind: self.file.class.kind,
            drive: self.file.drive.clone(),
            is_synced: self.counts[Layer::column(kind::SYNC)].is_some(),
        }
    }

    /// Whether I/Os of it were missed.
    pub fn is_lost(&self, missing: &Missing) -> bool {
        self.layer.misses(missing)
            || !missing.devices.is_empty() && self.files.iter().any(|file| missing.devices.contains(file))
    }

    fn sample(&self, run: &str, missing: &Missing) -> Sample {
        self.sample_of(self.all_counts().each_ref(), run, missing)
    }

    /// The same with other counts.
    pub fn sample_of(&self, counts: [&Counts; COLUMNS], run: &str, missing: &Missing) -> Sample {
        let (instance, path) = &self.name;
        let file_id = match self.files.first() {
            Some(device) if device.is_device() => number(device),
            // Files such as journals are created repeatedly under one name: the name identifies what is counted.
            _ => path.clone(),
        };
        let file = FileIdentity {
            instance: instance.clone(),
            database: self.file.class.database.clone(),
            database_id: self.file.class.database_id,
            file_id,
            kind: self.file.class.kind,
            path: path.clone(),
            drive: self.file.drive.clone(),
            ..FileIdentity::default()
        };
        let epoch = Epoch {
            run: self.layer.run(run, self.who),
            reset: if self.began == 0 { String::new() } else { self.began.to_string() },
        };
        self.layer.sample(file, epoch, counts, self.size_bytes, self.is_lost(missing))
    }
}

impl Group {
    /// "(other data files on /var/lib)".
    fn path(&self) -> String {
        let files = match self.kind {
            FileKind::Data => "data files",
            FileKind::Log => "log files",
            FileKind::Journal => "journals",
            FileKind::Temp => "temporary files",
            FileKind::Device => "devices",
            FileKind::Other => "files",
        };
        let synced = if self.is_synced { "synced " } else { "" };
        match &self.drive {
            Some(drive) => format!("(other {synced}{files} on {drive})"),
            None => format!("(other {synced}{files})"),
        }
    }

    /// The sum of its rows.
    pub fn sample(
        &self,
        counts: [&Counts; COLUMNS],
        size_bytes: Option<u64>,
        run: &str,
        lost: bool,
    ) -> Sample {
        let path = self.path();
        let file = FileIdentity {
            instance: self.layer.instance_of_all(),
            file_id: path.clone(),
            kind: self.kind,
            drive: self.drive.clone(),
            path,
            ..FileIdentity::default()
        };
        let epoch = Epoch::for_run(run);
        self.layer.sample(file, epoch, counts, size_bytes, lost)
    }
}

fn ops(counts: &Counts, lost: bool) -> Ops {
    let stall_ns = match lost {
        false => Figure::Known(counts.ns),
        true => Figure::unknown(Reason::Lost),
    };
    Ops { count: counts.count, bytes: counts.bytes, stall_ns }
}

/// "MAJOR:MINOR:INODE:GENERATION".
fn number(id: &FileId) -> String {
    let (major, minor) = id.major_minor();
    format!("{major}:{minor}:{}:{}", id.ino, id.generation)
}

fn class_of(id: FileId, path: &Path) -> Class {
    match id.is_device() {
        true if id.purpose() != 0 => Class::new(FileKind::Other),
        true => Class::new(FileKind::Device),
        false => classify(path),
    }
}

fn hash(name: &RowName) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
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

impl Layer {
    fn from_kind(kind: u32) -> Layer {
        match kind {
            kind::MISS => Layer::Misses,
            kind::FAULT => Layer::Faults,
            kind::BLOCK_READ | kind::BLOCK_WRITE | kind::BLOCK_SYNC => Layer::Block,
            _ => Layer::Requests,
        }
    }

    /// Index of the kind's counters in [`Row::counts`].
    fn column(kind: u32) -> usize {
        match kind {
            kind::WRITE | kind::BLOCK_WRITE => 1,
            kind::SYNC | kind::BLOCK_SYNC => 2,
            _ => 0,
        }
    }

    fn instance(self, tgid: u32, command: &str) -> String {
        match self {
            Layer::Requests => format!("pid {tgid} ({command})"),
            Layer::Misses => format!("pid {tgid} ({command}){MISSES}"),
            Layer::Faults => format!("pid {tgid} ({command}){FAULTS}"),
            Layer::Block => BLOCK.into(),
        }
    }

    /// The instance of sums over processes.
    fn instance_of_all(self) -> String {
        match self {
            Layer::Requests => ALL.into(),
            Layer::Misses => format!("{ALL}{MISSES}"),
            Layer::Faults => format!("{ALL}{FAULTS}"),
            Layer::Block => BLOCK.into(),
        }
    }

    /// The layer of a file of this source, by its instance.
    pub fn from_instance(instance: &str) -> Layer {
        match instance {
            BLOCK => Layer::Block,
            _ if instance.ends_with(MISSES) => Layer::Misses,
            _ if instance.ends_with(FAULTS) => Layer::Faults,
            _ => Layer::Requests,
        }
    }

    fn misses(self, missing: &Missing) -> bool {
        match self {
            Layer::Block => missing.block,
            _ => missing.requests,
        }
    }

    /// The run of the epoch: for a process, its run within this source's.
    fn run(self, run: &str, (tgid, started): (u32, u32)) -> String {
        match self {
            Layer::Block => run.to_owned(),
            _ => format!("{run}:{tgid}:{started}"),
        }
    }

    /// A sample of files at this layer.
    fn sample(
        self,
        file: FileIdentity,
        epoch: Epoch,
        [read, write, sync]: [&Counts; COLUMNS],
        size_bytes: Option<u64>,
        lost: bool,
    ) -> Sample {
        let latencies =
            Latencies { read: read.latencies(), write: write.latencies(), sync: sync.latencies() };
        Sample {
            file,
            epoch,
            meaning: self.meaning(),
            counters: Counters {
                read: ops(read, lost),
                write: ops(write, lost),
                sync: match self {
                    Layer::Requests | Layer::Block => Figure::Known(ops(sync, lost)),
                    Layer::Misses | Layer::Faults => Figure::unknown(Reason::NotCounted),
                },
                busy_ns: Figure::unknown(Reason::NotCounted),
            },
            size_bytes: size_bytes.map_or(Figure::unknown(Reason::Gone), Figure::Known),
            latencies: (!lost).then_some(latencies),
        }
    }

    fn meaning(self) -> Meaning {
        match self {
            Layer::Requests => Meaning::REQUESTS,
            Layer::Faults => Meaning { cache: Cache::Missed, ..Meaning::REQUESTS },
            _ => Meaning { cache: Cache::Below, ..Meaning::REQUESTS },
        }
    }
}

#[cfg(test)]
impl Rows {
    /// Data files of one process in `/`, each with its name, the number of forgettings when it began, and its counts of reads.
    pub fn of_files(files: impl IntoIterator<Item = (String, u64, Counts)>) -> Rows {
        let mut rows = Rows::default();
        for (path, began, counts) in files {
            rows.push_file(path, began, counts);
        }
        rows.rows.iter_mut().for_each(|row| row.before_ns = row.ns());
        rows
    }

    pub fn push_file(&mut self, path: String, began: u64, counts: Counts) {
        let class = Class::new(FileKind::Data);
        let file =
            File { path: path.clone(), changes: false, size_bytes: Some(1), class, drive: Some("/".into()) };
        let name = ("pid 812 (postgres)".to_owned(), path);
        let id = hash(&name);
        self.by_id.insert(id, self.rows.len());
        self.rows.push(Row {
            id,
            name,
            layer: Layer::Requests,
            who: (812, 5),
            began,
            file: Arc::new(file),
            files: BTreeSet::new(),
            size_bytes: Some(1),
            counts: [Some(SmallCounts::from(&counts)), None, None],
            counted: [true, false, false],
            before_ns: 0,
        });
    }

    /// Counts again into the rows.
    pub fn recount(&mut self, counts: impl IntoIterator<Item = Counts>) {
        for (row, counts) in self.rows.iter_mut().zip(counts) {
            row.counts[0] = Some(SmallCounts::from(&counts));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_names_its_layer() {
        for layer in [Layer::Requests, Layer::Misses, Layer::Faults, Layer::Block] {
            assert_eq!(Layer::from_instance(&layer.instance(812, "page faults")), layer);
            assert_eq!(Layer::from_instance(&layer.instance_of_all()), layer);
        }
    }
}
