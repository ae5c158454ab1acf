//! Takes the files of one source sequentially: rules for single files are applied at once, the others at the end.

use crate::captured::Captured;
use crate::case::FileCase;
use crate::coverage::Unknown;
use crate::graded::GradedOperations;
use crate::group_totals::{FileGroup, GroupTotals};
use crate::jobs::candidates;
use crate::limits::{BUSIEST_MAX, FINDINGS_MAX, STRETCHES_MAX};
use crate::source_case::SourceCase;
use crate::wait_totals::{nobody_waits, reconciled};
use crate::{
    Analysis, BusyFile, Coverage, Earlier, FILE_RULES, Finding, FindingKind, Gap, SOURCE_RULES, Settings,
    Span,
};
use filestats::{Cache, Figure, FileKind, FileSeries, Reason, Step, Time, TimeSeries, WaitSeries};
use findings::Weight;
use std::collections::BTreeMap;
use workload::Unit;

/// The analysis of one source, file by file.
pub struct Analyzer<'a> {
    source: SourceCase<'a>,
    earlier: Option<&'a TimeSeries>,
    captured: Captured,
    findings: Vec<(Finding, FileKind)>,
    stall_ns: Figure<u64>,
    known_ns: u128,
    unknown_ns: u128,
    /// The last interval that was counted for a reason, so that one of many files counts once.
    unknown_at: BTreeMap<Reason, Vec<bool>>,
}

