use std::path::PathBuf;
use std::time::Duration;
use workload::{
    Arrival, Burst, Caching, Content, Distribution, Durability, Limit, Pattern, Phase, Placed, SizeShare,
    SyncEvery, SyncKind, Verify, Walk,
};

/// Settings of a workload, from a file or from flags, to be laid over the defaults or over a preset. `None`:
/// not set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// For people.
    pub name: Option<String>,
    /// Bytes of each I/O.
    pub block_bytes: Option<u32>,
    /// Sizes where they differ.
    pub sizes: Option<Vec<SizeShare>>,
    /// Random or sequential.
    pub pattern: Option<Pattern>,
    /// Share of writes.
    pub write_percent: Option<u8>,
    /// Through the page cache or not.
    pub caching: Option<Caching>,
    /// When writes count as complete.
    pub durability: Option<Durability>,
    /// Outstanding I/Os of each thread.
    pub outstanding: Option<u32>,
    /// Threads.
    pub threads: Option<u32>,
    /// Seed of every random choice.
    pub seed: Option<u64>,
    /// First byte that is used.
    pub from_bytes: Option<u64>,
    /// Bytes used from there on.
    pub length_bytes: Option<u64>,
    /// Random offsets are multiples of this.
    pub align_bytes: Option<u64>,
    /// From one sequential I/O to the next.
    pub stride_bytes: Option<u64>,
    /// Where random I/Os gather.
    pub distribution: Option<Distribution>,
    /// How threads share a sequential walk.
    pub walk: Option<Walk>,
    /// Share of the I/Os that goes to a random place.
    pub random_percent: Option<u8>,
    /// All outstanding I/Os of a thread at the same offset.
    pub same_offset: Option<bool>,
    /// When I/Os are issued.
    pub arrival: Option<Arrival>,
    /// Bounds of a closed loop.
    pub limit: Option<Limit>,
    /// Rests between bursts.
    pub burst: Option<Burst>,
    /// The call between writes; `Some(None)`: none, whatever the preset has.
    pub sync: Option<Option<SyncKind>>,
    /// Writes of a thread between syncs.
    pub sync_every: Option<u32>,
    /// Content of writes.
    pub content: ContentSettings,
    /// Check of the written data.
    pub verify: Option<Verify>,
    /// The trace whose I/Os are issued.
    pub replay: Option<PathBuf>,
    /// Share of a pool's outstanding I/Os.
    pub weight: Option<u32>,
}

/// Settings of the content of writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContentSettings {
    /// "random", "fresh", "zeros", "counting" or "buffer".
    pub kind: Option<ContentKind>,
    /// Share that compresses away.
    pub compressible_percent: Option<u8>,
    /// Share of the writes that repeat.
    pub duplicate_percent: Option<u8>,
    /// Size of the buffer that writes take their content from.
    pub buffer_bytes: Option<u64>,
    /// File that fills it.
    pub buffer_file: Option<PathBuf>,
}

/// The kinds of [`Content`] without what belongs to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentKind {
    /// [`Content::Random`].
    Random,
    /// [`Content::Fresh`].
    Fresh,
    /// [`Content::Zeros`].
    Zeros,
    /// [`Content::Counting`].
    Counting,
    /// [`Content::Buffer`].
    Buffer,
}

/// Their words.
pub const CONTENTS: &[(&str, ContentKind)] = &[
    ("random", ContentKind::Random),
    ("fresh", ContentKind::Fresh),
    ("zeros", ContentKind::Zeros),
    ("counting", ContentKind::Counting),
    ("buffer", ContentKind::Buffer),
];

/// Size of the buffer where only its file is named.
const BUFFER_BYTES: u64 = 64 << 20;

impl Settings {
    /// Lays these settings over a workload. A setting there that contradicts them and was not given again is
    /// removed: a rate takes the place of a limit, one size that of a mix, a sequential pattern that of a
    /// distribution.
    pub fn apply(&self, placed: &mut Placed) {
        let workload = &mut placed.workload;
        let shape = &mut workload.shape;
        set(&mut workload.name, self.name.clone());
        set(&mut shape.pattern, self.pattern);
        set(&mut shape.write_percent, self.write_percent);
        set(&mut shape.caching, self.caching);
        set(&mut shape.durability, self.durability);
        if let Some(bytes) = self.block_bytes {
            shape.block_bytes = bytes;
            workload.sizes.clear();
        }
        if let Some(sizes) = &self.sizes {
            let largest = sizes.iter().map(|size| size.block_bytes).max();
            shape.block_bytes = self.block_bytes.or(largest).unwrap_or(shape.block_bytes);
            workload.sizes.clone_from(sizes);
        }
        set(&mut workload.outstanding, self.outstanding);
        set(&mut workload.threads, self.threads);
        set(&mut workload.seed, self.seed);
        set(&mut workload.verify, self.verify.map(Some));
        self.apply_access(placed);
        self.apply_demand(placed);
        self.content.apply(&mut placed.workload.content);
        set(&mut placed.weight, self.weight);
    }

