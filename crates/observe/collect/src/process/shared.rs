//! One set of programs for all sources of chosen processes: each set that is loaded slows every system call of this host, and
//! has tables of its own.
//!
//! ```text
//! process:812   ─┐                        ┌─ the rows of 812 and its children    ─> Share::take()
//! process:4711  ─┼─> SHARED: one Counter ─┼─ the rows of 4711 and its children
//! the server's  ─┘                        └─ ...
//! log
//! ```
//!
//! A source that takes its part has the counters read for all of them. In a program that samples many sources at the same
//! time, another one may have done that just before: [`share_counts`]. Such a program runs all the time, so that it reads the
//! names of files and processes only every few seconds: in between, the counters are read into the same rows.

use super::busiest::Busiest;
use super::counter::{Count, Counter};
use super::error::OpenError;
use super::kept::Kept;
use super::losses::Missing;
use super::object::choose_process;
use super::program::{Counted, Programs};
use super::roots::Roots;
use super::rows::Rows;
use super::selection::{Coverage, Selection};
use super::tables::{FileId, Key};
use super::target;
use crate::diskstats;
use crate::error::SourceError;
use crate::source::IoFailures;
use filestats::{Epoch, Sample};
use host::privileges::{Privilege, with};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// For this many counts after a source was closed, counters that no source asks for are looked for. Two, because one
/// reading of the table may find block I/O of a file before it finds the process that uses it.
const CLEANING_COUNTS: u8 = 2;

static SHARED: Mutex<Option<Shared>> = Mutex::new(None);
/// How old a count may be that another source had made, in nanoseconds.
static AGE_NS_MAX: AtomicU64 = AtomicU64::new(0);
/// Time between two counts that read all names, where counters are shared, in nanoseconds.
static NAMES_EVERY_NS: AtomicU64 = AtomicU64::new(0);

/// From now on, a source of chosen processes may get counters up to `age` old, where another source of chosen processes had
/// them read: for programs that sample many sources at the same time. Its snapshots say when they were counted. The names of
/// files and processes are read every `names_every` only, which takes longer than counting. At the start of a program both are
/// zero.
pub fn share_counts(age: Duration, names_every: Duration) {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    AGE_NS_MAX.store(ns(age), Relaxed);
    NAMES_EVERY_NS.store(ns(names_every), Relaxed);
}

/// The programs and who asks for their counters.
struct Shared {
    counter: Counter,
    readers: BTreeMap<u64, Reader>,
    /// The number of the last reader.
    last: u64,
    roots: Roots,
    /// The root of each process that has counters, by number and start: the kernel's table has only running ones.
    root_of: HashMap<(u32, u32), u32>,
    cleaning: u8,
    /// Block I/O of no source in the last count.
    orphans: HashSet<Key>,
    /// `None` before the first one, and after one failed.
    last_count: Option<LastCount>,
    /// The next count reads all names: sources came or went.
    names_due: bool,
}

/// A count whose rows the next one can be read into.
struct LastCount {
    count: Count,
    /// When the names were read.
    named: Instant,
    /// The roots whose processes used each file.
    of_files: FxHashMap<FileId, Vec<u32>>,
}

/// State kept for one source.
struct Reader {
    roots: BTreeSet<u32>,
    /// Distinguishes boot and the opening of the source.
    run: String,
    part: Option<(Instant, Part)>,
    /// The rows of its processes.
    rows: Vec<usize>,
    /// Where only the busiest files are named.
    busiest: Option<Busiest>,
    /// Losses in counts whose part was not taken.
    missing: Missing,
}

/// One source's part of a count.
pub(super) struct Part {
    pub clock_ns: u64,
    pub taken_unix_ns: u64,
    pub samples: Vec<Sample>,
    pub complete: Option<Epoch>,
    /// The running processes in it.
    pub processes: Vec<u32>,
    pub failures: Vec<IoFailures>,
    pub notes: Vec<String>,
    pub device_notes: Vec<String>,
}

/// A source's share in the programs. Dropping it ends the counting of its processes, and the last one unloads the programs.
pub(super) struct Share(u64);

