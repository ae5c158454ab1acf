//! I/Os of block devices for which the programs were not called.
//!
//! A kernel may complete a request without running a program: where completions nest, or where certain tasks must not
//! be interrupted by programs. The device's own statistics have these I/Os, the programs' count lacks them:
//!
//! ```text
//! open      programs attached ─ what they saw ─ /proc/diskstats             the base
//! snapshot                      /proc/diskstats ─ what they saw             stat - base - seen > 0: unseen
//! ```
//!
//! Of each pair, the count that must be smaller is read first, and the kernel calls the programs before it updates the
//! statistics. So the result is a lower bound.

use super::tables::Seen;
use crate::diskstats::{self, DiskLine};
use crate::error::SourceError;
use std::collections::HashMap;

/// Reads, writes and flushes.
pub(super) const GROUPS: usize = 3;

/// Number and bytes of one group of a device's I/Os.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub count: u64,
    pub bytes: u64,
}

/// The devices and their unseen I/Os since the source was opened.
#[derive(Debug, Default)]
pub(super) struct Unseen(HashMap<u32, Device>);

#[derive(Debug, Default)]
struct Device {
    name: String,
    /// Distinguishes it from a later device with the same number.
    sequence: String,
    base: [Amount; GROUPS],
    base_seen: [Amount; GROUPS],
    /// The statistics at the last snapshot: they only grow.
    last: [Amount; GROUPS],
    /// Unseen before the device was replaced or its statistics reset, and since.
    before: [Amount; GROUPS],
    now: [Amount; GROUPS],
    /// All I/Os before that.
    total_before: u64,
    /// The unseen I/Os that the last snapshot reported.
    reported: [Amount; GROUPS],
}

/// The I/Os of a device that the programs did not see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Missed {
    /// The device number in the kernel's form.
    pub dev: u32,
    pub name: String,
    /// Reads, writes and flushes since the source was opened.
    pub unseen: [Amount; GROUPS],
    /// Those of them since the last snapshot.
    pub new: u64,
    /// More than at the last snapshot.
    pub grew: bool,
    /// All I/Os of the device.
    pub total: u64,
}

impl Unseen {
    /// The base of later comparisons. `seen` was read before this call, when all programs were attached.
    pub fn since(seen: &HashMap<u32, Seen>) -> Result<Unseen, SourceError> {
        let mut unseen = Unseen::default();
        for line in diskstats::lines()? {
            let Some(dev) = line.number.kernel_form() else { continue };
            unseen.0.insert(dev, Device::new(&line, seen.get(&dev)));
        }
        Ok(unseen)
    }

    /// The devices with unseen I/Os. `lines` was read before `seen`.
    pub fn update(
        &mut self,
        lines: &[DiskLine],
        seen: &HashMap<u32, Seen>,
    ) -> Result<Vec<Missed>, SourceError> {
        let mut missed = Vec::new();
        let mut changed = Vec::new();
        for line in lines {
            let Some(dev) = line.number.kernel_form() else { continue };
            // Devices without an entry have no requests: device mapper, md.
            let Some(of_device) = seen.get(&dev) else { continue };
            match self.0.get_mut(&dev) {
                // The entry is that of an earlier device with this number.
                Some(device) if device.is_same(line) && device.base_seen == of_device.amounts() => {}
                Some(device) if device.is_same(line) => device.update(line, of_device),
                _ => changed.push(dev),
            }
        }
        if !changed.is_empty() {
            for line in diskstats::lines()? {
                let Some(dev) = line.number.kernel_form().filter(|dev| changed.contains(dev)) else {
                    continue;
                };
                let mut device = Device::new(&line, seen.get(&dev));
                if let Some(earlier) = self.0.remove(&dev) {
                    device.before = earlier.unseen();
                    device.total_before = earlier.total();
                    device.reported = earlier.reported;
                }
                self.0.insert(dev, device);
            }
        }
        for (dev, device) in &mut self.0 {
            let unseen = device.unseen();
            if unseen != [Amount::default(); GROUPS] {
                let sum = |all: &[Amount; GROUPS]| all.iter().map(|one| one.count).sum::<u64>();
                missed.push(Missed {
                    dev: *dev,
                    name: device.name.clone(),
                    unseen,
                    new: sum(&unseen).saturating_sub(sum(&device.reported)),
                    grew: unseen != device.reported,
                    total: device.total(),
                });
            }
            device.reported = unseen;
        }
        missed.sort_by_key(|one| one.dev);
        Ok(missed)
    }
}