    /// These settings, and those of `other` where these say nothing.
    #[must_use]
    pub fn or(self, other: Settings) -> Settings {
        Settings {
            name: self.name.or(other.name),
            block_bytes: self.block_bytes.or(other.block_bytes),
            sizes: self.sizes.or(other.sizes),
            pattern: self.pattern.or(other.pattern),
            write_percent: self.write_percent.or(other.write_percent),
            caching: self.caching.or(other.caching),
            durability: self.durability.or(other.durability),
            outstanding: self.outstanding.or(other.outstanding),
            threads: self.threads.or(other.threads),
            seed: self.seed.or(other.seed),
            from_bytes: self.from_bytes.or(other.from_bytes),
            length_bytes: self.length_bytes.or(other.length_bytes),
            align_bytes: self.align_bytes.or(other.align_bytes),
            stride_bytes: self.stride_bytes.or(other.stride_bytes),
            distribution: self.distribution.or(other.distribution),
            walk: self.walk.or(other.walk),
            random_percent: self.random_percent.or(other.random_percent),
            same_offset: self.same_offset.or(other.same_offset),
            arrival: self.arrival.or(other.arrival),
            limit: self.limit.or(other.limit),
            burst: self.burst.or(other.burst),
            sync: self.sync.or(other.sync),
            sync_every: self.sync_every.or(other.sync_every),
            content: ContentSettings {
                kind: self.content.kind.or(other.content.kind),
                compressible_percent: self
                    .content
                    .compressible_percent
                    .or(other.content.compressible_percent),
                duplicate_percent: self.content.duplicate_percent.or(other.content.duplicate_percent),
                buffer_bytes: self.content.buffer_bytes.or(other.content.buffer_bytes),
                buffer_file: self.content.buffer_file.or(other.content.buffer_file),
            },
            verify: self.verify.or(other.verify),
            replay: self.replay.or(other.replay),
            weight: self.weight.or(other.weight),
        }
    }

    fn apply_access(&self, placed: &mut Placed) {
        let access = &mut placed.workload.access;
        match self.pattern {
            Some(Pattern::Sequential) => access.distribution = Distribution::Uniform,
            Some(Pattern::Random) => access.same_offset = false,
            None => {}
        }
        set(&mut access.base_bytes, self.from_bytes);
        set(&mut access.length_bytes, self.length_bytes.map(Some));
        set(&mut access.align_bytes, self.align_bytes.map(Some));
        set(&mut access.stride_bytes, self.stride_bytes.map(Some));
        set(&mut access.distribution, self.distribution.clone());
        set(&mut access.walk, self.walk);
        set(&mut access.random_percent, self.random_percent.map(Some));
        set(&mut access.same_offset, self.same_offset);
    }

    fn apply_demand(&self, placed: &mut Placed) {
        let workload = &mut placed.workload;
        if let Some(arrival) = self.arrival {
            workload.arrival = arrival;
            if workload.is_open_loop() {
                (workload.limit, workload.burst) = (Limit::default(), None);
            }
        }
        if self.limit.is_some() || self.burst.is_some() {
            // Said together with a rate it is a contradiction, for the check to name.
            workload.arrival = self.arrival.unwrap_or_default();
        }
        set(&mut workload.limit, self.limit);
        set(&mut workload.burst, self.burst.map(Some));
        let there = workload.sync.unwrap_or(SyncEvery { writes: 1, how: SyncKind::Fdatasync });
        let writes = self.sync_every.unwrap_or(there.writes);
        match (self.sync, self.sync_every) {
            (None, None) => {}
            (Some(None), _) => workload.sync = None,
            (Some(Some(how)), _) => workload.sync = Some(SyncEvery { writes, how }),
            (None, Some(_)) => workload.sync = Some(SyncEvery { writes, ..there }),
        }
        if let Some(trace) = &self.replay {
            placed.replay = Some(trace.clone());
            if self.arrival.is_none() {
                placed.workload.arrival = Arrival::Recorded { speed: 1.0 };
            }
        }
    }
}

impl ContentSettings {
    fn apply(&self, content: &mut Content) {
        let random = self.compressible_percent.is_some() || self.duplicate_percent.is_some();
        let buffer = self.buffer_bytes.is_some() || self.buffer_file.is_some();
        let kind = match (self.kind, random, buffer) {
            (Some(kind), ..) => kind,
            (None, true, _) => ContentKind::Random,
            (None, _, true) => ContentKind::Buffer,
            (None, false, false) => return,
        };
        *content = match kind {
            ContentKind::Random => {
                let (compressible, duplicate) = match content {
                    Content::Random { compressible_percent, duplicate_percent } => {
                        (*compressible_percent, *duplicate_percent)
                    }
                    _ => (0, 0),
                };
                Content::Random {
                    compressible_percent: self.compressible_percent.unwrap_or(compressible),
                    duplicate_percent: self.duplicate_percent.unwrap_or(duplicate),
                }
            }
            ContentKind::Fresh => Content::Fresh,
            ContentKind::Zeros => Content::Zeros,
            ContentKind::Counting => Content::Counting,
            ContentKind::Buffer => Content::Buffer {
                bytes: self.buffer_bytes.unwrap_or(BUFFER_BYTES),
                file: self.buffer_file.clone(),
            },
        };
    }
}

/// How long a phase is, where something was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LengthSettings {
    /// Before anything is counted.
    pub warm_up: Option<Duration>,
    /// The measured time.
    pub duration: Option<Duration>,
    /// Ends it earlier.
    pub ios_max: Option<u64>,
    /// After it.
    pub cool_down: Option<Duration>,
}

/// A number of I/Os without a time ends after this at the latest.
const IOS_TIME_MAX: Duration = Duration::from_secs(24 * 3600);

impl LengthSettings {
    /// Lays these settings over the length of a phase. A trace is issued from its first I/O on, unless a warm-up is
    /// requested.
    pub fn apply(&self, phase: &mut Phase) {
        let length = &mut phase.length;
        if phase.workloads.iter().any(|placed| placed.replay.is_some()) {
            length.warm_up = Duration::ZERO;
        }
        set(&mut length.warm_up, self.warm_up);
        set(&mut length.cool_down, self.cool_down);
        if self.ios_max.is_some() {
            length.ios_max = self.ios_max;
            length.duration = IOS_TIME_MAX;
        }
        set(&mut length.duration, self.duration);
    }
}

fn set<T>(place: &mut T, said: Option<T>) {
    if let Some(value) = said {
        *place = value;
    }
}