/// Whether the selection is of chosen processes only.
pub(super) fn is_shared(selection: &Selection) -> bool {
    let Selection { pids, cgroup, files, coverage } = selection;
    !pids.is_empty() && cgroup.is_none() && files.is_empty() && *coverage == Coverage::All
}

fn shared() -> MutexGuard<'static, Option<Shared>> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Share {
    /// Counts the processes of a selection for which [`is_shared`] holds.
    ///
    /// # Errors
    /// As [`Counter::open`].
    pub fn open(selection: &Selection) -> Result<Share, SourceError> {
        let mut guard = shared();
        let run = format!("{}:{}:{}", diskstats::boot_id()?, std::process::id(), host::monotonic_ns());
        target::processes(&selection.pids)?;
        let shared = match &mut *guard {
            Some(shared) => shared,
            none => none.insert(Shared::new(Counter::open(selection)?)),
        };
        let roots = selection.pids.iter().copied().collect();
        shared.last += 1;
        let number = shared.last;
        let missing = Missing::default();
        shared
            .readers
            .insert(number, Reader { roots, run, part: None, rows: Vec::new(), busiest: None, missing });
        shared.names_due = true;
        // Dropped where a process has ended meanwhile.
        let share = Share(number);
        let chosen = selection.pids.iter().try_for_each(|pid| shared.choose(*pid));
        drop(guard);
        chosen.map(|()| share)
    }

    /// Names only this many rows from now on, and sums the others.
    pub fn name_busiest(&self, rows: usize) {
        let mut guard = shared();
        let Some(shared) = guard.as_mut() else { return };
        if let Some(reader) = shared.readers.get_mut(&self.0) {
            reader.busiest = Some(Busiest::new(rows));
            shared.names_due = true;
        }
    }

    /// The counters of its processes.
    pub fn take(&mut self) -> Result<Part, SourceError> {
        let mut guard = shared();
        let Some(shared) = guard.as_mut() else { return Err(gone()) };
        let age_max = Duration::from_nanos(AGE_NS_MAX.load(Relaxed));
        let is_ready = |reader: &Reader| matches!(&reader.part, Some((at, _)) if at.elapsed() < age_max);
        if !shared.readers.get(&self.0).is_some_and(is_ready) {
            shared.count()?;
        }
        let reader = shared.readers.get_mut(&self.0).ok_or_else(gone)?;
        reader.missing = Missing::default();
        Ok(reader.part.take().ok_or_else(gone)?.1)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut guard = shared();
        let Some(shared) = guard.as_mut() else { return };
        with(Privilege::Programs, || shared.close(self.0));
        shared.names_due = true;
        if shared.readers.is_empty() {
            *guard = None;
        }
    }
}

fn gone() -> SourceError {
    OpenError::Unloaded.into()
}

impl Shared {
    fn new(counter: Counter) -> Shared {
        Shared {
            counter,
            readers: BTreeMap::new(),
            last: 0,
            roots: Roots::default(),
            root_of: HashMap::new(),
            cleaning: 0,
            orphans: HashSet::new(),
            last_count: None,
            names_due: false,
        }
    }

    /// Chooses a process and its descendants.
    fn choose(&mut self, root: u32) -> Result<(), SourceError> {
        let chosen = self.counter.programs.chosen()?;
        let outer = chosen.get(&root).copied().filter(|outer| *outer != root && self.roots.contains(*outer));
        choose_process(&mut self.counter.programs.ebpf, root, outer)?;
        let descendants = target::with_descendants(BTreeSet::from([root]))?;
        self.roots.add(root, outer, &descendants);
        Ok(())
    }

    fn close(&mut self, number: u64) {
        let Some(reader) = self.readers.remove(&number) else { return };
        let still = |root: &u32| self.readers.values().any(|reader| reader.roots.contains(root));
        let over: Vec<u32> = reader.roots.into_iter().filter(|root| !still(root)).collect();
        for root in over {
            let outer = self.roots.remove(root);
            // A table that cannot be written counts more than is requested; the excess is left out of every part.
            let _ = self.counter.programs.move_chosen(root, outer);
            match outer {
                Some(outer) => {
                    self.root_of.values_mut().filter(|of| **of == root).for_each(|of| *of = outer);
                }
                None => self.root_of.retain(|_, of| *of != root),
            }
        }
        self.cleaning = CLEANING_COUNTS;
    }

