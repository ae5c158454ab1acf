//! Files that a source counts together though they lie on several volumes, as PostgreSQL does its tablespaces.
//!
//! Each volume gets as many bytes as its device moved, and the time that its device took, or its part of them where the devices
//! did more. The other bytes are the first's: what the page cache answered. The other time is that of a volume whose cap was
//! reached, else of the one that moved most. I/O that is counted apart on such a volume, as that of a log, is taken off its
//! device first. Others' I/O on a device counts as the database's. The verdict reports all that as a doubt.

use filestats::{Counters, Delta, Figure, FileInterval, FileKind, Interval, Ops};
use verdict::{Moment, caps_used};
use workload::CapKind;

/// A volume's part of what is counted together.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    read: Ops,
    write: Ops,
}

/// The volumes that held I/O back above their devices: where the time lies that no device took.
#[derive(Clone, Copy, Debug)]
struct HeldBack {
    read: usize,
    write: usize,
}

/// Divides the files of the first volume, in each of its moments, among all of these volumes.
pub(crate) fn divide_moments(volumes: &mut [Vec<Moment>]) {
    // A volume that was found later has the last moments only.
    let moments = volumes.iter().map(Vec::len).min().unwrap_or(0);
    let parts_of = |back: usize| -> Vec<Part> {
        let parts = volumes.iter().enumerate();
        parts.map(|(at, all)| Part::new(&all[all.len() - 1 - back], at == 0)).collect()
    };
    let parts: Vec<Vec<Part>> = (0..moments).map(parts_of).collect();
    // In all moments: a source that reports late reports the time of another moment.
    let held_back = |of: fn(&Part) -> Ops, caps: [CapKind; 2]| {
        let moved = |at: usize| sum(parts.iter().map(|moment| of(&moment[at]).bytes));
        let capped = |at: usize| {
            caps_used(&volumes[at]).iter().any(|used| caps.contains(&used.cap.kind) && used.is_reached())
        };
        // Of equals the first.
        (0..volumes.len()).rev().max_by_key(|at| (capped(*at), moved(*at))).unwrap_or(0)
    };
    let held_back = HeldBack {
        read: held_back(|part| part.read, [CapKind::ReadIops, CapKind::ReadBytes]),
        write: held_back(|part| part.write, [CapKind::WriteIops, CapKind::WriteBytes]),
    };
    for (back, parts) in parts.iter().enumerate() {
        let at = volumes[0].len() - 1 - back;
        let files: Vec<FileInterval> = std::mem::take(&mut volumes[0][at].files).into();
        let (together, apart): (Vec<_>, Vec<_>) = files.into_iter().partition(is_divisible);
        volumes[0][at].files = apart.into();
        let moved = |of: fn(&Counters) -> Ops| {
            let known = together.iter().filter_map(|file| file.interval.known());
            sum(known.map(|delta| of(&delta.counters).bytes))
        };
        let all = (moved(|counters| counters.read), moved(|counters| counters.write));
        for file in together {
            let parts = parts_of_file(&file, parts, all);
            for (volume, file) in volumes.iter_mut().zip(divide(file, &parts, held_back)) {
                let at = volume.len() - 1 - back;
                volume[at].files.push(file);
            }
        }
    }
}

/// Whether a file may stand for others on further volumes.
fn is_divisible(file: &FileInterval) -> bool {
    matches!(file.file.kind, FileKind::Data | FileKind::Temp | FileKind::Other)
}

impl Part {
    /// Of a volume by what its device did, less what files did that are counted apart there.
    fn new(moment: &Moment, is_first: bool) -> Part {
        let Some(device) = moment.device() else { return Part { read: Ops::ZERO, write: Ops::ZERO } };
        let apart = moment.files.iter().filter(|file| !(is_first && is_divisible(file)));
        let apart = apart.filter_map(|file| file.interval.known());
        let apart = apart.fold((0_u64, 0_u64), |(read, write), delta| {
            let counters = &delta.counters;
            (read.saturating_add(counters.read.count), write.saturating_add(counters.write.count))
        });
        let without = |ops: Ops, apart: u64| less(ops, share(ops.count.saturating_sub(apart), ops.count));
        Part { read: without(device.counters.read, apart.0), write: without(device.counters.write, apart.1) }
    }
}

/// Each file has the part of what the devices did that its bytes are of all such files, whose reads and writes are `all`.
fn parts_of_file(file: &FileInterval, parts: &[Part], all: (u64, u64)) -> Vec<Part> {
    let Some(delta) = file.interval.known() else { return Vec::new() };
    let (read, write) = (delta.counters.read.bytes, delta.counters.write.bytes);
    let (read, write) = (share(read, all.0), share(write, all.1));
    parts.iter().map(|part| Part { read: less(part.read, read), write: less(part.write, write) }).collect()
}

/// Fewer operations, each as large and as long.
fn less(ops: Ops, share: f64) -> Ops {
    Ops {
        count: scaled(ops.count, share),
        bytes: scaled(ops.bytes, share),
        stall_ns: ops.stall_ns.map(|ns| scaled(ns, share)),
    }
}

