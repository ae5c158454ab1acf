//! The rows of a count, a sample each: a file at one layer of one process, with the counters of all keys that it shows.

use super::classify::{Class, classify};
use super::layer::{COLUMNS, Layer};
use super::losses::Missing;
use super::names::KnownFile;
use super::tables::{CompactCounts, Counts, FileId, Key, kind};
use crate::volume::mount_point;
use filestats::{Epoch, FileIdentity, FileKind, Sample};
use host::Mounts;
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

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
        rows.sort_unstable_by(|one, other| one.name().cmp(&other.name()));
        rows.into_iter().map(|row| row.sample(run, missing)).collect()
    }

    /// All of them.
    pub fn all(&self, run: &str, missing: &Missing) -> Vec<Sample> {
        self.samples(0..self.rows.len(), run, missing)
    }

    /// The row of a key, made where there is none with that id.
    pub fn insert(&mut self, key: Key, id: u64, new: impl FnOnce() -> Row) -> &mut Row {
        let index = *self.by_id.entry(id).or_insert_with(|| {
            self.rows.push(new());
            self.rows.len() - 1
        });
        self.of_key.insert(key, (index, Layer::column(key.kind)));
        &mut self.rows[index]
    }

    /// From here on [`Row::new_ns`] counts.
    pub fn mark(&mut self) {
        self.rows.iter_mut().for_each(|row| row.marked_ns = row.ns());
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
    pub fn add_compact(&mut self, key: &Key, counts: &CompactCounts) {
        if let Some((index, column)) = self.of_key.get(key) {
            self.rows[*index].add_compact(*column, counts);
        }
    }

    /// Takes what a key counted for another row from its row. Its counts were added before.
    pub fn subtract(&mut self, key: &Key, base: &CompactCounts) {
        let place = self.of_key.get(key);
        let row = place.and_then(|(index, column)| self.rows[*index].counts[*column].as_mut());
        row.into_iter().for_each(|counts| *counts = counts.since(base));
    }
}

/// Rows that are summed: their common properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    layer: Layer,
    kind: FileKind,
    drive: Option<String>,
    /// The files are synced at times: commits may wait for those.
    is_synced: bool,
}

/// A file as the current snapshot shows it.
pub(super) struct File {
    pub path: String,
    /// The next snapshot shows another name.
    pub changes: bool,
    size_bytes: Option<u64>,
    class: Class,
    drive: Option<String>,
}

impl File {
    pub fn new(id: FileId, known: &KnownFile, mounts: &Mounts) -> File {
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
    /// That of its name.
    pub id: u64,
    instance: Arc<str>,
    layer: Layer,
    /// The process's number and start; zeros for the block layer.
    pub who: (u32, u32),
    /// The number of forgettings when the row began (kept.rs).
    pub began: u64,
    /// One of `files`, with the path of the sample.
    file: Arc<File>,
    /// Sorted; one, unless several have the same path.
    pub files: Vec<FileId>,
    /// That of its samples, made for the first one.
    identity: OnceCell<Arc<FileIdentity>>,
    pub size_bytes: Option<u64>,
    /// Of each column; most rows lack some of them.
    pub counts: [Option<CompactCounts>; COLUMNS],
    /// Columns that got counts since [`Rows::begin`].
    counted: [bool; COLUMNS],
    /// [`Row::ns`] at the mark.
    marked_ns: u64,
}

impl Row {
    pub fn new(id: u64, instance: Arc<str>, layer: Layer, began: u64, file: Arc<File>) -> Row {
        Row {
            id,
            instance,
            layer,
            who: (0, 0),
            began,
            file,
            files: Vec::with_capacity(1),
            identity: OnceCell::new(),
            size_bytes: None,
            counts: [const { None }; COLUMNS],
            counted: [false; COLUMNS],
            marked_ns: 0,
        }
    }

    /// The id of the row with that name.
    pub fn id_of(instance: &str, path: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        (instance, path).hash(&mut hasher);
        hasher.finish()
    }

    /// Instance and path of its sample.
    fn name(&self) -> (&str, &str) {
        (&self.instance, &self.file.path)
    }

    /// Takes in a key.
    pub fn include(&mut self, key: &Key, file: &File, counts: &CompactCounts) {
        // Another process had the same number and name before. The row has both, and begins with the later one.
        if self.files.is_empty() || (key.started.wrapping_sub(self.who.1) as i32) > 0 {
            self.who = (key.tgid, key.started);
        }
        if let Err(at) = self.files.binary_search(&key.file) {
            self.files.insert(at, key.file);
            self.identity.take();
        }
        self.size_bytes = self.size_bytes.or(file.size_bytes);
        self.add_compact(Layer::column(key.kind), counts);
    }

