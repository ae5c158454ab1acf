//! The analysis of a stored stretch as its formats need it.

use analyze::{Analysis, Gap};
use charts::HistorySeries;
use filestats::{FileKind, Profile, ServiceLevel, Step, TimeSeries};
use findings::Weight;

/// The analysis of one or several sources.
#[derive(Clone, Debug, PartialEq)]
pub struct AnalysisReport {
    /// The stretch, nanoseconds since 1970.
    pub from_unix_ns: u64,
    /// Its end.
    pub until_unix_ns: u64,
    /// The service level.
    pub service_level: ServiceLevel,
    /// The scale of latency bands.
    pub profile: Profile,
    /// Source by source.
    pub sources: Vec<Analysis>,
    /// Gaps of recorded sources whose captures have another name.
    pub gaps: Vec<Gap>,
    /// Version of Headroom.
    pub version: String,
}

/// A chart of the page.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryChart {
    pub(crate) source: usize,
    pub(crate) subject: ChartSubject,
    pub(crate) series: HistorySeries,
}

/// The subject of a chart of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChartSubject {
    /// All files of a kind of the source.
    Kind(FileKind),
    /// The file of a finding, by the finding's number in the source.
    Finding(usize),
    /// One of the busiest files, by its number in the source's list.
    Busy(usize),
}

impl HistoryChart {
    /// The chart of files of the source with that number. It keeps a few hundred points, however long the stretch.
    pub fn new(
        source: usize,
        subject: ChartSubject,
        course: &TimeSeries,
        kind: FileKind,
        steps: &[Step],
    ) -> HistoryChart {
        let several = matches!(subject, ChartSubject::Kind(_));
        HistoryChart { source, subject, series: HistorySeries::new(course, kind, steps, several) }
    }
}

impl AnalysisReport {
    /// Whether anything found is a problem.
    pub fn is_bad(&self) -> bool {
        self.sources
            .iter()
            .flat_map(|source| &source.findings)
            .any(|finding| finding.weight == Weight::Warning)
    }

    /// Whether anything at all is known.
    pub fn says_anything(&self) -> bool {
        self.sources.iter().any(|source| source.coverage.known_share.is_some_and(|known| known > 0.0))
    }
}
