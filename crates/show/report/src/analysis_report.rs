//! What a stored stretch shows, with all that its formats need beside.

use crate::chart::Stretch;
use analyze::{Analysis, Gap};
use filestats::{FileKind, Profile, ServiceLevel, Step, TimeSeries};
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

/// A chart of the page.
#[derive(Clone, Debug, PartialEq)]
pub struct StretchChart {
    pub(crate) source: usize,
    pub(crate) of: Charted,
    pub(crate) stretch: Stretch,
}

/// What a chart of the page is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charted {
    /// All files of a kind of the source.
    Kind(FileKind),
    /// The file of a finding, by the finding's number in the source.
    Finding(usize),
    /// One of the busiest files, by its number in the source's list.
    Busy(usize),
}

impl StretchChart {
    /// Of what files of a kind, or one of them, did in the captures of a source, by the source's number. It keeps a few
    /// hundred points, however long the stretch.
    pub fn new(
        source: usize,
        of: Charted,
        course: &TimeSeries,
        kind: FileKind,
        steps: &[Step],
    ) -> StretchChart {
        let several = matches!(of, Charted::Kind(_));
        StretchChart { source, of, stretch: Stretch::of(course, kind, steps, several) }
    }
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