    /// Counts for all sources.
    fn count(&mut self) -> Result<(), SourceError> {
        let shares = AGE_NS_MAX.load(Relaxed) > 0;
        let before = self.last_count.take();
        let names_every = Duration::from_nanos(NAMES_EVERY_NS.load(Relaxed));
        let is_recent =
            |last: &LastCount| last.named.elapsed() < names_every && self.counter.may_recount(&last.count);
        let recounts =
            shares && !self.names_due && self.cleaning == 0 && before.as_ref().is_some_and(is_recent);
        self.last_count = match before {
            Some(last) if recounts => Some(self.recount(last)?),
            before => Some(self.count_with_names(before.as_ref().map(|before| &before.count.rows))?),
        };
        Ok(())
    }

    /// `before` has the rows of the last count.
    fn count_with_names(&mut self, before: Option<&Rows>) -> Result<LastCount, SourceError> {
        let Shared { counter, root_of, roots, orphans, cleaning, .. } = self;
        let mut of_files = FxHashMap::default();
        let named = Instant::now();
        let count = counter.count(|programs, kept, counted| {
            // Read after the counters, so that it has every process that they have.
            let chosen = programs.chosen()?;
            let mut clean = Clean { roots, root_of, orphans };
            clean.learn(&chosen, counted);
            if *cleaning > 0 {
                *cleaning -= 1;
                clean.drop_unwanted(programs, kept, counted)?;
            }
            learn_files(&mut of_files, counted.keys().chain(kept.keys()), root_of);
            Ok(())
        })?;
        let failed: HashSet<u32> = counter.failures.processes().collect();
        let running = counter.programs.chosen()?;
        root_of.retain(|who, _| {
            count.rows.who.contains(who) || running.contains_key(&who.0) || failed.contains(&who.0)
        });
        let last = LastCount { count, named, of_files };
        self.assign_rows(&last);
        for reader in self.readers.values_mut() {
            if let Some(busiest) = &mut reader.busiest {
                busiest.choose(before, &last.count.rows, &reader.rows);
            }
        }
        self.names_due = false;
        self.distribute(&last.count);
        Ok(last)
    }

    /// Counts into the rows of the last count.
    fn recount(&mut self, mut last: LastCount) -> Result<LastCount, SourceError> {
        let Shared { counter, root_of, roots, orphans, .. } = self;
        let LastCount { count, of_files, .. } = &mut last;
        counter.recount(count, |programs, new| {
            let chosen = programs.chosen()?;
            Clean { roots, root_of, orphans }.learn(&chosen, new);
            learn_files(of_files, new.keys(), root_of);
            Ok(())
        })?;
        // A new process may use a file whose row was not its source's.
        if count.new_keys {
            self.assign_rows(&last);
            for reader in self.readers.values_mut() {
                if let Some(busiest) = &mut reader.busiest {
                    busiest.add_new(&last.count.rows, &reader.rows);
                }
            }
        }
        self.distribute(&last.count);
        Ok(last)
    }

    /// Finds the rows of each source.
    fn assign_rows(&mut self, last: &LastCount) {
        let rows_of = self.rows_of_roots(last);
        let Shared { readers, roots, .. } = self;
        for reader in readers.values_mut() {
            let own = rows_of.iter().filter(|(root, _)| roots.belongs(**root, &reader.roots));
            reader.rows = own.flat_map(|(_, rows)| rows).copied().collect();
            // A file's block I/O is a row of each root that uses it.
            reader.rows.sort_unstable();
            reader.rows.dedup();
        }
    }

