//! The settings of diskspd as types. Fields have diskspd's units (seconds, bytes per millisecond), so that a profile is
//! read and written without loss; `plan` converts them.

/// A whole run: time spans in sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Verbose (`-v`).
    pub verbose: bool,
    /// Shows how threads waited for completions (`-vs`).
    pub verbose_stats: bool,
    /// A dot after this many completions of a thread (`-P`); 0 is off.
    pub progress: u32,
    /// Experiments as a bit mask (`-:`); 1 allows long sleeps of the throttle. Carried, and without effect here.
    pub experiment_flags: u32,
    /// How results are printed (`-R`).
    pub result_format: ResultFormat,
    /// Files that are made before the first time span (XML only).
    pub precreate: Precreate,
    /// Time spans in order; at least one.
    pub time_spans: Vec<TimeSpan>,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultFormat {
    /// The text report.
    #[default]
    Text,
    /// The XML result.
    Xml,
}

/// Files that are made before the first time span instead of before their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precreate {
    /// None.
    #[default]
    None,
    /// All of them, each as large as its largest time span wants it.
    UseMaxSize,
    /// Those whose size is the same in all time spans.
    ConstantSizes,
    /// Those whose size is the same in all time spans that give one.
    ConstantOrZeroSizes,
}

/// A time span: its targets and its length. [`TimeSpan::new`] has diskspd's defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeSpan {
    /// Measured seconds (`-d`).
    pub duration_s: u32,
    /// Seconds of load before them (`-W`).
    pub warm_up_s: u32,
    /// Seconds of load after them (`-C`).
    pub cool_down_s: u32,
    /// Seed of all random choices (`-z`).
    pub seed: u32,
    /// Threads that serve all targets (`-F`); 0: each target has threads of its own.
    pub threads_total: u32,
    /// Outstanding I/Os of each of those threads, shared by the targets (`-O`); 0: each target has its own.
    pub outstanding_total: u32,
    /// CPUs that threads are bound to in turn (`-a`); empty: all CPUs, unless `disable_affinity`.
    pub affinity: Vec<Cpu>,
    /// Threads are not bound to CPUs (`-n`).
    pub disable_affinity: bool,
    /// Completion routines instead of completion ports (`-x`). No counterpart here; carried for fidelity.
    pub completion_routines: bool,
    /// Latencies are measured and printed (`-L`).
    pub measure_latency: bool,
    /// The deviation of IOPS over buckets of time is printed (`-D`).
    pub iops_deviation: bool,
    /// Width of those buckets in milliseconds.
    pub bucket_ms: u32,
    /// Every write carries fresh random data (`-Zr`).
    pub random_write_data: bool,
    /// At least one.
    pub targets: Vec<Target>,
}

/// A CPU to be bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cpu {
    /// Processor group; Linux knows only 0.
    pub group: u16,
    /// Number within its group.
    pub processor: u32,
}

