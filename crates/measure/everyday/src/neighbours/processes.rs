use super::host_reading::{AGE_MAX, ProcessReading};
use crate::recent::{Recent, Sharing};
use host::{DeviceNumber, ProcessIo, open_devices, program_of};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A process, distinct from a later one of its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessKey {
    /// In ticks since boot. First, so that parents come before their children.
    pub start_ticks: u64,
    pub pid: u32,
}

/// A process, and what it has moved.
#[derive(Clone, Debug, Default)]
pub struct Process {
    pub key: ProcessKey,
    pub command: String,
    /// The first of its ancestors in a row that run the same program, or itself.
    pub leader: ProcessKey,
    /// Where it has files: the disk of the database.
    pub place: Option<DeviceNumber>,
    /// When its files were last looked for.
    looked: Option<Instant>,
    parent: u32,
    program: Option<PathBuf>,
    /// At the first sample, or where a window begins; 0 where it started later.
    first: ProcessIo,
    last: ProcessIo,
    /// Bytes of its ended children: the kernel adds them to its own.
    inherited: ProcessIo,
    /// The total at the mark.
    marked: ProcessIo,
}

impl Process {
    /// Bytes it has moved since the first sample, or since the window began.
    pub fn io(&self) -> ProcessIo {
        self.total().minus(self.first)
    }

    /// Bytes it has moved itself since it started.
    fn total(&self) -> ProcessIo {
        self.last.minus(self.inherited)
    }

    /// It may have been seen before it became another program.
    fn look_again(&mut self) {
        let program = program_of(self.key.pid);
        if program.is_some() && program != self.program {
            self.command = host::command_name(self.key.pid).unwrap_or_default();
            (self.program, self.leader) = (program, self.key);
        }
    }

    /// Bytes it has moved since the mark.
    pub fn io_since_mark(&self) -> ProcessIo {
        self.total().minus(ProcessIo {
            read_bytes: self.first.read_bytes.max(self.marked.read_bytes),
            write_bytes: self.first.write_bytes.max(self.marked.write_bytes),
        })
    }
}

/// Bytes of each process at an instant.
pub type ProcessTotals = HashMap<ProcessKey, ProcessIo>;

/// Time between two searches for the files of a process that has none on the storage: on a host with many that takes long.
const LOOKED_EVERY: Duration = Duration::from_secs(5);

/// The processes that run, and those that moved much and ended.
#[derive(Debug, Default)]
pub struct Processes {
    all: HashMap<ProcessKey, Process>,
    /// By number.
    running: HashMap<u32, ProcessKey>,
    /// When the last process started that the first sample saw; `None` before it.
    newest_start: Option<u64>,
}

/// A process that moved fewer bytes than this is not examined more closely, and is forgotten when it ends.
const BYTES_MIN: u64 = 1 << 20;

impl Processes {
    /// Takes the figures of all processes that this user may see.
    pub fn sample(&mut self, host: &[ProcessReading]) {
        let mut new = Vec::new();
        let mut seen = HashSet::new();
        for ProcessReading { pid, stat, io } in host {
            let (pid, io) = (*pid, *io);
            let key = ProcessKey { pid, start_ticks: stat.start_ticks };
            seen.insert(key);
            let process = self.all.entry(key).or_insert_with(|| {
                new.push(key);
                let is_younger = self.newest_start.is_some_and(|newest| key.start_ticks > newest);
                let first = if is_younger { ProcessIo::default() } else { io };
                let (command, program) = (host::command_name(pid).unwrap_or_default(), program_of(pid));
                Process { key, command, program, first, leader: key, ..Process::default() }
            });
            (process.parent, process.last) = (stat.parent, io);
        }
        self.forget_ended(&seen);
        self.running.extend(new.iter().map(|key| (key.pid, *key)));
        new.sort_unstable();
        self.newest_start = self.newest_start.or(new.last().map(|key| key.start_ticks));
        new.into_iter().for_each(|key| self.join_family(key));
    }

    fn forget_ended(&mut self, seen: &HashSet<ProcessKey>) {
        let ended: Vec<ProcessKey> =
            self.running.values().filter(|key| !seen.contains(key)).copied().collect();
        for key in ended {
            self.running.remove(&key.pid);
            let Some(process) = self.all.get(&key) else { continue };
            let (parent, total, moved) = (process.parent, process.last, process.io().bytes());
            let parent = self.running.get(&parent).and_then(|parent| self.all.get_mut(parent));
            if let Some(parent) = parent {
                parent.inherited = parent.inherited.plus(total);
            }
            if moved < BYTES_MIN {
                self.all.remove(&key);
            }
        }
    }

    fn join_family(&mut self, key: ProcessKey) {
        let process = self.get(key);
        let parent = self.running.get(&process.parent).and_then(|parent| self.all.get(parent));
        let leader = parent.filter(|parent| parent.program.is_some() && parent.program == process.program);
        if let (Some(leader), Some(process)) = (leader.map(|parent| parent.leader), self.all.get_mut(&key)) {
            process.leader = leader;
        }
    }

    /// Finds where the processes that moved something have their files, as far as `shared_with` says that it matters.
    pub fn find_places(
        &mut self,
        sharing: Sharing,
        is_wanted: impl Fn(&Process) -> bool,
        mut shared_with: impl FnMut(DeviceNumber) -> Option<DeviceNumber>,
    ) {
        for process in self.all.values_mut() {
            let is_due = || process.looked.is_none_or(|last| last.elapsed() >= LOOKED_EVERY);
            if process.place.is_none() && process.io().bytes() >= BYTES_MIN && is_due() && is_wanted(process)
            {
                process.looked = Some(Instant::now());
                static OPEN: Recent<ProcessKey, BTreeSet<DeviceNumber>> = Recent::new();
                let devices = OPEN.get(process.key, sharing.age(AGE_MAX), || open_devices(process.key.pid));
                process.place = devices.iter().copied().find_map(&mut shared_with);
                process.look_again();
            }
        }
    }

    /// Whether any process has files on the storage.
    pub fn any_place(&self) -> bool {
        self.all.values().any(|process| process.place.is_some())
    }

    /// Begins to count again, beside what is counted since the first sample.
    pub fn mark(&mut self) {
        self.all.values_mut().for_each(|process| process.marked = process.total());
    }

    /// Bytes that each has moved since it started: where a window may begin.
    pub fn totals(&self) -> ProcessTotals {
        self.all.iter().map(|(key, process)| (*key, process.total())).collect()
    }

    /// Counts from earlier totals on, and forgets the processes that ended before.
    pub fn begin_at(&mut self, totals: &ProcessTotals) {
        for (key, process) in &mut self.all {
            process.first = totals.get(key).copied().unwrap_or(process.first);
        }
        let running = &self.running;
        self.all.retain(|key, process| running.get(&key.pid) == Some(key) || process.io().bytes() > 0);
    }

    pub fn iter(&self) -> impl Iterator<Item = &Process> {
        self.all.values()
    }

    /// The process; one without figures where it is not known any more.
    pub fn get(&self, key: ProcessKey) -> Process {
        let unknown =
            || Process { key, leader: key, command: "a program that has ended".into(), ..Process::default() };
        self.all.get(&key).cloned().unwrap_or_else(unknown)
    }

    /// The process that has that number, or had it last.
    pub fn with_pid(&self, pid: u32) -> Option<&Process> {
        let known = || self.all.keys().filter(|key| key.pid == pid).max();
        self.all.get(self.running.get(&pid).or_else(known)?)
    }
}