    /// Puts the part of each source aside for it.
    fn distribute(&mut self, count: &Count) {
        let Shared { counter, readers, roots, root_of, .. } = self;
        let at = Instant::now();
        for reader in readers.values_mut() {
            reader.missing.add(&count.losses, &count.missed);
            let belongs = |root: &u32| roots.belongs(*root, &reader.roots);
            let own = root_of.iter().filter(|(_, root)| belongs(root)).map(|((tgid, _), _)| *tgid);
            let own: HashSet<u32> = own.collect();
            let (failures, failed) = counter.failures.of_processes(|tgid| own.contains(&tgid));
            let samples = match &mut reader.busiest {
                Some(busiest) => busiest.samples(&count.rows, &reader.rows, &reader.run, &reader.missing),
                None => count.rows.samples(reader.rows.iter().copied(), &reader.run, &reader.missing),
            };
            let part = Part {
                clock_ns: count.clock_ns,
                taken_unix_ns: count.taken_unix_ns,
                samples,
                complete: (!count.losses.files).then(|| Epoch::for_run(&reader.run)),
                processes: count.rows.processes.iter().copied().filter(|tgid| own.contains(tgid)).collect(),
                failures,
                notes: [&count.losses.notes[..], &count.device_notes, &failed].concat(),
                device_notes: count.device_notes.clone(),
            };
            reader.part = Some((at, part));
        }
    }

    /// The indexes of the rows of each root.
    fn rows_of_roots(&self, last: &LastCount) -> HashMap<u32, Vec<usize>> {
        let mut rows_of: HashMap<u32, Vec<usize>> = HashMap::new();
        for (index, row) in last.count.rows.iter().enumerate() {
            let mut add = |root: &u32| rows_of.entry(*root).or_default().push(index);
            match row.who {
                (0, _) => {
                    row.files.iter().filter_map(|file| last.of_files.get(file)).flatten().for_each(&mut add);
                }
                who => self.root_of.get(&who).into_iter().for_each(&mut add),
            }
        }
        rows_of
    }
}

/// Learns which roots use which files.
fn learn_files<'k>(
    of_files: &mut FxHashMap<FileId, Vec<u32>>,
    keys: impl Iterator<Item = &'k Key>,
    root_of: &HashMap<(u32, u32), u32>,
) {
    for key in keys.filter(|key| key.tgid != 0) {
        if let Some(root) = root_of.get(&(key.tgid, key.started)) {
            let roots = of_files.entry(key.file).or_default();
            if !roots.contains(root) {
                roots.push(*root);
            }
        }
    }
}

/// Assignment of the counters of one reading of the table to the sources they are for.
struct Clean<'a> {
    roots: &'a Roots,
    root_of: &'a mut HashMap<(u32, u32), u32>,
    orphans: &'a mut HashSet<Key>,
}

impl Clean<'_> {
    /// Learns the roots of processes that were counted for the first time.
    fn learn(&mut self, chosen: &HashMap<u32, u32>, counted: &Counted) {
        for key in counted.keys().filter(|key| key.tgid != 0) {
            let who = (key.tgid, key.started);
            let root = chosen.get(&key.tgid).filter(|root| self.roots.contains(**root));
            if let Some(root) = root {
                // The newest choice counts: a process may have got a root of its own.
                self.root_of.insert(who, *root);
            }
        }
    }

    /// Takes the counters out of the kernel that no source asks for.
    fn drop_unwanted(
        &mut self,
        programs: &mut Programs,
        kept: &mut Kept,
        counted: &mut Counted,
    ) -> Result<(), SourceError> {
        let is_known = |key: &Key| self.root_of.contains_key(&(key.tgid, key.started));
        let of_processes = |keys: &mut dyn Iterator<Item = &Key>| -> HashSet<FileId> {
            keys.filter(|key| key.tgid != 0 && is_known(key)).map(|key| key.file).collect()
        };
        let files = of_processes(&mut counted.keys().chain(kept.keys()));
        let is_wanted = |key: &Key| if key.tgid == 0 { files.contains(&key.file) } else { is_known(key) };
        let unwanted: Vec<Key> = counted.keys().copied().filter(|key| !is_wanted(key)).collect();
        let before = std::mem::take(self.orphans);
        for key in unwanted {
            if key.tgid == 0 && !before.contains(&key) {
                self.orphans.insert(key);
                continue;
            }
            counted.remove(&key);
            programs.take(&key)?;
        }
        kept.drop_keys(|key| !is_wanted(key));
        Ok(())
    }
}