/// A file, block device or template, and its workload. [`Target::new`] has diskspd's defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The path as given; `*1`, `*2` ... stand for the targets of a command line.
    pub path: String,
    /// Bytes of each I/O (`-b`).
    pub block_bytes: u32,
    /// First byte used (`-B`).
    pub base_bytes: u64,
    /// First byte after the used part (`-f`, or base plus length of `-B`); `None`: the end of the target.
    /// Never `Some(0)`.
    pub end_bytes: Option<u64>,
    /// The file is created with that size (`-c`).
    pub create_bytes: Option<u64>,
    /// Outstanding I/Os of each thread (`-o`).
    pub outstanding: u32,
    /// Threads of this target (`-t`).
    pub threads: u32,
    /// Share of the outstanding I/Os where targets share them (XML only; 1 on the command line).
    pub weight: u32,
    /// Threads of a pool that serve this target (XML only); empty: all of them.
    pub thread_targets: Vec<ThreadTarget>,
    /// Share of writes in percent (`-w`).
    pub write_percent: u8,
    /// Share of I/Os that go to a random place, in percent: 0 sequential, 100 random (`-r`), mixed in between
    /// (`-rs`).
    pub random_percent: u8,
    /// Alignment of random and distance of sequential I/Os (`-r`, `-s`); `None`: the block size.
    pub align_bytes: Option<u64>,
    /// The distribution of random I/Os (`-rd`).
    pub distribution: Option<Distribution>,
    /// Sequential threads share one offset (`-si`).
    pub interlocked: bool,
    /// All outstanding I/Os of a thread start at the same offset (`-p`).
    pub same_offset: bool,
    /// Distance of the places where sequential threads start (`-T`); 0: all at the same.
    pub thread_stride_bytes: u64,
    /// The limit of a thread on this target (`-g`).
    pub throughput: Option<Throughput>,
    /// I/Os of a burst (`-i`); 0 is off. On exactly when `think_time_ms` is.
    pub burst_ios: u32,
    /// Rest after a burst in milliseconds (`-j`); 0 is off.
    pub think_time_ms: u32,
    /// Software cache (`-S`).
    pub cache: CacheMode,
    /// Writes complete when they are on stable media (`-Sw`).
    pub write_through: bool,
    /// The target is mapped into memory (`-Sm`).
    pub mapped: bool,
    /// How mapped writes are flushed (`-N`).
    pub flush: Option<FlushMode>,
    /// Content of writes (`-Z`); where it is `Counting`, `TimeSpan::random_write_data` overrules it.
    pub content: Content,
    /// Opened with the hint that I/Os will be random (`-fr`).
    pub hint_random: bool,
    /// Opened with the hint that I/Os will be sequential (`-fs`).
    pub hint_sequential: bool,
    /// Opened as a temporary file (`-ft`).
    pub hint_temporary: bool,
    /// Priority of the I/Os (`-I`).
    pub priority: Priority,
    /// Buffers are in large pages (`-l`).
    pub large_pages: bool,
}

/// A thread of a pool and its weight for a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadTarget {
    /// Number of the thread, from 0.
    pub thread: u32,
    /// Its weight there; `None`: that of the target.
    pub weight: Option<u32>,
}

/// The distribution of random I/Os: adjacent ranges, including the implied remainder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// The unit of the ranges' spans.
    pub unit: SpanUnit,
    /// From the start of the used part on. Their I/Os sum to 100 % (see [`Distribution::new`]).
    pub ranges: Vec<Range>,
}

/// The unit of a range's span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanUnit {
    /// Percent of the target (`-rdpct`).
    Percent,
    /// Bytes (`-rdabs`); 0 in the last range stands for the rest of the target.
    Bytes,
}

/// A part of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Share of the I/Os; 0 is a hole.
    pub ios_percent: u8,
    /// Its size in the distribution's unit.
    pub span: u64,
}

/// The limit of a thread on a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throughput {
    /// Bytes per millisecond (`-g800`).
    BytesPerMs(u32),
    /// I/Os a second (`-g800i`).
    Iops(u32),
}

/// The software cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheMode {
    /// On (`-Sb`).
    #[default]
    Cached,
    /// Off (`-Su`).
    Unbuffered,
    /// On for the cache of a remote file server only (`-Sr`). No counterpart on Linux.
    RemoteOnly,
}

/// How mapped writes are flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushMode {
    /// Through the operating system (`-Nv`): `msync`.
    ViewOfFile,
    /// By cache-line flushes of persistent memory, waited for (`-Nn`).
    NonVolatileMemory,
    /// By cache-line flushes that are not waited for (`-Ni`).
    NonVolatileMemoryNoDrain,
}

/// Content of writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// Bytes 0, 1 ... 255, 0 ...
    #[default]
    Counting,
    /// Zeros (`-Z`).
    Zero,
    /// A random place of a buffer of that size (`-Z1M`, `-Z1M,file`).
    Buffer {
        /// Size of the buffer; never 0.
        bytes: u64,
        /// File that fills it, repeated where shorter; `None`: random bytes.
        file: Option<String>,
    },
}

/// Priority of I/Os.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// `-I1`.
    VeryLow,
    /// `-I2`.
    Low,
    /// `-I3`.
    #[default]
    Normal,
}

