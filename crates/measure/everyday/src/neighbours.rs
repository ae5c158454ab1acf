//! Programs of this host that use the same storage as a database.
//!
//! ```text
//! sample()  /proc/PID/io, parents, open devices ─> processes.rs    bytes of each process, and where its files lie
//!           BPF (DeviceUsers), where permitted                     I/Os and bytes of each process on each disk
//! found()   processes ─> families (a server and its children) ─> their part of the device's I/O
//! ```

mod host_reading;
mod processes;
mod shared_users;

use crate::recent::{SAMPLED_TOGETHER, Sharing};
use collect::process::{Queued, UserOfDevice};
use host::{DeviceNumber, ProcessIo, device_chain};
use host_reading::{ProcessReading, read_processes};
use processes::{Process, ProcessKey, ProcessTotals, Processes};
use shared_users::SharedUsers;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use verdict::Neighbour;
use workload::DeviceKind;

/// Programs that use the disk of a database, a disk that it lies on, or a device that lies on that.
pub struct Neighbours {
    storage: Storage,
    processes: Processes,
    counting: Counting,
    sharing: Sharing,
    /// The last reading of all processes.
    last: Option<Arc<Vec<ProcessReading>>>,
    /// Where a window may begin, the oldest first: at most one in [`BEGINNINGS_APART`] of the window.
    beginnings: VecDeque<Beginning>,
    /// Counts before the window.
    counted_before: HashMap<UserOfDevice, Queued>,
}

/// The counters at an instant.
struct Beginning {
    at: Instant,
    totals: ProcessTotals,
    counted: HashMap<UserOfDevice, Queued>,
}

/// The I/Os of each process, counted in the kernel.
enum Counting {
    /// No other program was seen there: a database that is alone there is not watched.
    NotNeeded,
    /// Not permitted, or not possible on this kernel.
    Unavailable,
    Since(SharedUsers),
}

/// A smaller share of the I/O is not worth a name.
const SHARE_MIN: f64 = 0.05;
/// Neighbours that are named, at most.
const NAMED_MAX: usize = 5;
/// Fewer I/Os say nothing of shares.
const COUNTED_MIN: u64 = 100;
/// A window begins up to this much earlier than it should: the table of the I/Os is read as often.
const BEGINNINGS_APART: Duration = Duration::from_secs(5);

/// The whole disks that a database lies on.
struct Storage {
    /// The database's own first, then what it lies on.
    disks: Vec<DeviceNumber>,
    /// The one of `disks` that a device is or lies on, once it was looked up.
    known: HashMap<DeviceNumber, Option<DeviceNumber>>,
}

impl Storage {
    fn shared_with(&mut self, device: DeviceNumber) -> Option<DeviceNumber> {
        let disks = &self.disks;
        let find = || disks_of(device).into_iter().find(|disk| disks.contains(disk));
        *self.known.entry(device).or_insert_with(find)
    }

    fn depth(&self, disk: DeviceNumber) -> usize {
        self.disks.iter().position(|known| *known == disk).unwrap_or(0)
    }

    fn neighbour(&self, leader: &Process, part: Part) -> Neighbour {
        let below = self.disks.get(part.depth).filter(|_| part.depth > 0);
        Neighbour {
            pid: leader.key.pid,
            command: leader.command.clone(),
            device: below.and_then(|disk| host::device_name(*disk)),
            bytes: part.bytes,
            share: part.share,
            operations: part.ios,
            operations_share: part.ios_share,
        }
    }
}

/// The device's disk and all below it. All partitions of a disk share it.
fn disks_of(device: DeviceNumber) -> Vec<DeviceNumber> {
    let chain = device_chain(device).into_iter().filter(|facts| facts.kind != DeviceKind::Partition);
    chain.filter_map(|facts| DeviceNumber::parse(&facts.number)).collect()
}

/// A program with the processes of the same program that it started: a server, or a parallel copy.
#[derive(Default)]
struct Family {
    /// Since the first sample.
    io: ProcessIo,
    /// While the I/Os were counted.
    io_counted: ProcessIo,
    /// The disk of the database that it has files on; the database's own for itself.
    place: Option<DeviceNumber>,
    /// On each disk of the host.
    queued: HashMap<DeviceNumber, Queued>,
}

/// The part of a disk's I/O that a family did.
#[derive(Clone, Copy, Default)]
struct Part {
    /// The disk's place in [`Storage::disks`].
    depth: usize,
    bytes: u64,
    share: f64,
    ios: Option<u64>,
    ios_share: Option<f64>,
}

impl Part {
    fn largest(&self) -> f64 {
        self.share.max(self.ios_share.unwrap_or(0.0))
    }
}

