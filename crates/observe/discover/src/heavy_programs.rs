//! Programs by their part of each device's I/O between two samples.
//!
//! A process has bytes (`/proc/PID/io`) and open files; a device has bytes (diskstats). The destination of each byte is not
//! known, so a program's part of a device that it has files on is at most: its bytes read of the device's, and its bytes
//! written likewise. Where a program has files on several devices, the one with the largest part is reported. Data written
//! to the page cache count when the program writes it, so that the device's own writes may come later: the denominator is
//! never less than what all programs with files there have moved.

use collect::discovery::Programs;
use host::{DeviceNumber, ProcessIo};
use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

/// Fewer bytes between two samples are no load, whatever part of an idle device they are.
const BYTES_MIN: u64 = 1 << 20;
const SECTOR_BYTES: u64 = 512;
/// Ancestors of the same program that are followed for a process, at most: more is a cycle of reused pids.
const ANCESTORS_MAX: usize = 64;

/// The counters at one instant.
pub(crate) struct IoSample {
    at: Instant,
    /// By pid and start.
    processes: HashMap<(u32, u64), ProcessIo>,
    devices: HashMap<DeviceNumber, ProcessIo>,
}

/// A program's part of a device.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeavyProgram {
    /// The first process of the program.
    pub pid: u32,
    pub device: DeviceNumber,
    /// 0 to 1.
    pub share: f64,
    pub bytes_per_s: f64,
}

/// I/O of one program, and the devices that it has files on.
#[derive(Clone, Debug, Default)]
struct Moved {
    io: ProcessIo,
    devices: BTreeSet<DeviceNumber>,
}

impl IoSample {
    /// Reads the counters of all processes that this user may see.
    pub fn take(programs: &Programs) -> IoSample {
        let io = |pid| ProcessIo::read(pid);
        let processes = programs.iter().filter_map(|it| Some(((it.pid, it.start_ticks), io(it.pid)?)));
        let bytes = |sectors: u64| sectors.saturating_mul(SECTOR_BYTES);
        let devices = host::read_diskstats().unwrap_or_default().into_iter().map(|disk| {
            let io =
                ProcessIo { read_bytes: bytes(disk.reads.sectors), write_bytes: bytes(disk.writes.sectors) };
            (disk.number, io)
        });
        IoSample { at: Instant::now(), processes: processes.collect(), devices: devices.collect() }
    }

    /// The programs that moved anything to speak of since an earlier sample, and their largest part of a device.
    pub fn since(&self, earlier: &IoSample, programs: &Programs) -> Vec<HeavyProgram> {
        let mut moved: HashMap<u32, Moved> = HashMap::new();
        for (key, io) in &self.processes {
            // One that started later began at 0.
            let io = io.minus(earlier.processes.get(key).copied().unwrap_or_default());
            if io.bytes() == 0 || key.0 == std::process::id() || is_of_kernel(key.0) {
                continue;
            }
            let program = moved.entry(first_of_program(key.0, programs)).or_default();
            program.io = program.io.plus(io);
            program.devices.extend(host::open_devices(key.0));
        }
        let devices = self.devices.iter().map(|(number, io)| {
            (*number, io.minus(earlier.devices.get(number).copied().unwrap_or_default()))
        });
        let seconds = self.at.duration_since(earlier.at).as_secs_f64().max(1e-3);
        parts(&moved, &devices.collect(), seconds)
    }
}

/// A thread of the kernel writes for others.
fn is_of_kernel(pid: u32) -> bool {
    host::program_of(pid).is_none() && host::arguments_of(pid).is_empty()
}

/// The first of its ancestors in a row that run the same program, or itself.
fn first_of_program(pid: u32, programs: &Programs) -> u32 {
    let mut first = pid;
    for _ in 0..ANCESTORS_MAX {
        let parent = programs
            .get(first)
            .and_then(|program| programs.get(program.parent).filter(|parent| parent.name == program.name));
        match parent {
            Some(parent) => first = parent.pid,
            None => break,
        }
    }
    first
}