/// The order of a target's I/Os, derived from several fields of [`Target`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All at random.
    Random,
    /// Some at random, in the given share.
    Mixed,
    /// Sequential, each thread with its own offset.
    Sequential,
    /// Sequential, all threads with one offset.
    Interlocked,
    /// All outstanding I/Os of a thread at one offset.
    SameOffset,
}

impl TimeSpan {
    /// diskspd's defaults, without a target.
    pub fn new() -> TimeSpan {
        TimeSpan { duration_s: 10, warm_up_s: 5, bucket_ms: 1000, ..TimeSpan::default() }
    }

    /// Whether the targets share the outstanding I/Os of common threads (`-F` with `-O`).
    pub fn shares_outstanding(&self) -> bool {
        self.threads_total > 0 && self.outstanding_total > 0
    }

    /// Threads that do I/O to `target`, ignoring its thread targets.
    pub fn threads_of(&self, target: &Target) -> u32 {
        if self.threads_total > 0 { self.threads_total } else { target.threads }
    }

    /// Threads over all targets.
    pub fn threads(&self) -> u32 {
        if self.threads_total > 0 {
            return self.threads_total;
        }
        self.targets.iter().fold(0, |sum, target| sum.saturating_add(target.threads))
    }
}

impl Target {
    /// Most bytes of a block: just under 4 GiB.
    pub const BLOCK_BYTES_MAX: u64 = u32::MAX as u64 - 1;

    /// A target with diskspd's defaults: sequential cached reads of 64 KiB, two outstanding, one thread.
    pub fn new(path: impl Into<String>) -> Target {
        Target {
            path: path.into(),
            block_bytes: 64 << 10,
            outstanding: 2,
            threads: 1,
            weight: 1,
            ..Target::default()
        }
    }

    /// Alignment of random, distance of sequential I/Os.
    pub fn align(&self) -> u64 {
        self.align_bytes.unwrap_or(u64::from(self.block_bytes))
    }

    /// The order of the I/Os.
    pub fn order(&self) -> Order {
        match self.random_percent {
            0 if self.same_offset => Order::SameOffset,
            0 if self.interlocked => Order::Interlocked,
            0 => Order::Sequential,
            1..100 => Order::Mixed,
            _ => Order::Random,
        }
    }

    /// Whether the path is a template for a target of the command line.
    pub fn is_template(&self) -> bool {
        self.path.starts_with('*')
    }
}

impl Distribution {
    /// The given ranges and the implied one: the remaining I/Os go to the rest of the target.
    pub fn new(unit: SpanUnit, mut ranges: Vec<Range>) -> Distribution {
        let ios: u64 = ranges.iter().map(|range| u64::from(range.ios_percent)).sum();
        let span = ranges.iter().fold(0_u64, |sum, range| sum.saturating_add(range.span));
        if ios < 100 {
            let rest = if unit == SpanUnit::Percent { 100_u64.saturating_sub(span) } else { 0 };
            ranges.push(Range { ios_percent: 100 - ios as u8, span: rest });
        }
        Distribution { unit, ranges }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_diskspd() {
        let (span, target) = (TimeSpan::new(), Target::new("t"));
        assert_eq!((span.duration_s, span.warm_up_s, span.cool_down_s, span.seed), (10, 5, 0, 0));
        assert_eq!((target.block_bytes, target.outstanding, target.threads), (65536, 2, 1));
        assert_eq!((target.order(), target.align()), (Order::Sequential, 65536));
        assert_eq!((target.cache, target.content), (CacheMode::Cached, Content::Counting));
        assert!(!span.measure_latency && !span.iops_deviation && span.bucket_ms == 1000);
    }

    #[test]
    fn what_a_distribution_leaves_is_its_last_range() {
        let range = |ios_percent, span| Range { ios_percent, span };
        let percent = Distribution::new(SpanUnit::Percent, vec![range(90, 10), range(0, 10), range(5, 20)]);
        assert_eq!(percent.ranges[3], range(5, 60));
        let bytes = Distribution::new(SpanUnit::Bytes, vec![range(90, 10 << 30)]);
        assert_eq!(bytes.ranges[1], range(10, 0));
        assert_eq!(Distribution::new(SpanUnit::Bytes, vec![range(100, 1 << 20)]).ranges.len(), 1);
    }
}