impl Device {
    fn new(line: &DiskLine, seen: Option<&Seen>) -> Device {
        let base = amounts(line);
        Device {
            name: line.device.clone(),
            sequence: diskstats::sequence(line.number),
            base,
            base_seen: seen.map_or([Amount::default(); GROUPS], Seen::amounts),
            last: base,
            ..Device::default()
        }
    }

    /// Whether it is still the same device, and its statistics were not reset.
    fn is_same(&self, line: &DiskLine) -> bool {
        let grown = |(now, then): (&Amount, &Amount)| now.count >= then.count && now.bytes >= then.bytes;
        amounts(line).iter().zip(&self.last).all(grown) && diskstats::sequence(line.number) == self.sequence
    }

    fn update(&mut self, line: &DiskLine, seen: &Seen) {
        self.last = amounts(line);
        for (group, seen) in seen.amounts().iter().enumerate() {
            let missing = |of: fn(&Amount) -> u64| {
                let counted = of(&self.last[group]).saturating_sub(of(&self.base[group]));
                counted.saturating_sub(of(seen).saturating_sub(of(&self.base_seen[group])))
            };
            let (count, bytes) = (missing(|one| one.count), missing(|one| one.bytes));
            let now = &mut self.now[group];
            now.bytes = now.bytes.max(bytes);
            // Flushes have no bytes. Some kernels count other requests that moved no bytes too.
            if bytes > 0 || group == GROUPS - 1 {
                now.count = now.count.max(count);
            }
        }
    }

    fn unseen(&self) -> [Amount; GROUPS] {
        std::array::from_fn(|group| Amount {
            count: self.before[group].count + self.now[group].count,
            bytes: self.before[group].bytes + self.now[group].bytes,
        })
    }

    fn total(&self) -> u64 {
        let since = self.last.iter().zip(&self.base).map(|(now, base)| now.count.saturating_sub(base.count));
        self.total_before + since.sum::<u64>()
    }
}

fn amounts(line: &DiskLine) -> [Amount; GROUPS] {
    let flushes = line.counters.sync.known().map_or(0, |sync| sync.count);
    let of = |count, bytes| Amount { count, bytes };
    let (read, write) = (line.counters.read, line.counters.write);
    [of(read.count, read.bytes), of(write.count, write.bytes), of(flushes, 0)]
}

impl Seen {
    /// Those that have entries of their own for a device.
    pub const PROGRAMS: u32 = 2;

    /// Where a program may have its entry for a device: `seen_of` of block.h.
    pub fn indexes(dev: u32, program: u32) -> impl Iterator<Item = u32> {
        const DEVICES_BITS: u32 = 9;
        const PROBES_MAX: u32 = 8;
        let first = dev.wrapping_mul(0x9e37_79b1) >> (u32::BITS - DEVICES_BITS);
        (0..PROBES_MAX)
            .map(move |probe| (first + probe) & ((1 << DEVICES_BITS) - 1) | program << DEVICES_BITS)
    }

    /// The sums by device over the entries of all CPUs.
    pub fn by_device(parts: impl IntoIterator<Item = Seen>) -> HashMap<u32, Seen> {
        let mut devices: HashMap<u32, Seen> = HashMap::new();
        for part in parts.into_iter().filter(|part| part.dev != 0) {
            let Ok(dev) = u32::try_from(part.dev) else { continue };
            let none = Seen { dev: part.dev, count: [0; GROUPS], bytes: [0; GROUPS] };
            let sum = devices.entry(dev).or_insert(none);
            for group in 0..GROUPS {
                sum.count[group] = sum.count[group].wrapping_add(part.count[group]);
                sum.bytes[group] = sum.bytes[group].wrapping_add(part.bytes[group]);
            }
        }
        devices
    }

    fn amounts(&self) -> [Amount; GROUPS] {
        std::array::from_fn(|group| Amount { count: self.count[group], bytes: self.bytes[group] })
    }
}