impl<'a> Analyzer<'a> {
    /// Begins a source. `earlier` are captures before the stretch, an hour apart, for what is usual.
    pub fn new(
        series: &'a TimeSeries,
        earlier: Option<&'a TimeSeries>,
        settings: &'a Settings,
    ) -> Analyzer<'a> {
        let captured = Captured::from_series(series, earlier, settings.rules);
        let source = SourceCase {
            series,
            settings,
            coverage: Coverage::from_series(series, settings),
            totals: GroupTotals::new(series.ticks.len()),
            busiest: Vec::new(),
            files_waited: 0,
            kept: GradedOperations::default(),
            broken: false,
            data_bytes: Figure::Known(0),
            whole_reads: Vec::new(),
            rebuilds: Vec::new(),
            vm_writes: Vec::new(),
            waited: BTreeMap::new(),
            days: captured.days_max(series),
        };
        Analyzer {
            source,
            earlier,
            captured,
            findings: Vec::new(),
            stall_ns: Figure::Known(0),
            known_ns: 0,
            unknown_ns: 0,
            unknown_at: BTreeMap::new(),
        }
    }

    /// Takes one file. `earlier` is the same file before the stretch.
    ///
    /// I/O of a file below the page cache is counted above it already, and left out.
    pub fn add_file(&mut self, file: &FileSeries, earlier: Option<&FileSeries>) {
        let is_device = file.file.kind == FileKind::Device;
        if file.meaning.cache == Cache::Below && !is_device {
            return;
        }
        self.cover(file);
        let earlier = self.earlier.map(|series| Earlier { series, file: earlier });
        let case = FileCase {
            series: self.source.series,
            file,
            earlier,
            settings: self.source.settings,
            captured: &self.captured,
        };
        for rule in FILE_RULES {
            self.findings.extend(rule(&case).into_iter().map(|finding| (finding, file.file.kind)));
        }
        self.source.kept.add(&case);
        self.source.totals.add(file);
        candidates::whole_reads(&case, self.source.coverage.files, &mut self.source.whole_reads);
        candidates::rebuild_candidates(&case, &mut self.source.rebuilds);
        candidates::vm_writes(&case, &mut self.source.vm_writes);
        if file.file.kind == FileKind::Data {
            self.source.data_bytes = self.source.data_bytes.zip(file.size_bytes, u64::saturating_add);
        }
        if let Some(busy) = BusyFile::from_series(file) {
            self.stall_ns = self.stall_ns.zip(busy.stall_ns, u64::saturating_add);
            self.source.files_waited += usize::from(busy.stall_known_ns() > 0);
            let at =
                self.source.busiest.partition_point(|other| other.stall_known_ns() >= busy.stall_known_ns());
            self.source.busiest.insert(at, busy);
            self.source.busiest.truncate(BUSIEST_MAX);
        }
    }

    /// Whether a file needs its history of the days before: one that did nothing has nothing to compare.
    pub fn wants_earlier(file: &FileSeries) -> bool {
        file.steps.iter().any(|step| step.added.known().is_some())
    }

    /// Takes what sessions waited for, after the last file.
    pub fn add_waits(&mut self, waits: &[WaitSeries]) {
        self.source.waited = reconciled(self.source.series, &self.source.totals, waits, self.source.settings);
    }

    /// Takes the gaps that the recorder noted of this source.
    pub fn set_gaps(&mut self, gaps: Vec<Gap>) {
        self.source.coverage.gaps = gaps;
    }

    /// Sums of all files of a kind, interval by interval: of data, logs and temporary files, those that did anything.
    /// Computed one at a time, as each is as long as the stretch.
    pub fn kinds(&self) -> impl Iterator<Item = (FileKind, Vec<Step>)> {
        FileGroup::ALL.into_iter().filter_map(|sum| Some((sum.kind(), self.source.totals.steps(sum)?)))
    }

    /// Judges what needs all files, and puts the worst first.
    pub fn finish(mut self) -> Analysis {
        let all_ns = self.known_ns + self.unknown_ns;
        self.source.coverage.known_share = (all_ns > 0).then(|| self.known_ns as f64 / all_ns as f64);
        for busy in &mut self.source.busiest {
            let share = busy.stall_ns.zip(self.stall_ns, |mine, all| mine as f64 / all.max(1) as f64);
            busy.share = share.known();
        }
        let all = std::mem::take(&mut self.findings).into_iter();
        let mut findings: Vec<Finding> =
            all.map(|(finding, kind)| self.weighed_by_waits(finding, kind)).collect();
        self.source.broken = findings
            .iter()
            .any(|finding| finding.kind == FindingKind::Breach && finding.weight == Weight::Warning);
        findings.extend(SOURCE_RULES.iter().flat_map(|rule| rule(&self.source)));
        findings.sort_by_key(|finding| std::cmp::Reverse((finding.weight, finding.stall_ns)));
        let mut of_files = 0;
        findings.retain(|finding| {
            of_files += usize::from(finding.path.is_some());
            finding.path.is_none() || of_files <= FINDINGS_MAX
        });
        findings.extend(not_listed(of_files.saturating_sub(FINDINGS_MAX)));
        Analysis {
            source: self.source.series.source.clone(),
            coverage: self.source.coverage,
            findings,
            busiest: self.source.busiest,
        }
    }

    /// A slow file for which no session waits gives a note, not a warning.
    fn weighed_by_waits(&self, mut finding: Finding, kind: FileKind) -> Finding {
        let breach = finding.kind == FindingKind::Breach && finding.weight == Weight::Warning;
        if let Some(direction) = finding.direction.filter(|_| breach)
            && nobody_waits(&self.source.waited, kind, direction)
        {
            finding.weight = Weight::Note;
            finding.text.push_str("; but nobody waits for it, as the server's own waits say");
        }
        finding
    }

    /// Counts what of a file is known.
    fn cover(&mut self, file: &FileSeries) {
        self.source.coverage.files += 1;
        self.known_ns += u128::from(file.known_ns);
        self.unknown_ns += u128::from(file.unknown_ns);
        let known = || file.steps.iter().filter_map(|step| step.added.known());
        if known().next().is_some() {
            self.source.coverage.files_used += 1;
            let untimed = file.meaning.read_time == Time::ToSubmission
                || file.meaning.write_time == Time::ToSubmission
                || known().any(|added| added.stall_ns().reason().is_some());
            self.source.coverage.files_untimed += usize::from(untimed);
            self.source.coverage.files_unsized += usize::from(file.size_bytes.known().is_none());
        }
        for step in &file.steps {
            let Some(reason) = step.added.reason() else { continue };
            let seen =
                self.unknown_at.entry(reason).or_insert_with(|| vec![false; self.source.series.ticks.len()]);
            let unknown: &mut Unknown = self.source.coverage.unknown.entry(reason).or_default();
            unknown.file_intervals += 1;
            if !std::mem::replace(&mut seen[step.at], true) {
                unknown.intervals += 1;
                unknown.when.push(Span::of_ticks(self.source.series, step.at, step.at));
                unknown.when.sort_by_key(|span| span.from_unix_ns);
                unknown.when.truncate(STRETCHES_MAX);
            }
        }
    }
}

/// States how many findings are not listed.
fn not_listed(findings: usize) -> Option<Finding> {
    let text = format!("{findings} more findings of single files, which weigh less, are not listed");
    (findings > 0).then(|| {
        Finding::new(FindingKind::NotListed, Weight::Note, text)
            .fact("findings not listed", findings as f64, Unit::None)
            .next("fewer at once: --source, --from and --to, or a service level that fits")
    })
}
