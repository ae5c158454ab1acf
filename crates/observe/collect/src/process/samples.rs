//! Makes samples from the counters of the kernel's keys. Each layer of each process is an instance; files of equal name
//! are one sample.

use super::classify::{Class, classify};
use super::kept::Kept;
use super::losses::Losses;
use super::names::{KnownFile, Names};
use super::program::{Counted, Programs};
use super::tables::{Counts, FileId, Key, command_text, kind};
use crate::volume::mount_point;
use filestats::{
    Cache, Counters, Epoch, Figure, FileIdentity, FileKind, Latencies, Meaning, Ops, Reason, Sample,
};
use host::Mounts;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::rc::Rc;

/// Everything that is needed to make rows of counters.
pub(super) struct Samples<'a> {
    pub programs: &'a Programs,
    pub names: &'a mut Names,
    pub kept: &'a mut Kept,
    pub mounts: &'a Mounts,
    /// All running processes.
    pub running: &'a HashSet<u32>,
}

/// The rows of one count, in the order of their names: a row becomes a sample.
pub(super) struct Rows {
    rows: Vec<(RowName, Row)>,
    /// Number and start of each process that was counted.
    pub who: HashSet<(u32, u32)>,
    /// The running processes in them, sorted.
    pub processes: Vec<u32>,
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

const MISSES: &str = " page-cache misses";
const FAULTS: &str = " page faults";
const BLOCK: &str = "block layer";

impl Rows {
    pub fn iter(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().map(|(_, row)| row)
    }

    /// The samples of the rows with these indexes. `run` distinguishes boot and load.
    pub fn samples(&self, indexes: impl Iterator<Item = usize>, run: &str, missing: &Missing) -> Vec<Sample> {
        indexes
            .filter_map(|index| self.rows.get(index))
            .map(|(name, row)| row.sample(name, run, missing))
            .collect()
    }

    /// All of them.
    pub fn all(&self, run: &str, missing: &Missing) -> Vec<Sample> {
        self.samples(0..self.rows.len(), run, missing)
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
        let placed = self.place(counted);
        let rows = self.summed(placed).into_iter().collect();
        let who: HashSet<(u32, u32)> =
            counted.keys().filter(|key| key.tgid != 0).map(|key| (key.tgid, key.started)).collect();
        let running = who.iter().map(|(tgid, _)| *tgid).filter(|tgid| self.running.contains(tgid));
        let mut processes: Vec<u32> = running.collect();
        processes.sort_unstable();
        processes.dedup();
        Rows { rows, who, processes }
    }

    /// Assigns the counters of each key to a row.
    fn place<'c>(&mut self, counted: &'c Counted) -> Vec<Placed<'c>> {
        let users = users(counted, self.running);
        let mut processes: HashMap<(u32, u32), (String, bool)> = HashMap::new();
        // Each file is looked up once, however many keys it has.
        let mut files: HashMap<FileId, Rc<File>> = HashMap::new();
        self.names.begin_snapshot();
        let mut placed = Vec::with_capacity(counted.len());
        for (key, counts) in counted {
            let id = key.file;
            let file = files.entry(id).or_insert_with(|| {
                let of_file = users.get(&id).map_or(&[][..], Vec::as_slice);
                Rc::new(File::new(id, &self.names.name(id, of_file, self.mounts), self.mounts))
            });
            let layer = Layer::from_kind(key.kind);
            let who = (key.tgid, key.started);
            let (process, changes) =
                processes.entry(who).or_insert_with(|| self.names.command(who, command(self.programs, who)));
            let name = (layer.instance(key.tgid, process), file.path.clone());
            let leaves = file.changes || (*changes && layer != Layer::Block);
            self.kept.place(key, hash(&name), counts, leaves);
            placed.push(Placed { key, counts, file: Rc::clone(file), name });
        }
        placed
    }

    /// Adds up the counters of each row.
    fn summed(&mut self, placed: Vec<Placed<'_>>) -> BTreeMap<RowName, Row> {
        let mut rows = BTreeMap::new();
        for Placed { key, counts, file, name } in placed {
            let (id, layer, who) = (key.file, Layer::from_kind(key.kind), (key.tgid, key.started));
            let began = self.kept.row(key, hash(&name));
            let row = rows.entry(name).or_insert_with(|| Row {
                layer,
                who,
                began,
                file: Rc::clone(&file),
                files: BTreeSet::new(),
                size_bytes: None,
                counts: [const { None }; 3],
            });
            // Another process had the same number and name before. The row has both, and begins with the later one.
            if (who.1.wrapping_sub(row.who.1) as i32) > 0 {
                row.who = who;
            }
            row.files.insert(id);
            row.size_bytes = row.size_bytes.or(file.size_bytes);
            let in_row = self.kept.in_row(key, counts);
            match &mut row.counts[Layer::column(key.kind)] {
                Some(sum) => sum.add(&in_row),
                none => *none = Some(Box::new(in_row)),
            }
        }
        rows
    }
}