impl Neighbours {
    /// Of a device by its number, "254:0".
    pub fn new(device: &str) -> Option<Neighbours> {
        let disks = disks_of(DeviceNumber::parse(device)?);
        let storage = Storage { disks, known: HashMap::new() };
        Some(Neighbours {
            storage,
            processes: Processes::default(),
            counting: Counting::NotNeeded,
            sharing: Sharing::Never,
            last: None,
            beginnings: VecDeque::new(),
            counted_before: HashMap::new(),
        })
    }

    /// Forgets what was done before the window that ends now.
    pub fn keep_newest(&mut self, window: Duration) {
        let now = Instant::now();
        let last = self.beginnings.back().map(|last| last.at);
        if last.is_none_or(|last| now.duration_since(last) >= BEGINNINGS_APART) {
            let (totals, (counted, is_full)) = (self.processes.totals(), self.read_counted());
            if is_full {
                self.count_again();
                return;
            }
            self.beginnings.push_back(Beginning { at: now, totals, counted });
        }
        // The newest of those that lie before it.
        let before = self.beginnings.partition_point(|one| now.duration_since(one.at) >= window);
        if let Some(begin) = self.beginnings.drain(..before).next_back() {
            self.processes.begin_at(&begin.totals);
            self.counted_before = begin.counted;
        }
    }

    /// Begins with an empty table: the kernel counts no new process once it is full.
    fn count_again(&mut self) {
        self.counting = SharedUsers::open().map_or(Counting::Unavailable, Counting::Since);
        self.processes.mark();
        self.counted_before.clear();
        self.beginnings.clear();
    }

    /// I/Os of each process on each disk since they are counted, and whether the table will soon be full.
    fn read_counted(&self) -> (HashMap<UserOfDevice, Queued>, bool) {
        match &self.counting {
            Counting::Since(users) => users.read(self.sharing.age(SAMPLED_TOGETHER)),
            Counting::NotNeeded | Counting::Unavailable => (HashMap::new(), false),
        }
    }

    /// Adds what each process has moved since the last sample. Processes of other users are seen by root only.
    pub fn sample(&mut self, database: &[u32], sharing: Sharing) {
        self.sharing = sharing;
        let processes = read_processes(sharing);
        if self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &processes)) {
            return;
        }
        self.processes.sample(&processes);
        self.last = Some(processes);
        let storage = &mut self.storage;
        let is_other = |process: &Process| !is_database(process, database);
        self.processes.find_places(sharing, is_other, |device| storage.shared_with(device));
        if matches!(self.counting, Counting::NotNeeded) && self.processes.any_place() {
            self.counting = SharedUsers::open().map_or(Counting::Unavailable, Counting::Since);
            self.processes.mark();
        }
    }

    /// Those beside the database and this program, with their part of the device's I/O, or, where that cannot be counted, of
    /// the bytes that all processes with files there moved, the database's included.
    pub fn found(&mut self, database: &[u32]) -> Vec<Neighbour> {
        let (mut counted, _) = self.read_counted();
        for (user, queued) in &mut counted {
            *queued = queued.minus(self.counted_before.get(user).copied().unwrap_or_default());
        }
        let on_disk = |disk: &DeviceNumber| -> u64 {
            counted.iter().filter(|((_, device), _)| device == disk).map(|(_, queued)| queued.ios()).sum()
        };
        let is_counted = self.storage.disks.iter().any(|disk| on_disk(disk) >= COUNTED_MIN);
        let families = self.families(&counted, database);
        let there = families.values().filter(|family| family.place.is_some());
        let all_bytes: u64 = there.map(|family| family.io.bytes()).sum();
        let unseen = Unseen::sum(families.values());
        let mut found: Vec<(Part, Neighbour)> = Vec::new();
        for (key, family) in &families {
            let leader = self.processes.get(*key);
            if is_database(&leader, database) {
                continue;
            }
            let part = match (is_counted, family.place) {
                (true, _) => counted_part(family, &mut self.storage, &counted, &unseen),
                (false, Some(place)) => Part {
                    depth: self.storage.depth(place),
                    bytes: family.io.bytes(),
                    share: share(family.io.bytes() as f64, all_bytes),
                    ..Part::default()
                },
                (false, None) => continue,
            };
            found.push((part, self.storage.neighbour(&leader, part)));
        }
        found.retain(|(part, _)| part.largest() >= SHARE_MIN);
        // The disks below are larger and others' too: what is much there may be nothing to the database.
        let order = |(part, one): &(Part, Neighbour)| {
            (!one.does_much(), if one.does_much() { part.depth } else { 0 })
        };
        found.sort_by(|a, b| {
            let by_part = b.0.largest().total_cmp(&a.0.largest());
            order(a).cmp(&order(b)).then(by_part).then(a.1.pid.cmp(&b.1.pid))
        });
        found.into_iter().map(|(_, one)| one).take(NAMED_MAX).collect()
    }

    fn families(
        &self,
        counted: &HashMap<UserOfDevice, Queued>,
        database: &[u32],
    ) -> HashMap<ProcessKey, Family> {
        // A process of the database stands alone where the one that started it is no part of the database.
        let leader_of =
            |process: &Process| if is_database(process, database) { process.key } else { process.leader };
        let mut families: HashMap<ProcessKey, Family> = HashMap::new();
        for process in self.processes.iter() {
            let family = families.entry(leader_of(process)).or_default();
            if is_database(process, database) {
                family.place = self.storage.disks.first().copied();
            }
            family.io = family.io.plus(process.io());
            family.io_counted = family.io_counted.plus(process.io_since_mark());
            family.place = family.place.or(process.place);
        }
        for ((pid, device), queued) in counted {
            let Some(leader) = self.processes.with_pid(*pid).map(leader_of) else { continue };
            let sum = families.entry(leader).or_default().queued.entry(*device).or_default();
            *sum = sum.plus(*queued);
        }
        families
    }
}

