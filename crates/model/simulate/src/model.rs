use serde::{Deserialize, Serialize};
use workload::Layout;

/// Storage that can be simulated: disks, how they make one range of bytes, and what meters them all.
///
/// ```text
/// I/O -> limits of the controller -> layout -> parts, on each disk:
///        limits -> channel (stages in series, each one at a time) -> units (so many at once) -> delay (any number) -> done
///        a write with a cache: limits -> channel -> cache, where it waits for room -> done
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Storage {
    /// At least one.
    pub disks: Vec<Disk>,
    /// How they make one range.
    pub layout: Layout,
    /// Limits over all disks together, as a controller or a cloud's volume has.
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// Seed of the storage's own random choices; those of the workload have their own.
    #[serde(default)]
    pub seed: u64,
}

/// One disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// Bytes.
    pub size_bytes: u64,
    /// How it serves an I/O.
    pub mechanics: Mechanics,
    /// What meters it.
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// A volatile cache for writes.
    #[serde(default)]
    pub cache: Option<WriteCache>,
    /// When it does other things.
    #[serde(default)]
    pub stall: Option<Stall>,
    /// What a flush takes once the cache has drained.
    #[serde(default)]
    pub sync: Time,
}

/// How a disk serves an I/O.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Mechanics {
    /// Parallel units, whatever they are.
    Flash(Flash),
    /// One arm over turning platters.
    Rotating(Rotating),
}

/// Parallel units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flash {
    /// I/Os served at once; the others wait, first come first served.
    pub units: u32,
    /// Stages that the channel before the units consists of, one behind the other: a pipeline that softens the knee.
    #[serde(default = "one")]
    pub stages: u32,
    /// Writes have as many units and stages of their own.
    #[serde(default)]
    pub duplex: bool,
    /// What a read takes.
    pub read: Cost,
    /// What a write takes.
    pub write: Cost,
}

/// What an I/O takes of a flash disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Of each stage of the channel, which serves one I/O after the other.
    #[serde(default)]
    pub channel: Time,
    /// The same for each byte, nanoseconds.
    #[serde(default)]
    pub channel_byte_ns: f64,
    /// Of a unit.
    pub service: Time,
    /// Of a unit, for each byte beside that, nanoseconds.
    #[serde(default)]
    pub service_byte_ns: f64,
    /// Time that keeps nothing busy: the way there and back.
    #[serde(default)]
    pub delay: Time,
    /// The same for each byte, nanoseconds.
    #[serde(default)]
    pub delay_byte_ns: f64,
}

/// One arm over turning platters: the seek grows with the root of the distance (Ruemmler and Wilkes 1994), then the
/// sector has to come around.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rotating {
    /// Turns a minute.
    pub rpm: f64,
    /// Seek to the next track, nanoseconds.
    pub seek_ns_min: u64,
    /// Seek over the whole disk, nanoseconds.
    pub seek_ns_max: u64,
    /// What passes under the head, bytes a second.
    pub bytes_per_s: f64,
    /// Of so many waiting I/Os, the oldest, the disk takes the one that it reaches first; 1: the oldest.
    pub queue: u32,
}

/// How long something takes, nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Time {
    /// Always the same.
    Fixed {
        /// That long.
        ns: u64,
    },
    /// Without memory.
    Exponential {
        /// Its mean, and its standard deviation.
        mean_ns: f64,
    },
    /// The logarithm is normal: a long tail.
    Lognormal {
        /// Half are shorter.
        median_ns: f64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
    },
    /// As it was measured: (longest of the range, how often), rising; anywhere in a range alike.
    Empirical {
        /// The ranges.
        ranges: Vec<(u64, u64)>,
    },
}

/// A write cache: a write is done once it is in, and waits where it is full.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteCache {
    /// What it holds, bytes.
    pub bytes: u64,
    /// What a write into it takes, nanoseconds.
    pub write_ns: u64,
    /// What it gives on to the medium, bytes a second.
    pub drain_bytes_per_s: f64,
}

/// The disk begins nothing for `length_ns` of every `every_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// From one beginning to the next; the first is after one of them.
    pub every_ns: u64,
    /// How long; shorter than `every_ns`.
    pub length_ns: u64,
}

