//! What a stored stretch shows, with all that its formats need beside.

use analyze::{Analysis, Gap};
use filestats::{Course, FileCourse, Profile, ServiceLevel};
use findings::Weight;

/// The analysis of one or several sources.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysed {
    /// The stretch, nanoseconds since 1970.
    pub from_unix_ns: u64,
    /// Its end.
    pub until_unix_ns: u64,
    /// What the users are promised.
    pub service_level: ServiceLevel,
    /// The scale of latency bands.
    pub profile: Profile,
    /// Source by source.
    pub sources: Vec<Analysis>,
    /// Gaps of recorded sources that go by another name than their captures.
    pub gaps: Vec<Gap>,
    /// Version of Headroom.
    pub version: String,
}

/// The file of a finding through the stretch, for its chart.
#[derive(Clone, Debug, PartialEq)]
pub struct FindingCourse {
    /// Which source and finding of it.
    pub source: usize,
    /// The finding's number in that source.
    pub finding: usize,
    /// The captures.
    pub course: Course,
    /// The file.
    pub file: FileCourse,
}

impl Analysed {
    /// Whether anything found is bad news.
    pub fn is_bad(&self) -> bool {
        self.sources.iter().flat_map(|source| &source.findings).any(|found| found.weight == Weight::Warning)
    }

    /// Whether anything at all is known.
    pub fn says_anything(&self) -> bool {
        self.sources.iter().any(|source| source.coverage.known_share.is_some_and(|known| known > 0.0))
    }
}