fn sum(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, u64::saturating_add)
}

fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

fn scaled(value: u64, share: f64) -> u64 {
    (value as f64 * share) as u64
}

/// The file's interval on each volume, the first among them; all of it there where it is unknown.
fn divide(file: FileInterval, parts: &[Part], held_back: HeldBack) -> Vec<FileInterval> {
    let Interval::Known(delta) = &file.interval else { return vec![file] };
    let counters = &delta.counters;
    let reads: Vec<Ops> = parts.iter().map(|part| part.read).collect();
    let writes: Vec<Ops> = parts.iter().map(|part| part.write).collect();
    let read = divide_ops(counters.read, &reads, held_back.read);
    let write = divide_ops(counters.write, &writes, held_back.write);
    let sync = counters.sync.map(|sync| divide_ops(sync, &writes, held_back.write));
    let on = |at: usize| {
        let sync = match &sync {
            Figure::Known(parts) => Figure::Known(parts[at]),
            Figure::Unknown { unknown } => Figure::unknown(*unknown),
        };
        let counters = Counters { read: read[at], write: write[at], sync, ..*counters };
        let interval = Interval::Known(Delta { counters, latencies: None, ..*delta });
        FileInterval { interval, ..file.clone() }
    };
    (0..parts.len()).map(on).collect()
}

/// Bytes that the devices did not move are the first's. Time that they did not take is that of one volume: a throttle or a
/// file system above its device holds its I/O back.
fn divide_ops(all: Ops, parts: &[Ops], held_back: usize) -> Vec<Ops> {
    let bytes = sum(parts.iter().map(|part| part.bytes));
    let times = sum(parts.iter().filter_map(|part| part.stall_ns.known()));
    let of_device = |part: &Ops, ns: u64| match part.stall_ns {
        Figure::Known(own) if times > ns => scaled(ns, share(own, times)),
        Figure::Known(own) => own,
        Figure::Unknown { .. } => 0,
    };
    let divided = parts.iter().map(|part| {
        let share = share(part.bytes, bytes.max(all.bytes));
        Ops {
            count: scaled(all.count, share),
            bytes: scaled(all.bytes, share),
            stall_ns: all.stall_ns.map(|ns| of_device(part, ns)),
        }
    });
    let mut divided: Vec<Ops> = divided.collect();
    let left = |of: fn(&Ops) -> u64| of(&all).saturating_sub(sum(divided.iter().map(of)));
    let (count, bytes) = (left(|ops| ops.count), left(|ops| ops.bytes));
    let ns = left(|ops| ops.stall_ns.known().unwrap_or(0));
    divided[0].count = divided[0].count.saturating_add(count);
    divided[0].bytes = divided[0].bytes.saturating_add(bytes);
    divided[held_back].stall_ns = divided[held_back].stall_ns.map(|own| own.saturating_add(ns));
    divided
}

#[cfg(test)]
mod tests {
    use super::*;
    use filestats::{FileIdentity, Meaning, Reason};
    use verdict::CapUse;
    use workload::Cap;

    const MS: u64 = 1_000_000;

    fn delta(read: Ops, write: Ops) -> Delta {
        let busy_ns = Figure::unknown(Reason::NotCounted);
        let counters = Counters { read, write, sync: Figure::Known(Ops::ZERO), busy_ns };
        Delta { elapsed_ns: 1_000 * MS, counters, latencies: None }
    }

    fn file(kind: FileKind, delta: Delta) -> FileInterval {
        FileInterval {
            file: FileIdentity { kind, ..FileIdentity::default() }.into(),
            meaning: Meaning::BLOCKS,
            ended_unix_ns: 0,
            interval: Interval::Known(delta),
        }
    }

    fn moment(device: Delta, files: Vec<FileInterval>) -> Moment {
        Moment { files: files.into(), device: Some(file(FileKind::Device, device)), ..Moment::default() }
    }

    fn read(moment: &Moment) -> Ops {
        moment.files.last().unwrap().interval.known().unwrap().counters.read
    }

    fn ms(ops: Ops) -> u64 {
        ops.stall_ns.known().unwrap() / MS
    }

    /// 100 reads of 1 ms and 300 of 2 ms at the devices; the database counts these, 401 of the page cache, and a log.
    fn reads_of(ns: u64) -> [Vec<Moment>; 2] {
        let fast = delta(Ops::timed(100, 100 * 8192, 100 * MS), Ops::timed(50, 50 * 8192, 50 * MS));
        let slow = delta(Ops::timed(300, 300 * 8192, 600 * MS), Ops::ZERO);
        let log = file(FileKind::Log, delta(Ops::ZERO, Ops::timed(50, 50 * 8192, MS)));
        let data =
            file(FileKind::Data, delta(Ops::timed(801, 801 * 8192, ns), Ops::timed(10, 10 * 8192, MS)));
        [vec![moment(fast, vec![log, data])], vec![moment(slow, vec![])]]
    }

