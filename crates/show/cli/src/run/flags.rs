use std::path::PathBuf;
use std::time::Duration;
use workload::{
    Arrival, Burst, Caching, Distribution, Durability, Limit, Pattern, SizeShare, SyncKind, Verify, Walk,
    Zone,
};
use workload_file::{CONTENTS, ContentKind, ContentSettings, LengthSettings, Settings, values};

/// Flags that describe a workload, in the words of a workload file.
#[derive(clap::Args)]
pub struct Flags {
    /// Bytes of each I/O [default: 8K]
    #[arg(long, value_name = "SIZE", value_parser = values::block, help_heading = IO)]
    block: Option<u32>,
    /// Several sizes and their shares, as in 8K:70,64K:30
    #[arg(long, value_name = "MIX", value_parser = values::sizes, help_heading = IO, conflicts_with = "block")]
    sizes: Option<Mix>,
    /// random or sequential [default: random]
    #[arg(long, value_name = "WORD", value_parser = values::word(values::PATTERNS), help_heading = IO)]
    pattern: Option<Pattern>,
    /// Share of writes in percent [default: 0]
    #[arg(long, value_name = "PERCENT", value_parser = values::percent, help_heading = IO)]
    writes: Option<u8>,
    /// Through the page cache
    #[arg(long, help_heading = IO, conflicts_with = "mapped")]
    buffered: bool,
    /// Through a memory mapping
    #[arg(long, help_heading = IO, hide_short_help = true)]
    mapped: bool,
    /// When a write counts as done: cached, write-through, synced [default: cached]
    #[arg(long, value_name = "WORD", value_parser = values::word(values::DURABILITIES), help_heading = IO, hide_short_help = true)]
    durability: Option<Durability>,
    /// Call fdatasync or fsync after writes; none overrides a preset's
    #[arg(long, value_name = "CALL", value_parser = values::word(values::SYNCS), help_heading = IO, hide_short_help = true)]
    sync: Option<OptionalSync>,
    /// Sync after this many writes of a thread [default: 1]
    #[arg(long, value_name = "N", value_parser = values::count, help_heading = IO, hide_short_help = true)]
    sync_every: Option<u32>,

    /// Outstanding I/Os of each thread [default: 32]
    #[arg(long, value_name = "N", value_parser = values::count, help_heading = MANY)]
    outstanding: Option<u32>,
    /// Threads [default: 1]
    #[arg(long, value_name = "N", value_parser = values::count, help_heading = MANY)]
    threads: Option<u32>,
    /// Constant arrival rate that does not depend on completions (open loop): 2000/s
    #[arg(long, value_name = "RATE", value_parser = values::rate, help_heading = MANY)]
    rate: Option<f64>,
    /// Random arrivals, as from independent users; otherwise like --rate
    #[arg(long, value_name = "RATE", value_parser = values::rate, help_heading = MANY, conflicts_with = "rate")]
    poisson: Option<f64>,
    /// Rate limit of all threads together: 1000/s (I/Os), 200M/s (bytes), or both with a comma
    #[arg(long, value_name = "LIMIT", value_parser = values::limit, help_heading = MANY)]
    limit: Option<Limit>,
    /// I/Os of each thread, then a pause: 1024:1s
    #[arg(long, value_name = "N:TIME", value_parser = values::burst, help_heading = MANY, hide_short_help = true)]
    burst: Option<Burst>,
    /// Replay the I/Os of a recorded trace
    #[arg(long, value_name = "FILE", help_heading = MANY, conflicts_with_all = ["rate", "poisson"], hide_short_help = true)]
    replay: Option<PathBuf>,
    /// Speed of the replay: 1 as recorded, 2 twice as fast, max without pauses [default: 1]
    #[arg(long, value_name = "X", value_parser = values::speed, help_heading = MANY, requires = "replay", hide_short_help = true)]
    speed: Option<OptionalSpeed>,

    /// Offset of the first byte that is used [default: 0]
    #[arg(long, value_name = "SIZE", value_parser = values::bytes, help_heading = WHERE, hide_short_help = true)]
    from: Option<u64>,
    /// Bytes used from that offset on [default: all]
    #[arg(long, value_name = "SIZE", value_parser = values::some_bytes, help_heading = WHERE, hide_short_help = true)]
    length: Option<u64>,
    /// Random offsets are multiples of this [default: the block]
    #[arg(long, value_name = "SIZE", value_parser = values::some_bytes, help_heading = WHERE, hide_short_help = true)]
    align: Option<u64>,
    /// Distance between sequential I/Os [default: the block]
    #[arg(long, value_name = "SIZE", value_parser = values::some_bytes, help_heading = WHERE, hide_short_help = true)]
    stride: Option<u64>,
    /// Skewed offsets, Zipf distribution; 0.99 is usual
    #[arg(long, value_name = "THETA", value_parser = values::fraction, help_heading = WHERE, group = "skew")]
    zipf: Option<f64>,
    /// Skewed offsets, Pareto distribution; 0.2 is 80/20
    #[arg(long, value_name = "H", value_parser = values::fraction, help_heading = WHERE, group = "skew", hide_short_help = true)]
    pareto: Option<f64>,
    /// Hot and cold zones, share of I/Os and size: 80%:20%,10%:1G
    #[arg(long, value_name = "ZONES", value_parser = values::zones, help_heading = WHERE, group = "skew", hide_short_help = true)]
    zones: Option<Zones>,
    /// Where sequential threads run: own-parts, shared (one offset for all), apart:SIZE (begins SIZE apart)
    #[arg(long, value_name = "HOW", value_parser = values::walk, help_heading = WHERE, hide_short_help = true)]
    walk: Option<Walk>,
    /// Share of I/Os at random offsets; the others are sequential
    #[arg(long, value_name = "PERCENT", value_parser = values::percent, help_heading = WHERE, hide_short_help = true)]
    random_share: Option<u8>,
    /// All outstanding I/Os of a sequential thread use the same offset
    #[arg(long, help_heading = WHERE, hide_short_help = true)]
    same_offset: bool,