fn parts(
    moved: &HashMap<u32, Moved>,
    devices: &HashMap<DeviceNumber, ProcessIo>,
    seconds: f64,
) -> Vec<HeavyProgram> {
    let mut by_programs: HashMap<DeviceNumber, ProcessIo> = HashMap::new();
    for program in moved.values() {
        for device in &program.devices {
            let sum = by_programs.entry(*device).or_default();
            // Of a program with files on many devices at most the device's own I/O was on it.
            *sum = sum.plus(at_most(program.io, devices.get(device).copied().unwrap_or_default(), program));
        }
    }
    let part = |program: &Moved, device: &DeviceNumber| {
        let did = devices.get(device).copied().unwrap_or_default();
        let all = did.bytes().max(by_programs.get(device).copied().unwrap_or_default().bytes());
        at_most(program.io, did, program).bytes() as f64 / all.max(1) as f64
    };
    let largest = |program: &Moved| {
        let parts = program.devices.iter().map(|device| (*device, part(program, device).min(1.0)));
        parts.max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let big = moved.iter().filter(|(_, program)| program.io.bytes() >= BYTES_MIN);
    let mut found: Vec<HeavyProgram> = big
        .filter_map(|(pid, program)| {
            let (device, share) = largest(program)?;
            Some(HeavyProgram { pid: *pid, device, share, bytes_per_s: program.io.bytes() as f64 / seconds })
        })
        .collect();
    found.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.pid.cmp(&b.pid)));
    found
}

/// The part of a program's bytes that can have been on a device: all where the program has files on no other, else at most
/// the device's own bytes.
fn at_most(io: ProcessIo, device: ProcessIo, program: &Moved) -> ProcessIo {
    if program.devices.len() == 1 {
        return io;
    }
    ProcessIo {
        read_bytes: io.read_bytes.min(device.read_bytes),
        write_bytes: io.write_bytes.min(device.write_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn number(minor: u32) -> DeviceNumber {
        DeviceNumber { major: 8, minor }
    }

    fn io(read: u64, write: u64) -> ProcessIo {
        ProcessIo { read_bytes: read * MIB, write_bytes: write * MIB }
    }

    fn moved(pid: u32, io: ProcessIo, minors: &[u32]) -> (u32, Moved) {
        (pid, Moved { io, devices: minors.iter().map(|minor| number(*minor)).collect() })
    }

    #[test]
    fn a_program_has_the_part_that_its_bytes_are_of_the_devices() {
        let programs = HashMap::from([moved(7, io(0, 30), &[1]), moved(8, io(10, 0), &[1])]);
        let devices = HashMap::from([(number(1), io(10, 90))]);
        let found = parts(&programs, &devices, 2.0);
        assert_eq!(
            found[0],
            HeavyProgram { pid: 7, device: number(1), share: 0.3, bytes_per_s: (15 * MIB) as f64 }
        );
        assert_eq!((found[1].pid, found[1].share), (8, 0.1));
    }

    #[test]
    fn what_the_page_cache_still_holds_is_no_part_above_one() {
        let programs = HashMap::from([moved(7, io(0, 100), &[1]), moved(8, io(0, 300), &[1])]);
        let found = parts(&programs, &HashMap::from([(number(1), io(0, 4))]), 1.0);
        assert_eq!(found.iter().map(|one| one.share).collect::<Vec<_>>(), [0.75, 0.25]);
    }

    #[test]
    fn of_several_devices_the_one_that_was_busy_is_named() {
        let programs = HashMap::from([moved(7, io(0, 50), &[1, 2])]);
        let devices = HashMap::from([(number(1), io(0, 1)), (number(2), io(0, 100))]);
        let found = parts(&programs, &devices, 1.0);
        // All that the first did may be the program's; the second is where its bytes can have been.
        assert_eq!(found.len(), 1);
        assert!(found[0].share > 0.49, "{found:?}");
    }

    #[test]
    fn little_is_no_load_on_an_idle_device() {
        let small = ProcessIo { read_bytes: 0, write_bytes: 4096 };
        let programs = HashMap::from([moved(7, small, &[1])]);
        assert_eq!(parts(&programs, &HashMap::from([(number(1), small)]), 1.0), []);
    }
}
