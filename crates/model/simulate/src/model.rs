use serde::{Deserialize, Serialize};
use workload::Layout;

/// A storage model: disks, the layout that makes them one range of bytes, and limits.
///
/// ```text
/// I/O -> limits of the controller -> layout -> parts, on each disk:
///        limits -> channel (stages in series, one I/O each) -> units (in parallel) -> delay (any number) -> done
///        a cached write: limits -> channel -> cache, where it waits for space -> done
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Storage {
    /// At least one.
    pub disks: Vec<Disk>,
    /// How they make one range of bytes.
    pub layout: Layout,
    /// Limits of all disks together, as of a controller or a cloud volume.
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// Seed of the storage's random choices; the workload has its own.
    #[serde(default)]
    pub seed: u64,
}

/// One disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Disk {
    /// Bytes.
    pub size_bytes: u64,
    /// How it serves an I/O.
    pub mechanics: Mechanics,
    /// Its limits.
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// A volatile cache for writes.
    #[serde(default)]
    pub cache: Option<WriteCache>,
    /// When it serves no I/Os.
    #[serde(default)]
    pub stall: Option<Stall>,
    /// Duration of a flush after the cache has drained.
    #[serde(default)]
    pub sync: Time,
}

/// How a disk serves an I/O.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Mechanics {
    /// Parallel units of any technology.
    Flash(Flash),
    /// One arm over rotating platters.
    Rotating(Rotating),
}

/// Parallel units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flash {
    /// I/Os served at once; the others wait in order of arrival.
    pub units: u32,
    /// Stages of the channel before the units, in series: a pipeline that softens the knee.
    #[serde(default = "one")]
    pub stages: u32,
    /// Writes have units and stages of their own, as many.
    #[serde(default)]
    pub duplex: bool,
    /// Service times of a read.
    pub read: Cost,
    /// Service times of a write.
    pub write: Cost,
}

/// Service times of an I/O on a flash disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StageCosts"))]
pub struct Cost {
    /// In each stage of the channel, which serves one I/O at a time.
    #[serde(default)]
    pub channel: Time,
    /// In each stage of the channel per byte, nanoseconds.
    #[serde(default)]
    pub channel_byte_ns: f64,
    /// In a unit.
    pub service: Time,
    /// In a unit per byte, in addition, nanoseconds.
    #[serde(default)]
    pub service_byte_ns: f64,
    /// Time that occupies nothing: transport to and from the disk.
    #[serde(default)]
    pub delay: Time,
    /// Delay per byte, nanoseconds.
    #[serde(default)]
    pub delay_byte_ns: f64,
}

/// One arm over rotating platters: a seek that grows with the root of the distance (Ruemmler and Wilkes 1994), then the
/// rotational delay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rotating {
    /// Rotations a minute.
    pub rpm: f64,
    /// Seek to the next track, nanoseconds.
    pub seek_ns_min: u64,
    /// Seek over the whole disk, nanoseconds.
    pub seek_ns_max: u64,
    /// Transfer rate, bytes a second.
    pub bytes_per_s: f64,
    /// Queue depth: of that many waiting I/Os, the oldest, the disk serves the one that it reaches first.
    pub queue: u32,
}

/// How long something takes, nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ServiceTime"))]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Time {
    /// Constant.
    Fixed {
        /// Nanoseconds.
        ns: u64,
    },
    /// Exponential.
    Exponential {
        /// Its mean, and its standard deviation.
        mean_ns: f64,
    },
    /// Lognormal: a long tail.
    Lognormal {
        /// Median.
        median_ns: f64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
    },
    /// As measured: (highest time of a range, count), in rising order; uniform within a range.
    Empirical {
        /// The ranges.
        ranges: Vec<(u64, u64)>,
    },
}

/// A write cache: a write completes once it is in the cache, and waits while that is full.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SimulatedCache"))]
pub struct WriteCache {
    /// Its size.
    pub bytes: u64,
    /// Duration of a write into it, nanoseconds.
    pub write_ns: u64,
    /// Rate at which it is written to the medium, bytes a second.
    pub drain_bytes_per_s: f64,
}

/// The disk starts no I/O for the last `length_ns` of every `every_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SimulatedStall"))]
pub struct Stall {
    /// Period; the first stall is at the end of the first one.
    pub every_ns: u64,
    /// Duration; shorter than `every_ns`.
    pub length_ns: u64,
}

/// A token bucket: I/Os pass while tokens are available, and wait for theirs in order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SimulatedLimit"))]
pub struct Limit {
    /// Operations or bytes that the limit counts.
    pub of: Metered,
    /// Tokens a second.
    pub per_second: f64,
    /// Most tokens that are saved; it starts full.
    pub burst: f64,
    /// Interval between additions of tokens, nanoseconds, as in the kernel's throttle, which saves those of two intervals
    /// at most; 0: continuous.
    #[serde(default)]
    pub refill_ns: u64,
}