    #[test]
    fn each_volume_gets_what_its_device_did_and_the_rest_of_the_time_is_where_most_was_read() {
        let mut volumes = reads_of(9_000 * MS);
        divide_moments(&mut volumes);
        let [first, second] = volumes.map(|moments| moments[0].clone());
        assert_eq!((read(&first).count, read(&second).count), (501, 300));
        assert_eq!(read(&first).bytes + read(&second).bytes, 801 * 8192);
        assert_eq!((ms(read(&first)), ms(read(&second))), (100, 8_900), "a throttle held the second back");
        assert_eq!(first.files[0].file.kind, FileKind::Log, "counted apart");
        let written = second.files[0].interval.known().unwrap().counters.write.count;
        assert_eq!(written, 0, "the first's device wrote the log alone, and the page cache has the rest");

        let mut volumes = reads_of(70 * MS);
        divide_moments(&mut volumes);
        let [first, second] = volumes.map(|moments| moments[0].clone());
        assert_eq!((ms(read(&first)), ms(read(&second))), (10, 60), "others waited for the devices as well");
    }

    #[test]
    fn the_rest_of_the_time_is_where_a_cap_of_that_direction_was_reached() {
        let with_cap = |kind: CapKind, counted: u64| {
            let mut volumes = reads_of(9_000 * MS);
            let cap = Cap { kind, per_second: 100, device: "7:0".into(), origin: "/blkio".into() };
            volumes[0][0].caps = vec![CapUse { cap, counted, elapsed_ns: 1_000 * MS }];
            divide_moments(&mut volumes);
            volumes.map(|moments| ms(read(&moments[0])))
        };
        assert_eq!(with_cap(CapKind::ReadIops, 100), [8_400, 600]);
        assert_eq!(with_cap(CapKind::ReadIops, 50), [100, 8_900], "far from the cap");
        assert_eq!(with_cap(CapKind::WriteIops, 100), [100, 8_900], "of the other direction");
    }

    #[test]
    fn what_the_devices_did_is_given_once_however_many_files_there_are() {
        let mut volumes = reads_of(9_000 * MS);
        let file_of = |part: u64| {
            let read = Ops::timed(100 * part, 100 * part * 8192, 1_000 * part * MS);
            file(FileKind::Data, delta(read, Ops::ZERO))
        };
        volumes[0][0].files = vec![file_of(3), file_of(5)].into();
        divide_moments(&mut volumes);
        let counts = |at: usize| {
            let files = volumes[at][0].files.iter();
            files.map(|file| file.interval.known().unwrap().counters.read.count).collect::<Vec<u64>>()
        };
        assert_eq!((counts(0), counts(1)), (vec![188, 313], vec![112, 187]));
        let ns = |at: usize| {
            volumes[at][0]
                .files
                .iter()
                .map(|file| file.interval.known().unwrap().counters.read.stall_ns.known().unwrap())
        };
        let (first, second) = (ns(0).sum::<u64>(), ns(1).sum::<u64>());
        assert!((99..=100).contains(&(first / MS)), "{first}");
        assert_eq!(first + second, 8_000 * MS);
    }

    #[test]
    fn time_that_is_reported_late_is_where_most_was_read_in_all_moments() {
        let mut volumes = reads_of(9_000 * MS);
        // Only the first's device did anything in this moment, and the second was not there in the one before.
        let few = delta(Ops::timed(5, 5 * 8192, 5 * MS), Ops::ZERO);
        let late = file(FileKind::Data, delta(Ops::timed(40, 40 * 8192, 4_000 * MS), Ops::ZERO));
        let before = moment(few.clone(), vec![late.clone()]);
        volumes[0].insert(0, before.clone());
        volumes[0].push(moment(few, vec![late]));
        volumes[1].push(moment(delta(Ops::ZERO, Ops::ZERO), vec![]));
        divide_moments(&mut volumes);
        let last = |at: usize| read(volumes[at].last().unwrap());
        assert_eq!((last(0).count, last(1).count), (40, 0));
        assert_eq!((ms(last(0)), ms(last(1))), (5, 3_995));
        assert_eq!(volumes[0][0], before);
    }

    #[test]
    fn what_is_unknown_or_did_not_reach_a_device_is_on_the_first() {
        let quiet = || delta(Ops::ZERO, Ops::ZERO);
        let cached = Ops::timed(70, 70 * 8192, MS);
        let untimed = Ops { stall_ns: Figure::unknown(Reason::TimingOff), ..cached };
        let data = file(FileKind::Data, delta(cached, untimed));
        let gone = FileInterval { interval: Interval::Unknown(Reason::Restart), ..data.clone() };
        let mut volumes = [vec![moment(quiet(), vec![gone.clone(), data])], vec![moment(quiet(), vec![])]];
        divide_moments(&mut volumes);
        let counters: Vec<Counters> = volumes
            .iter()
            .map(|all| all[0].files.last().unwrap().interval.known().unwrap().counters)
            .collect();
        assert_eq!((counters[0].read, counters[0].write), (cached, untimed));
        assert_eq!((counters[1].read.count, counters[1].write.count), (0, 0));
        assert_eq!(volumes[0][0].files[0], gone);
    }
}