    /// Content of written blocks: random, fresh, zeros, counting or buffer [default: random]
    #[arg(long, value_name = "WORD", value_parser = values::word(CONTENTS), help_heading = WHAT, hide_short_help = true)]
    content: Option<ContentKind>,
    /// Share of the content that compression removes
    #[arg(long, value_name = "PERCENT", value_parser = values::percent, help_heading = WHAT, hide_short_help = true)]
    compressible: Option<u8>,
    /// Share of writes that repeat an earlier block
    #[arg(long, value_name = "PERCENT", value_parser = values::percent, help_heading = WHAT, hide_short_help = true)]
    duplicate: Option<u8>,
    /// Write from random offsets of a buffer of this size [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = values::some_bytes, help_heading = WHAT, hide_short_help = true)]
    buffer: Option<u64>,
    /// Fill that buffer from this file
    #[arg(long, value_name = "FILE", help_heading = WHAT, hide_short_help = true)]
    buffer_file: Option<PathBuf>,
    /// Read back after the run and compare: checksum, sequence or content
    #[arg(long, value_name = "HOW", value_parser = values::word(values::VERIFIES), help_heading = WHAT)]
    verify: Option<Verify>,

    /// Measured time [default: 30s; of a preset 60s]
    #[arg(long, value_name = "TIME", value_parser = values::some_time, help_heading = LONG)]
    duration: Option<Duration>,
    /// Time before the measured time, not counted [default: 5s; with --replay none]
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = LONG)]
    warm_up: Option<Duration>,
    /// Time after the measured time, not counted
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = LONG, hide_short_help = true)]
    cool_down: Option<Duration>,
    /// End after this many I/Os
    #[arg(long, value_name = "N", value_parser = values::ios, help_heading = LONG)]
    ios: Option<u64>,
    /// Interval of the time series [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = values::some_time, help_heading = LONG, hide_short_help = true)]
    pub series: Option<Duration>,
    /// Seed of all random choices [default: 0]
    #[arg(long, value_name = "N", value_parser = values::seed, help_heading = LONG)]
    seed: Option<u64>,
}

const IO: &str = "I/O";
const MANY: &str = "Load";
const WHERE: &str = "Offsets";
const WHAT: &str = "Data";
const LONG: &str = "Duration";

// Names for them: the argument parser takes `Option<Option<_>>` and `Option<Vec<_>>` for flags of another kind.
type OptionalSync = Option<SyncKind>;
type OptionalSpeed = Option<f64>;
type Mix = Vec<SizeShare>;
type Zones = Vec<Zone>;

impl Flags {
    /// Whether none was given.
    pub fn are_silent(&self) -> bool {
        self.settings() == Settings::default()
            && self.length() == LengthSettings::default()
            && self.series.is_none()
    }

    /// Settings of the workload that were given.
    pub fn settings(&self) -> Settings {
        let rate = self.rate.map(|iops| Arrival::Constant { iops });
        let poisson = self.poisson.map(|iops| Arrival::Poisson { iops });
        let speed =
            self.speed.map(|speed| speed.map_or(Arrival::Closed, |speed| Arrival::Recorded { speed }));
        let zipf = self.zipf.map(|theta| Distribution::Zipf { theta });
        let pareto = self.pareto.map(|h| Distribution::Pareto { h });
        let zones = self.zones.clone().map(|zones| Distribution::Zones { zones });
        Settings {
            name: None,
            block_bytes: self.block,
            sizes: self.sizes.clone(),
            pattern: self.pattern,
            write_percent: self.writes,
            durability: self.durability,
            outstanding: self.outstanding,
            threads: self.threads,
            from_bytes: self.from,
            length_bytes: self.length,
            align_bytes: self.align,
            stride_bytes: self.stride,
            distribution: zipf.or(pareto).or(zones),
            walk: self.walk,
            random_percent: self.random_share,
            same_offset: self.same_offset.then_some(true),
            arrival: rate.or(poisson).or(speed),
            limit: self.limit,
            burst: self.burst,
            sync: self.sync,
            sync_every: self.sync_every,
            content: ContentSettings {
                kind: self.content,
                compressible_percent: self.compressible,
                duplicate_percent: self.duplicate,
                buffer_bytes: self.buffer,
                buffer_file: self.buffer_file.clone(),
            },
            verify: self.verify,
            replay: self.replay.clone(),
            weight: None,
            ..self.shared()
        }
    }

    /// Settings that hold for all workloads of a preset.
    pub fn shared(&self) -> Settings {
        let caching = match (self.buffered, self.mapped) {
            (true, _) => Some(Caching::Buffered),
            (_, true) => Some(Caching::Mapped),
            _ => None,
        };
        Settings { caching, seed: self.seed, ..Settings::default() }
    }

    /// Settings of the time that were given.
    pub fn length(&self) -> LengthSettings {
        LengthSettings {
            warm_up: self.warm_up,
            duration: self.duration,
            ios_max: self.ios,
            cool_down: self.cool_down,
        }
    }
}
