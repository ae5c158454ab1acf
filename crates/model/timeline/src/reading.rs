/// A stretch of time: from its beginning to its end, which is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Its beginning.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
}

impl Span {
    /// How long it is, nanoseconds.
    pub fn len_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    /// The part of it that lies in another; `None` where they have nothing in common.
    pub fn within(&self, other: Span) -> Option<Span> {
        let (from_ns, to_ns) = (self.from_ns.max(other.from_ns), self.to_ns.min(other.to_ns));
        (from_ns < to_ns).then_some(Span { from_ns, to_ns })
    }
}

/// Figures of a database on a volume that are drawn over time; an unknown one is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Share of the storage in use, 1 = all.
    pub utilisation: Option<f64>,
    /// Mean I/Os that the database waits for.
    pub outstanding: Option<f64>,
    /// Mean latency of what sessions wait for longest: reads or commits, nanoseconds.
    pub latency_ns: Option<f64>,
    /// Latency that the measured curves predict there, nanoseconds.
    pub expected_latency_ns: Option<f64>,
    /// The database's I/Os a second.
    pub iops: Option<f64>,
    /// Bytes a second that it read.
    pub read_bytes_per_second: Option<f64>,
    /// Bytes a second that it wrote.
    pub written_bytes_per_second: Option<f64>,
}

/// One of the figures of a reading: its name in JSON, and how it is read.
pub type Figure = (&'static str, fn(&Reading) -> Option<f64>);

impl Reading {
    /// All figures.
    pub const FIGURES: [Figure; 7] = [
        ("utilisation", |reading| reading.utilisation),
        ("outstanding", |reading| reading.outstanding),
        ("latency_ns", |reading| reading.latency_ns),
        ("expected_latency_ns", |reading| reading.expected_latency_ns),
        ("iops", |reading| reading.iops),
        ("read_bytes_per_second", |reading| reading.read_bytes_per_second),
        ("written_bytes_per_second", |reading| reading.written_bytes_per_second),
    ];
}

/// A reading, and the time that it stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The time.
    pub span: Span,
    /// The figures.
    pub reading: Reading,
}