    fn add(&mut self, column: usize, counts: &Counts) {
        let has_counts = std::mem::replace(&mut self.counted[column], true);
        let own = self.counts[column].get_or_insert_default();
        if has_counts {
            own.add(&CompactCounts::from(counts));
        } else {
            own.set(counts);
        }
    }

    fn add_compact(&mut self, column: usize, counts: &CompactCounts) {
        let has_counts = std::mem::replace(&mut self.counted[column], true);
        let own = self.counts[column].get_or_insert_default();
        if has_counts {
            own.add(counts);
        } else {
            own.clone_from(counts);
        }
    }

    /// Those of columns without I/O too.
    pub fn all_counts(&self) -> [CompactCounts; COLUMNS] {
        self.counts.each_ref().map(|counts| counts.clone().unwrap_or_default())
    }

    /// Counts since `base`.
    pub fn counts_since(&self, base: &[CompactCounts; COLUMNS]) -> [CompactCounts; COLUMNS] {
        std::array::from_fn(|column| match &self.counts[column] {
            Some(counts) => counts.since(&base[column]),
            None => CompactCounts::default().since(&base[column]),
        })
    }

    /// Summed time of its I/Os, nanoseconds.
    pub fn ns(&self) -> u64 {
        self.counts.iter().flatten().fold(0, |sum, counts| sum.wrapping_add(counts.ns))
    }

    /// Time of the I/Os that were counted since the mark, nanoseconds.
    pub fn new_ns(&self) -> u64 {
        self.ns().saturating_sub(self.marked_ns)
    }

    /// The group that it is summed with.
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
        self.sample_of(self.all_counts(), run, missing)
    }

    /// The sample with other counts.
    pub fn sample_of(&self, counts: [CompactCounts; COLUMNS], run: &str, missing: &Missing) -> Sample {
        let (instance, path) = self.name();
        let new = || FileIdentity {
            instance: instance.into(),
            database: self.file.class.database.clone(),
            database_id: self.file.class.database_id,
            file_id: match self.files.first() {
                Some(device) if device.is_device() => number(device),
                // Files such as journals are created repeatedly under one name: the name identifies what is counted.
                _ => path.into(),
            },
            kind: self.file.class.kind,
            path: path.into(),
            drive: self.file.drive.clone(),
            ..FileIdentity::default()
        };
        let epoch = Epoch {
            run: self.layer.run(run, self.who),
            reset: if self.began == 0 { String::new() } else { self.began.to_string() },
        };
        let file = self.identity.get_or_init(|| new().into());
        self.layer.sample(file.clone(), epoch, counts, self.size_bytes, self.is_lost(missing))
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

    /// Identity of its sample.
    pub fn identity(&self) -> FileIdentity {
        let path = self.path();
        FileIdentity {
            instance: self.layer.instance_of_all(),
            file_id: path.clone(),
            kind: self.kind,
            drive: self.drive.clone(),
            path,
            ..FileIdentity::default()
        }
    }

    /// The sum of its rows.
    pub fn sample(
        &self,
        file: Arc<FileIdentity>,
        counts: [CompactCounts; COLUMNS],
        size_bytes: Option<u64>,
        run: &str,
        lost: bool,
    ) -> Sample {
        self.layer.sample(file, Epoch::for_run(run), counts, size_bytes, lost)
    }
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

#[cfg(test)]
impl Rows {
    /// Data files of one process in `/`, each with its name, the number of forgettings when it began, and its counts of reads.
    pub fn from_files(files: impl IntoIterator<Item = (String, u64, Counts)>) -> Rows {
        let mut rows = Rows::default();
        files.into_iter().for_each(|(path, began, counts)| rows.push_file(path, began, counts));
        rows.mark();
        rows
    }

    pub fn push_file(&mut self, path: String, began: u64, counts: Counts) {
        let class = Class::new(FileKind::Data);
        let instance = "pid 812 (postgres)";
        let row = Row::id_of(instance, &path);
        let file = File { path, changes: false, size_bytes: Some(1), class, drive: Some("/".into()) };
        let id = FileId { ino: self.rows.len() as u64 + 1, dev: 1, generation: 0 };
        let key = Key { file: id, tgid: 812, started: 5, kind: 0, zero: 0 };
        let file = Arc::new(file);
        let new = || Row::new(row, instance.into(), Layer::Requests, began, file.clone());
        self.insert(key, row, new).include(&key, &file, &CompactCounts::from(&counts));
    }

    /// Counts again into the rows, in their order.
    pub fn recount(&mut self, counts: impl IntoIterator<Item = Counts>) {
        self.begin();
        self.rows.iter_mut().zip(counts).for_each(|(row, counts)| row.add(0, &counts));
    }
}