fn is_database(process: &Process, database: &[u32]) -> bool {
    static OWN: LazyLock<u32> = LazyLock::new(std::process::id);
    let is_one = |pid: u32| pid == *OWN || database.contains(&pid);
    is_one(process.key.pid) || is_one(process.leader.pid)
}

fn share(part: f64, all: u64) -> f64 {
    (part / all.max(1) as f64).min(1.0)
}

impl Family {
    /// Bytes it moved without queueing them itself: those it wrote to the page cache, and those that had to wait for the
    /// limit of a control group. Threads of the kernel queue these.
    fn unseen(&self) -> ProcessIo {
        let seen = self.queued.values().copied().fold(Queued::default(), Queued::plus);
        self.io_counted.minus(ProcessIo { read_bytes: seen.read_bytes, write_bytes: seen.write_bytes })
    }
}

/// Bytes that all families with files on a disk moved without queueing them themselves.
struct Unseen(HashMap<DeviceNumber, ProcessIo>);

impl Unseen {
    fn sum<'f>(families: impl Iterator<Item = &'f Family>) -> Unseen {
        let mut sums: HashMap<DeviceNumber, ProcessIo> = HashMap::new();
        for (place, family) in families.filter_map(|family| Some((family.place?, family))) {
            let sum = sums.entry(place).or_default();
            *sum = sum.plus(family.unseen());
        }
        Unseen(sums)
    }

    /// I/Os and bytes that threads of the kernel queued for the family on its disk: its part of theirs by bytes, but not
    /// more bytes than it moved.
    fn queued_by_kernel(&self, family: &Family, disk: DeviceNumber, kernel: Queued) -> (f64, f64) {
        let (own, all) = (family.unseen(), self.0.get(&disk).copied().unwrap_or_default());
        let reads = share(own.read_bytes as f64, kernel.read_bytes.max(all.read_bytes));
        let writes = share(own.write_bytes as f64, kernel.write_bytes.max(all.write_bytes));
        let of = |of_reads: u64, of_writes: u64| reads * of_reads as f64 + writes * of_writes as f64;
        (of(kernel.reads, kernel.writes), of(kernel.read_bytes, kernel.write_bytes))
    }
}

/// The largest part of a disk of the database that the family has. An I/O passes
/// several disks as one of its process in device mapper and md, so that parts are not added up.
fn counted_part(
    family: &Family,
    storage: &mut Storage,
    counted: &HashMap<UserOfDevice, Queued>,
    unseen: &Unseen,
) -> Part {
    let devices = family.queued.keys().copied().chain(family.place);
    let parts = devices.filter_map(|device| {
        let disk = storage.shared_with(device)?;
        let on_disk = counted.iter().filter(|((_, device), _)| *device == disk);
        let all = on_disk.map(|(_, queued)| *queued).fold(Queued::default(), Queued::plus);
        let own = family.queued.get(&device).copied().unwrap_or_default();
        let (mut ios, mut bytes) = (own.ios() as f64, own.bytes() as f64);
        if family.place == Some(device) {
            let kernel = counted.get(&(0, disk)).copied().unwrap_or_default();
            let (more_ios, more_bytes) = unseen.queued_by_kernel(family, disk, kernel);
            (ios, bytes) = (ios + more_ios, bytes + more_bytes);
        }
        Some(Part {
            depth: storage.depth(disk),
            bytes: bytes as u64,
            share: share(bytes, all.bytes()),
            ios: Some(ios as u64),
            ios_share: Some(share(ios, all.ios())),
        })
    });
    parts.max_by(|a, b| a.largest().total_cmp(&b.largest())).unwrap_or_default()
}

#[cfg(test)]
mod tests;
