use std::path::PathBuf;
use std::time::Duration;
use terminal::Failure;
use workload::{Arrival, Caching, Distribution, Durability, Limit, Pattern, SizeShare, SyncKind, Verify};
use workload_file::{LengthSettings, Settings, values};

/// Flags that describe a workload, in the words of a workload file.
#[derive(clap::Args)]
pub struct Flags {
    /// Bytes of each I/O [default: 8K]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = values::block, help_heading = IO)]
    pub block: Vec<u32>,
    /// Several sizes and their shares, as in 8K:70,64K:30
    #[arg(long, value_name = "MIX", value_parser = values::sizes, help_heading = IO, conflicts_with = "block", hide_short_help = true)]
    sizes: Option<Mix>,
    /// random, sequential [default: random]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = values::word(values::PATTERNS), help_heading = IO)]
    pub pattern: Vec<Pattern>,
    /// Share of writes in percent [default: 0]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = values::percent, help_heading = IO)]
    pub writes: Vec<u8>,
    /// Through the page cache
    #[arg(long, help_heading = IO)]
    buffered: bool,
    /// When a write counts as done: cached, write-through, synced [default: cached]
    #[arg(long, value_name = "WORD", value_parser = values::word(values::DURABILITIES), help_heading = IO, hide_short_help = true)]
    durability: Option<Durability>,
    /// Call fdatasync or fsync after writes; none overrides a preset's
    #[arg(long, value_name = "CALL", value_parser = values::word(values::SYNCS), help_heading = IO, hide_short_help = true)]
    sync: Option<OptionalSync>,

    /// Outstanding I/Os of each thread [default: 32]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = values::count, help_heading = MANY)]
    pub outstanding: Vec<u32>,
    /// Threads [default: 1]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = values::count, help_heading = MANY)]
    pub threads: Vec<u32>,
    /// Constant arrival rate that does not depend on completions (open loop): 2000/s
    #[arg(long, value_name = "RATE", value_parser = values::rate, help_heading = MANY)]
    rate: Option<f64>,
    /// Rate limit of all threads together: 1000/s (I/Os), 200M/s (bytes), or both with a comma
    #[arg(long, value_name = "LIMIT", value_parser = values::limit, help_heading = MANY)]
    limit: Option<Limit>,
    /// Replay the I/Os of a recorded trace
    #[arg(long, value_name = "FILE", help_heading = MANY, conflicts_with = "rate", hide_short_help = true)]
    replay: Option<PathBuf>,

    /// Offset of the first byte that is used [default: 0]
    #[arg(long, value_name = "SIZE", value_parser = values::bytes, help_heading = WHERE, hide_short_help = true)]
    offset: Option<u64>,
    /// Bytes used from that offset on [default: all]
    #[arg(long, value_name = "SIZE", value_parser = values::some_bytes, help_heading = WHERE, hide_short_help = true)]
    length: Option<u64>,
    /// Skewed offsets, Zipf distribution; 0.99 is usual
    #[arg(long, value_name = "THETA", value_parser = values::fraction, help_heading = WHERE, hide_short_help = true)]
    zipf: Option<f64>,

    /// Any other key of a workload file, as in zones=80%:20%: align, buffer, buffer-file, burst, caching, compressible, content,
    /// duplicate, pareto, poisson, random-share, same-offset, speed, stride, sync-every, walk, zones
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, help_heading = WHAT)]
    set: Vec<Settings>,
    /// Read back after the run and compare: checksum, sequence or content
    #[arg(long, value_name = "HOW", value_parser = values::word(values::VERIFIES), help_heading = WHAT)]
    verify: Option<Verify>,

    /// Measured time of each run [default: 30s; of a preset 60s, of a matrix 10s, of a step of --sweep 5s]
    #[arg(long, value_name = "TIME", value_parser = values::some_time, help_heading = LONG)]
    duration: Option<Duration>,
    /// Time before the measured time, not counted [default: 5s; of a matrix and --sweep 1s, with --replay none]
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = LONG)]
    warm_up: Option<Duration>,
    /// Time after the measured time, not counted
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = LONG, hide_short_help = true)]
    cool_down: Option<Duration>,
    /// End after this many I/Os
    #[arg(long, value_name = "N", value_parser = values::ios, help_heading = LONG, hide_short_help = true)]
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
type Mix = Vec<SizeShare>;

/// `KEY=VALUE`, a setting in the words of a workload file.
fn setting(text: &str) -> Result<Settings, String> {
    let (key, value) = text.split_once('=').ok_or("give KEY=VALUE, as in zones=80%:20%")?;
    workload_file::read_setting(key.trim(), value.trim())
        .map_err(|error| format!("{}: {}; {}", error.key, error.reason, error.remedy))
}

impl Flags {
    /// Whether one of them has several values.
    pub fn have_lists(&self) -> bool {
        let Flags { block, pattern, writes, outstanding, threads, .. } = self;
        [block.len(), pattern.len(), writes.len(), outstanding.len(), threads.len()]
            .iter()
            .any(|many| *many > 1)
    }

    /// Whether none was given.
    pub fn are_silent(&self) -> bool {
        self.settings() == Settings::default()
            && self.length() == LengthSettings::default()
            && self.series.is_none()
    }

    /// Settings of the workload that were given.
    pub fn settings(&self) -> Settings {
        self.set.iter().cloned().fold(self.named_settings(), Settings::or)
    }

    /// Refuses settings that contradict each other.
    ///
    /// # Errors
    /// Names them.
    pub fn check(&self) -> Result<(), Failure> {
        let mut before = self.named_settings();
        for one in &self.set {
            if before.clone().or(one.clone()) != one.clone().or(before.clone()) {
                return Err(Failure::usage("a setting is given twice, by --set and by another flag")
                    .with_remedy(
                        "give each once; of rate, poisson and speed one, of zipf, pareto and zones one",
                    ));
            }
            before = before.or(one.clone());
        }
        let has_speed = self
            .set
            .iter()
            .any(|one| matches!(one.arrival, Some(Arrival::Closed | Arrival::Recorded { .. })));
        if has_speed && before.replay.is_none() {
            return Err(Failure::usage("only a trace has a speed").with_remedy("--replay FILE"));
        }
        Ok(())
    }

    /// Settings that have a flag of their own.
    fn named_settings(&self) -> Settings {
        Settings {
            block_bytes: self.block.first().copied(),
            sizes: self.sizes.clone(),
            pattern: self.pattern.first().copied(),
            write_percent: self.writes.first().copied(),
            caching: self.buffered.then_some(Caching::Buffered),
            durability: self.durability,
            outstanding: self.outstanding.first().copied(),
            threads: self.threads.first().copied(),
            seed: self.seed,
            from_bytes: self.offset,
            length_bytes: self.length,
            distribution: self.zipf.map(|theta| Distribution::Zipf { theta }),
            arrival: self.rate.map(|iops| Arrival::Constant { iops }),
            limit: self.limit,
            sync: self.sync,
            verify: self.verify,
            replay: self.replay.clone(),
            ..Settings::default()
        }
    }

    /// Settings that hold for all workloads of a preset.
    pub fn shared(&self) -> Settings {
        let Settings { caching, seed, .. } = self.settings();
        Settings { caching, seed, ..Settings::default() }
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