impl Missed {
    /// The snapshot's note. `all`: all processes are watched, so that these I/Os are in the figures.
    pub fn note(&self, all: bool) -> String {
        let unseen: u64 = self.unseen.iter().map(|one| one.count).sum();
        let bytes: u64 = self.unseen.iter().map(|one| one.bytes).sum();
        let share = 100.0 * unseen as f64 / self.total.max(1) as f64;
        let so = match all {
            true => "they count as unattributed",
            false => "the block layer's figures may be too low by them",
        };
        format!(
            "/dev/{}: the kernel did not pass on {unseen} of {} I/Os ({share:.1} %, {bytes} bytes), {} of them since \
             the last look; {so}",
            self.name, self.total, self.new
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use filestats::{Counters, Figure, Ops};

    fn line(reads: u64, writes: u64, flushes: u64) -> DiskLine {
        let ops = |count: u64| Ops::timed(count, count * 4096, 0);
        DiskLine {
            // A device number that does not exist on this machine.
            number: host::DeviceNumber { major: 4095, minor: 7 },
            device: "disk".into(),
            counters: Counters {
                read: ops(reads),
                write: ops(writes),
                sync: Figure::Known(Ops::timed(flushes, 0, 0)),
                busy_ns: Figure::Known(0),
            },
        }
    }

    fn seen(reads: u64, writes: u64, flushes: u64) -> HashMap<u32, Seen> {
        let dev = line(0, 0, 0).number.kernel_form().unwrap();
        let of_cpu = |reads, writes| Seen {
            dev: dev.into(),
            count: [reads, writes, 0],
            bytes: [reads * 4096, writes * 4096, 0],
        };
        let flushed = Seen { dev: dev.into(), count: [0, 0, flushes], bytes: [0; GROUPS] };
        Seen::by_device([of_cpu(reads, 0), of_cpu(0, writes), flushed, Seen { dev: 0, ..flushed }])
    }

    fn opened(at: &DiskLine) -> Unseen {
        Unseen(HashMap::from([(at.number.kernel_form().unwrap(), Device::new(at, None))]))
    }

    #[test]
    fn ios_that_the_device_counts_and_the_programs_did_not_see_are_unseen() {
        let mut unseen = opened(&line(1000, 1000, 10));
        assert_eq!(unseen.update(&[line(1100, 1010, 12)], &seen(100, 10, 2)).unwrap(), []);
        let missed = unseen.update(&[line(1200, 1020, 14)], &seen(190, 20, 3)).unwrap();
        let [one] = missed.as_slice() else { panic!("{missed:?}") };
        let counts = one.unseen.map(|group| (group.count, group.bytes));
        assert_eq!(counts, [(10, 40_960), (0, 0), (1, 0)]);
        assert_eq!((one.new, one.grew, one.total), (11, true, 224));
        assert!(
            one.note(true)
                .contains("/dev/disk: the kernel did not pass on 11 of 224 I/Os (4.9 %, 40960 bytes), 11")
        );
    }

    #[test]
    fn unseen_ios_never_decrease_when_programs_are_ahead_of_the_statistics() {
        let mut unseen = opened(&line(0, 0, 0));
        unseen.update(&[line(20, 0, 0)], &seen(10, 0, 0)).unwrap();
        let later = unseen.update(&[line(25, 0, 0)], &seen(25, 0, 0)).unwrap();
        assert_eq!((later[0].unseen[0].count, later[0].new, later[0].grew), (10, 0, false));
    }

    #[test]
    fn requests_without_bytes_that_only_the_device_counts_are_not_unseen() {
        let mut unseen = opened(&line(0, 0, 0));
        let mut flushed = line(0, 9, 0);
        flushed.counters.write.bytes = 4 * 4096;
        assert_eq!(unseen.update(&[flushed], &seen(0, 4, 0)).unwrap(), []);
    }

    #[test]
    fn a_device_without_requests_that_has_the_number_of_one_with_requests_is_ignored() {
        let mut unseen = opened(&line(0, 0, 0));
        assert_eq!(unseen.update(&[line(20, 0, 0)], &seen(20, 0, 0)).unwrap(), []);
        // Its base is read from /proc/diskstats, where no such device is.
        let number = line(0, 0, 0).number.kernel_form().unwrap();
        unseen.0.insert(number, Device::new(&line(0, 0, 0), seen(20, 0, 0).get(&number)));
        assert_eq!(unseen.update(&[line(1019, 0, 0)], &seen(20, 0, 0)).unwrap(), []);
        // One that has requests is compared.
        assert_eq!(unseen.update(&[line(1020, 0, 0)], &seen(21, 0, 0)).unwrap()[0].new, 1019);
    }

    #[test]
    fn a_device_that_the_programs_never_saw_is_ignored() {
        assert_eq!(opened(&line(0, 0, 0)).update(&[line(20, 0, 0)], &HashMap::new()).unwrap(), []);
    }
}