/// A token bucket: I/Os go on while tokens are there, and wait for theirs in their order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// What is counted.
    pub of: Metered,
    /// Tokens a second.
    pub per_second: f64,
    /// Tokens that can be saved up; full at the beginning.
    pub burst: f64,
    /// New tokens come at these distances, nanoseconds, as those of the kernel's throttle do, which saves those of no more
    /// than two; 0: all the time.
    #[serde(default)]
    pub refill_ns: u64,
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metered {
    /// Reads and writes.
    Ios,
    /// Reads.
    Reads,
    /// Writes.
    Writes,
    /// Bytes of reads and writes.
    Bytes,
    /// Bytes of reads.
    ReadBytes,
    /// Bytes of writes.
    WriteBytes,
}

fn one() -> u32 {
    1
}

impl Default for Time {
    fn default() -> Time {
        Time::Fixed { ns: 0 }
    }
}

impl Time {
    /// Its mean, nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        match self {
            Time::Fixed { ns } => *ns as f64,
            Time::Exponential { mean_ns } => *mean_ns,
            Time::Lognormal { median_ns, sigma } => median_ns * (sigma * sigma / 2.0).exp(),
            Time::Empirical { ranges } => {
                let mut from = 0;
                let (mut sum, mut count) = (0.0, 0.0);
                for (to, times) in ranges {
                    sum += (from + to) as f64 / 2.0 * *times as f64;
                    count += *times as f64;
                    from = *to;
                }
                if count > 0.0 { sum / count } else { 0.0 }
            }
        }
    }

    /// The same, so many times as long.
    #[must_use]
    pub fn times(&self, factor: f64) -> Time {
        let scaled = |ns: u64| (ns as f64 * factor).round() as u64;
        match self {
            Time::Fixed { ns } => Time::Fixed { ns: scaled(*ns) },
            Time::Exponential { mean_ns } => Time::Exponential { mean_ns: mean_ns * factor },
            Time::Lognormal { median_ns, sigma } => {
                Time::Lognormal { median_ns: median_ns * factor, sigma: *sigma }
            }
            Time::Empirical { ranges } => {
                let ranges = ranges.iter().map(|(to, times)| (scaled(*to), *times)).collect();
                Time::Empirical { ranges }
            }
        }
    }
}

impl Metered {
    /// Tokens that an I/O takes; 0 where it is not metered.
    pub fn tokens(self, write: bool, bytes: u64) -> f64 {
        match (self, write) {
            (Metered::Ios, _) | (Metered::Reads, false) | (Metered::Writes, true) => 1.0,
            (Metered::Bytes, _) | (Metered::ReadBytes, false) | (Metered::WriteBytes, true) => bytes as f64,
            _ => 0.0,
        }
    }
}

/// What cannot be simulated, and why.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{what}: {remedy}")]
pub struct Impossible {
    /// What is wrong.
    pub what: String,
    /// What to give instead.
    pub remedy: &'static str,
}

impl Impossible {
    pub(crate) fn new(what: impl Into<String>, remedy: &'static str) -> Impossible {
        Impossible { what: what.into(), remedy }
    }
}

impl Storage {
    /// Most disks.
    pub const DISKS_MAX: usize = 1024;
    /// Most parallel units of a disk.
    pub const UNITS_MAX: u32 = 65_536;

    /// One disk, as it is.
    pub fn of(disk: Disk) -> Storage {
        Storage { disks: vec![disk], layout: Layout::Span, limits: Vec::new(), seed: 0 }
    }

    /// `count` disks alike.
    pub fn of_many(disk: &Disk, count: usize, layout: Layout) -> Storage {
        Storage { disks: vec![disk.clone(); count], layout, ..Storage::of(disk.clone()) }
    }

    /// Refuses what cannot be simulated.
    ///
    /// # Errors
    /// The first thing that is out of range.
    pub fn validate(&self) -> Result<(), Impossible> {
        if self.disks.is_empty() || self.disks.len() > Self::DISKS_MAX {
            return Err(Impossible::new(format!("{} disks", self.disks.len()), "give 1 to 1024"));
        }
        self.limits.iter().try_for_each(Limit::validate)?;
        self.disks.iter().try_for_each(Disk::validate)
    }

    /// Bytes of all disks that the layout uses.
    pub fn size_bytes(&self) -> u64 {
        let sizes: Vec<u64> = self.disks.iter().map(|disk| disk.size_bytes).collect();
        workload::LayoutMap::new(self.layout, &sizes).size_bytes()
    }
}

