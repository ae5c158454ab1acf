use host::{DeviceNumber, ProcessIo, ProcessStat, device_chain, open_devices};
use std::collections::{BTreeSet, HashMap};
use verdict::Neighbour;

/// Programs of this host that use the same storage as a database: the device, what it lies on, or what lies on that.
pub struct Neighbours {
    /// The device and all below it.
    chain: BTreeSet<String>,
    processes: HashMap<u32, Process>,
    /// Whether a device shares storage with `chain`, once it was looked up.
    shares: HashMap<DeviceNumber, bool>,
}

struct Process {
    start_ticks: u64,
    last: ProcessIo,
    /// Since the first sample.
    bytes: u64,
    /// Whether it was seen with a file on that storage.
    is_there: bool,
}

/// What moved less than this in an observation is not looked at more closely.
const BYTES_MIN: u64 = 1 << 20;
/// A smaller share of the I/O is not worth a name.
const SHARE_MIN: f64 = 0.05;
/// So many are named.
const NAMED_MAX: usize = 5;

impl Neighbours {
    /// Of a device by its number, "254:0".
    pub fn new(device: &str) -> Option<Neighbours> {
        let chain = numbers_of_chain(DeviceNumber::parse(device)?);
        Some(Neighbours { chain, processes: HashMap::new(), shares: HashMap::new() })
    }

    /// Adds what each process has moved since the last sample. Processes of other users are seen by root only.
    pub fn sample(&mut self) {
        for pid in host::pids().unwrap_or_default() {
            let Some((io, stat)) = ProcessIo::read(pid).zip(ProcessStat::read(pid)) else { continue };
            let known =
                self.processes.get(&pid).is_some_and(|process| process.start_ticks == stat.start_ticks);
            if !known {
                let new = Process { start_ticks: stat.start_ticks, last: io, bytes: 0, is_there: false };
                self.processes.insert(pid, new);
                continue;
            }
            let Some(process) = self.processes.get_mut(&pid) else { continue };
            process.bytes = process.bytes.saturating_add(io.bytes().saturating_sub(process.last.bytes()));
            process.last = io;
            if !process.is_there && process.bytes >= BYTES_MIN {
                let devices = open_devices(pid);
                process.is_there =
                    devices.into_iter().any(|device| shares(&self.chain, &mut self.shares, device));
            }
        }
    }

    /// Those beside the database and this program, the largest first, with their part of what all processes on this storage
    /// moved, the database's included.
    pub fn found(&self, database: &[u32]) -> Vec<Neighbour> {
        let own = std::process::id();
        let is_database = |pid: u32| pid == own || database.contains(&pid);
        let counted =
            || self.processes.iter().filter(|(pid, process)| process.is_there || is_database(**pid));
        let all: u64 = counted().map(|(_, process)| process.bytes).sum();
        let mut found: Vec<Neighbour> = counted()
            .filter(|(pid, _)| !is_database(**pid))
            .map(|(pid, process)| Neighbour {
                pid: *pid,
                command: host::command_name(*pid).unwrap_or_else(|| "a program that has ended".into()),
                bytes: process.bytes,
                share: process.bytes as f64 / all.max(1) as f64,
            })
            .filter(|neighbour| neighbour.share >= SHARE_MIN)
            .collect();
        found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.pid.cmp(&b.pid)));
        found.truncate(NAMED_MAX);
        found
    }
}

fn numbers_of_chain(device: DeviceNumber) -> BTreeSet<String> {
    device_chain(device).into_iter().map(|facts| facts.number).collect()
}

fn shares(chain: &BTreeSet<String>, known: &mut HashMap<DeviceNumber, bool>, device: DeviceNumber) -> bool {
    *known.entry(device).or_insert_with(|| !numbers_of_chain(device).is_disjoint(chain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;
    use std::process::{Command, Stdio};

    #[test]
    fn a_program_that_writes_to_the_same_storage_is_named_with_its_share() {
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let number = DeviceNumber::from_dev(file.metadata().unwrap().dev());
        let Some(mut neighbours) = Neighbours::new(&number.to_string()).filter(|it| !it.chain.is_empty())
        else {
            eprintln!("skipped: the repository lies on no block device");
            return;
        };
        let target = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut cat =
            Command::new("cat").stdin(Stdio::piped()).stdout(target.reopen().unwrap()).spawn().unwrap();
        neighbours.sample();
        let mut input = cat.stdin.take().unwrap();
        input.write_all(&vec![7; 64 << 20]).unwrap();
        // The database of this test is this process.
        file.write_all(&vec![7; 16 << 20]).unwrap();
        let found = loop {
            neighbours.sample();
            let found = neighbours.found(&[]);
            if found.iter().any(|one| one.pid == cat.id() && one.bytes >= 63 << 20) {
                break found;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        };
        drop(input);
        cat.wait().unwrap();
        let it = found.iter().find(|one| one.pid == cat.id()).unwrap();
        assert_eq!(it.command, "cat");
        // Others may write meanwhile.
        assert!(it.share > 0.05 && it.share < 0.85, "{found:?}");
        assert!(found.iter().all(|one| one.pid != std::process::id()));
    }
}