/// Operations or bytes that a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

    /// The distribution scaled by a factor.
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
    /// Tokens of an I/O; 0 where it is not metered.
    pub fn tokens(self, write: bool, bytes: u64) -> f64 {
        match (self, write) {
            (Metered::Ios, _) | (Metered::Reads, false) | (Metered::Writes, true) => 1.0,
            (Metered::Bytes, _) | (Metered::ReadBytes, false) | (Metered::WriteBytes, true) => bytes as f64,
            _ => 0.0,
        }
    }
}

/// Why something cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{what}: {remedy}")]
pub struct SimulationError {
    /// The error.
    pub what: String,
    /// The remedy.
    pub remedy: &'static str,
}

impl SimulationError {
    pub(crate) fn new(what: impl Into<String>, remedy: &'static str) -> SimulationError {
        SimulationError { what: what.into(), remedy }
    }
}

impl Storage {
    /// Most disks.
    pub const DISKS_MAX: usize = 1024;
    /// Most parallel units of a disk.
    pub const UNITS_MAX: u32 = 65_536;

    /// A single disk.
    pub fn single(disk: Disk) -> Storage {
        Storage { disks: vec![disk], layout: Layout::Span, limits: Vec::new(), seed: 0 }
    }

    /// `count` equal disks.
    pub fn array(disk: &Disk, count: usize, layout: Layout) -> Storage {
        Storage { disks: vec![disk.clone(); count], layout, ..Storage::single(disk.clone()) }
    }

    /// Refuses a model that cannot be simulated.
    ///
    /// # Errors
    /// The first thing that is out of range.
    pub fn validate(&self) -> Result<(), SimulationError> {
        let disks = self.disks.len();
        require((1..=Self::DISKS_MAX).contains(&disks), format!("{disks} disks"), "give 1 to 1024")?;
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

    fn validate(&self) -> Result<(), SimulationError> {
        self.limits.iter().try_for_each(Limit::validate)?;
        match &self.mechanics {
            Mechanics::Flash(flash) => {
                let Flash { units, stages, .. } = flash;
                let units_sound = (1..=Storage::UNITS_MAX).contains(units);
                require(units_sound, format!("{units} units"), "give 1 to 65536")?;
                require((1..=64).contains(stages), format!("{stages} stages"), "give 1 to 64")?;
                for cost in [&flash.read, &flash.write] {
                    [&cost.channel, &cost.service, &cost.delay].into_iter().try_for_each(validate_time)?;
                    let bytes = [cost.channel_byte_ns, cost.service_byte_ns, cost.delay_byte_ns];
                    let sound = bytes.iter().all(|ns| (0.0..=1e9).contains(ns));
                    require(sound, "a time for each byte", "give 0 to 1 s")?;
                }
            }
            Mechanics::Rotating(arm) => {
                let turns = (1.0..=1e6).contains(&arm.rpm) && (1e3..=1e15).contains(&arm.bytes_per_s);
                require(turns, "a disk that hardly turns", "give rpm = 7200, bandwidth = \"200M/s\"")?;
                let seeks = arm.seek_ns_min <= arm.seek_ns_max && arm.seek_ns_max <= TIME_NS_MAX;
                require(seeks, "seeks", "the shortest must not be longer than the longest")?;
                let queue = arm.queue;
                require((1..=4096).contains(&queue), format!("a queue of {queue}"), "give 1 to 4096")?;
            }
        }
        let drains = self.cache.is_none_or(|cache| (1.0..1e18).contains(&cache.drain_bytes_per_s));
        require(drains, "a cache that never drains", "give drain = \"100M/s\"")?;
        let serves = self.stall.is_none_or(|stall| stall.length_ns < stall.every_ns);
        require(serves, "a disk that always stalls", "give a longer distance, as in \"2s every 30s\"")?;
        validate_time(&self.sync)
    }
}

fn require(sound: bool, what: impl Into<String>, remedy: &'static str) -> Result<(), SimulationError> {
    if sound { Ok(()) } else { Err(SimulationError::new(what, remedy)) }
}

/// A day: no operation of a disk takes longer.
const TIME_NS_MAX: u64 = 86_400_000_000_000;

fn validate_time(time: &Time) -> Result<(), SimulationError> {
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
    let sound = !odd && (0.0..=TIME_NS_MAX as f64).contains(&mean);
    require(sound, "a time that no disk takes", "give a time up to a day, ranges that rise")
}

impl Limit {
    fn validate(&self) -> Result<(), SimulationError> {
        let sound = self.per_second > 0.0 && self.per_second < 1e15 && (0.0..1e18).contains(&self.burst);
        let what = format!("a limit of {} a second", self.per_second);
        require(sound, what, "give a rate above 0, and what can be saved up")
    }
}