impl Disk {
    /// A flash disk without limits, cache and stalls.
    pub fn flash(size_bytes: u64, units: u32, read: Time, write: Time) -> Disk {
        let cost = |service| Cost { service, ..Cost::default() };
        let flash = Flash { units, stages: 1, duplex: false, read: cost(read), write: cost(write) };
        Disk::plain(size_bytes, Mechanics::Flash(flash))
    }

    /// A disk without limits, cache and stalls.
    pub fn plain(size_bytes: u64, mechanics: Mechanics) -> Disk {
        Disk { size_bytes, mechanics, limits: Vec::new(), cache: None, stall: None, sync: Time::default() }
    }

    fn validate(&self) -> Result<(), Impossible> {
        self.limits.iter().try_for_each(Limit::validate)?;
        if let Mechanics::Flash(flash) = &self.mechanics {
            if flash.units == 0 || flash.units > Storage::UNITS_MAX {
                return Err(Impossible::new(format!("{} units", flash.units), "give 1 to 65536"));
            }
            if flash.stages == 0 || flash.stages > 64 {
                return Err(Impossible::new(format!("{} stages", flash.stages), "give 1 to 64"));
            }
            for cost in [&flash.read, &flash.write] {
                validate_time(&cost.channel)?;
                validate_time(&cost.service)?;
                validate_time(&cost.delay)?;
                let bytes = [cost.channel_byte_ns, cost.service_byte_ns, cost.delay_byte_ns];
                if bytes.iter().any(|ns| !(0.0..=1e9).contains(ns)) {
                    return Err(Impossible::new("a time for each byte", "give 0 to 1 s"));
                }
            }
        }
        if let Mechanics::Rotating(arm) = &self.mechanics {
            if !(1.0..=1e6).contains(&arm.rpm) || !(1e3..=1e15).contains(&arm.bytes_per_s) {
                return Err(Impossible::new(
                    "a disk that hardly turns",
                    "give rpm = 7200, bandwidth = \"200M/s\"",
                ));
            }
            if arm.seek_ns_min > arm.seek_ns_max || arm.seek_ns_max > TIME_NS_MAX {
                return Err(Impossible::new("seeks", "the shortest must not be longer than the longest"));
            }
            if arm.queue == 0 || arm.queue > 4096 {
                return Err(Impossible::new(format!("a queue of {}", arm.queue), "give 1 to 4096"));
            }
        }
        if self.cache.is_some_and(|cache| !(cache.drain_bytes_per_s >= 1.0 && cache.drain_bytes_per_s < 1e18))
        {
            return Err(Impossible::new("a cache that never drains", "give drain = \"100M/s\""));
        }
        if self.stall.is_some_and(|stall| stall.length_ns >= stall.every_ns) {
            return Err(Impossible::new(
                "a disk that always stalls",
                "give a longer distance, as in \"2s every 30s\"",
            ));
        }
        validate_time(&self.sync)
    }
}

/// A day: longer takes nothing of a disk.
const TIME_NS_MAX: u64 = 86_400_000_000_000;

fn validate_time(time: &Time) -> Result<(), Impossible> {
    let mean = time.mean_ns();
    let odd = match time {
        Time::Lognormal { sigma, .. } => !(0.0..=5.0).contains(sigma),
        Time::Empirical { ranges } => {
            ranges.is_empty()
                || ranges.windows(2).any(|pair| pair[0].0 > pair[1].0)
                || ranges.iter().any(|(to, times)| *to > TIME_NS_MAX || *times > 1 << 50)
                || ranges.iter().all(|(_, times)| *times == 0)
        }
        _ => false,
    };
    if odd || !(0.0..=TIME_NS_MAX as f64).contains(&mean) {
        return Err(Impossible::new(
            "a time that no disk takes",
            "give a time up to a day, ranges that rise",
        ));
    }
    Ok(())
}

impl Limit {
    fn validate(&self) -> Result<(), Impossible> {
        if !(self.per_second > 0.0 && self.per_second < 1e15 && self.burst >= 0.0 && self.burst < 1e18) {
            return Err(Impossible::new(
                format!("a limit of {} a second", self.per_second),
                "give a rate above 0, and what can be saved up",
            ));
        }
        Ok(())
    }
}