/// Instance and path of a sample.
type RowName = (String, String);

/// The counters of a key, and the row that shows them.
struct Placed<'c> {
    key: &'c Key,
    counts: &'c Counts,
    file: Rc<File>,
    name: RowName,
}

/// A file as the current snapshot shows it.
struct File {
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

/// The sums of one sample.
pub(super) struct Row {
    layer: Layer,
    /// The process's number and start; zeros for the block layer.
    pub who: (u32, u32),
    /// The number of forgettings when the row began (kept.rs).
    began: u64,
    /// One of `files`.
    file: Rc<File>,
    pub files: BTreeSet<FileId>,
    size_bytes: Option<u64>,
    /// Reads, writes, syncs. Boxed, because they are large, and most rows lack some of them.
    counts: [Option<Box<Counts>>; 3],
}

impl Row {
    fn sample(&self, (instance, path): &RowName, run: &str, missing: &Missing) -> Sample {
        let [read, write, sync] =
            self.counts.each_ref().map(|counts| counts.as_deref().unwrap_or(&Counts::ZERO));
        let lost = self.layer.misses(missing) || self.files.iter().any(|file| missing.devices.contains(file));
        let latencies =
            Latencies { read: read.latencies(), write: write.latencies(), sync: sync.latencies() };
        let file_id = match self.files.first() {
            Some(device) if device.is_device() => number(device),
            // Files such as journals are created repeatedly under one name: the name identifies what is counted.
            _ => path.clone(),
        };
        Sample {
            file: FileIdentity {
                instance: instance.clone(),
                database: self.file.class.database.clone(),
                database_id: self.file.class.database_id,
                file_id,
                kind: self.file.class.kind,
                path: path.clone(),
                drive: self.file.drive.clone(),
                ..FileIdentity::default()
            },
            epoch: Epoch {
                run: self.layer.run(run, self.who),
                reset: if self.began == 0 { String::new() } else { self.began.to_string() },
            },
            meaning: self.layer.meaning(),
            counters: Counters {
                read: ops(read, lost),
                write: ops(write, lost),
                sync: match self.layer {
                    Layer::Requests | Layer::Block => Figure::Known(ops(sync, lost)),
                    Layer::Misses | Layer::Faults => Figure::unknown(Reason::NotCounted),
                },
                busy_ns: Figure::unknown(Reason::NotCounted),
            },
            size_bytes: self.size_bytes.map_or(Figure::unknown(Reason::Gone), Figure::Known),
            latencies: (!lost).then_some(latencies),
        }
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
fn users(counted: &Counted, running: &HashSet<u32>) -> HashMap<FileId, Vec<u32>> {
    let mut users: HashMap<FileId, Vec<u32>> = HashMap::new();
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

    fn meaning(self) -> Meaning {
        match self {
            Layer::Requests => Meaning::REQUESTS,
            Layer::Faults => Meaning { cache: Cache::Missed, ..Meaning::REQUESTS },
            _ => Meaning { cache: Cache::Below, ..Meaning::REQUESTS },
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
        }
    }
}
