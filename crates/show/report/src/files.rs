//! The files of a database, by falling time waited.

use crate::Check;
use filestats::{Band, Delta, Figure, FileInterval, FileKind, Interval, IoClass, Ops, Profile, Time};

/// One file with its share and its grade.
pub(crate) struct FileRow {
    pub(crate) row: FileInterval,
    /// Its share of the time waited for all files; `None` where unknown.
    pub(crate) stall_share: Option<f64>,
    /// The grade of its operations with the longest waits.
    pub(crate) grade: Option<Grade>,
}

/// A band, and the operations that it grades.
#[derive(Clone, Copy)]
pub(crate) struct Grade {
    pub(crate) band: Band,
    pub(crate) of: &'static str,
    /// Number of bands of the scale.
    pub(crate) bands: usize,
}

impl FileRow {
    pub(crate) fn delta(&self) -> Option<&Delta> {
        self.row.interval.known()
    }

    /// A figure of the interval, or the reason why the interval is unknown.
    pub(crate) fn figure<T>(&self, of: impl Fn(&Delta) -> Figure<T>) -> Figure<T> {
        match &self.row.interval {
            Interval::Known(delta) => of(delta),
            Interval::Unknown(reason) => Figure::unknown(*reason),
        }
    }

    pub(crate) fn average_bytes(&self) -> Figure<f64> {
        self.figure(|delta| delta.counters.transfers().average_bytes())
    }

    pub(crate) fn stall_ns(&self) -> Figure<u64> {
        self.figure(|delta| delta.counters.stall_ns())
    }
}

/// All files of the database on all its volumes, by falling share of the time waited; unknown ones last.
pub(crate) fn worst_first(check: &Check) -> Vec<FileRow> {
    let rows = check.volumes().flat_map(|volume| volume.observation.files());
    let rows = rows.filter(|row| row.file.kind != FileKind::Device);
    let mut files: Vec<FileRow> = rows
        .map(|row| {
            let grade = row.interval.known().and_then(|delta| grade(&check.profile, &row, delta));
            FileRow { row, stall_share: None, grade }
        })
        .collect();
    let total: f64 = files.iter().filter_map(|file| file.stall_ns().known()).map(|ns| ns as f64).sum();
    for file in &mut files {
        file.stall_share = file.stall_ns().known().filter(|_| total > 0.0).map(|ns| ns as f64 / total);
    }
    files.sort_by_key(|file| std::cmp::Reverse(file.stall_ns().known()));
    files
}

/// The grade of the operations with the longest waits. A time to the submission only is no latency.
fn grade(profile: &Profile, row: &FileInterval, delta: &Delta) -> Option<Grade> {
    let of_writes = match row.file.kind {
        FileKind::Log | FileKind::Journal => IoClass::LogWrite,
        _ => IoClass::Write,
    };
    let sync = delta.counters.sync.known().unwrap_or(Ops::ZERO);
    let kinds = [
        ("read", IoClass::Read, row.meaning.read_time, delta.counters.read),
        ("write", of_writes, row.meaning.write_time, delta.counters.write),
        ("sync", of_writes, Time::ToCompletion, sync),
    ];
    let kinds = kinds.into_iter().filter(|(_, _, time, _)| *time != Time::ToSubmission);
    let timed = kinds.filter_map(|(of, class, _, ops)| {
        let latency_ns = ops.latency_ns().known()?;
        Some((ops.stall_ns.known()?, of, class, latency_ns))
    });
    let (_, of, class, latency_ns) = timed.max_by_key(|(stall_ns, ..)| *stall_ns)?;
    Some(Grade { band: profile.band(class, latency_ns), of, bands: profile.bands(class).len() })
}
