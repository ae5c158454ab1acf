//! One source, file after file: what is kept of each, and what is judged at the end.

use crate::case::FileCase;
use crate::coverage::Unknown;
use crate::hours::Captured;
use crate::jobs::{self, Rebuild, VmWrite, WholeRead};
use crate::limits::{BUSIEST_MAX, DAYS_MIN, FINDINGS_MAX, STRETCHES_MAX};
use crate::service_level::Kept;
use crate::timeline::{Sum, Timeline};
use crate::waits::{Waited, nobody_waits, reconciled};
use crate::{
    Analysis, BusyFile, Coverage, Earlier, FILE_RULES, Finding, FindingKind, Gap, SOURCE_RULES, Settings,
    Span,
};
use filestats::{Cache, Figure, FileKind, FileSeries, Reason, Step, Time, TimeSeries, WaitClass, WaitSeries};
use findings::Weight;
use std::collections::BTreeMap;

/// The stretch of one source, while its files go through.
pub struct Analyzer<'a> {
    course: &'a TimeSeries,
    earlier: Option<&'a TimeSeries>,
    settings: &'a Settings,
    captured: Captured,
    coverage: Coverage,
    findings: Vec<(Finding, FileKind)>,
    timeline: Timeline,
    busiest: Vec<BusyFile>,
    files_waited: usize,
    stall_ns: Figure<u64>,
    kept: Kept,
    known_ns: u128,
    unknown_ns: u128,
    /// The last interval that was counted for a reason, so that one of many files counts once.
    unknown_at: BTreeMap<Reason, Vec<bool>>,
    data_bytes: Figure<u64>,
    whole_reads: Vec<WholeRead>,
    rebuilds: Vec<Rebuild>,
    vm_writes: Vec<VmWrite>,
    waited: BTreeMap<WaitClass, Waited>,
}

/// A source as a whole, at the end.
pub(crate) struct SourceCase<'a> {
    pub course: &'a TimeSeries,
    pub settings: &'a Settings,
    pub coverage: &'a Coverage,
    pub timeline: &'a Timeline,
    pub busiest: &'a [BusyFile],
    /// Files with any time waited.
    pub files_waited: usize,
    pub files: usize,
    pub kept: &'a Kept,
    /// Whether a finding says that the level was broken.
    pub broken: bool,
    pub data_bytes: Figure<u64>,
    pub whole_reads: &'a [WholeRead],
    pub rebuilds: &'a [Rebuild],
    pub vm_writes: &'a [VmWrite],
    pub waited: &'a BTreeMap<WaitClass, Waited>,
    pub usual_known: bool,
    /// Other days of which an hour of the stretch is kept.
    pub days: usize,
}

impl<'a> Analyzer<'a> {
    /// Begins a source. `earlier` are captures before the stretch, an hour apart, for what is usual.
    pub fn new(
        course: &'a TimeSeries,
        earlier: Option<&'a TimeSeries>,
        settings: &'a Settings,
    ) -> Analyzer<'a> {
        Analyzer {
            course,
            earlier,
            settings,
            captured: Captured::of(course, earlier, settings.rules),
            coverage: Coverage::of(course, settings),
            findings: Vec::new(),
            timeline: Timeline::new(course.ticks.len()),
            busiest: Vec::new(),
            files_waited: 0,
            stall_ns: Figure::Known(0),
            kept: Kept::default(),
            known_ns: 0,
            unknown_ns: 0,
            unknown_at: BTreeMap::new(),
            data_bytes: Figure::Known(0),
            whole_reads: Vec::new(),
            rebuilds: Vec::new(),
            vm_writes: Vec::new(),
            waited: BTreeMap::new(),
        }
    }

    /// Takes one file. `earlier` is the same file before the stretch.
    ///
    /// What a source tells of a file below its page cache is the same I/O a second time, and left out.
    pub fn add_file(&mut self, file: &FileSeries, earlier: Option<&FileSeries>) {
        let is_device = file.file.kind == FileKind::Device;
        if file.meaning.cache == Cache::Below && !is_device {
            return;
        }
        self.cover(file);
        let earlier = self.earlier.map(|course| Earlier { course, file: earlier });
        let case = FileCase {
            course: self.course,
            file,
            earlier,
            settings: self.settings,
            captured: &self.captured,
        };
        for rule in FILE_RULES {
            self.findings.extend(rule(&case).into_iter().map(|finding| (finding, file.file.kind)));
        }
        self.kept.add(&case);
        self.timeline.add(file);
        jobs::whole_reads(&case, self.coverage.files, &mut self.whole_reads);
        jobs::rebuild_candidates(&case, &mut self.rebuilds);
        jobs::vm_writes(&case, &mut self.vm_writes);
        if file.file.kind == FileKind::Data {
            self.data_bytes = self.data_bytes.zip(file.size_bytes, u64::saturating_add);
        }
        if let Some(busy) = BusyFile::of(file) {
            self.stall_ns = self.stall_ns.zip(busy.stall_ns, u64::saturating_add);
            self.files_waited += usize::from(busy.stall_known_ns() > 0);
            let at = self.busiest.partition_point(|other| other.stall_known_ns() >= busy.stall_known_ns());
            self.busiest.insert(at, busy);
            self.busiest.truncate(BUSIEST_MAX);
        }
    }

    /// Whether a file is worth a look at the days before: where it did nothing there is nothing to compare.
    pub fn wants_earlier(file: &FileSeries) -> bool {
        file.steps.iter().any(|step| step.added.known().is_some())
    }

    /// Takes what sessions waited for, after the last file.
    pub fn add_waits(&mut self, waits: &[WaitSeries]) {
        self.waited = reconciled(self.course, &self.timeline, waits, self.settings);
    }

    /// Takes the gaps that the recorder noted of this source.
    pub fn set_gaps(&mut self, gaps: Vec<Gap>) {
        self.coverage.gaps = gaps;
    }

    /// What all files of a kind did together, interval by interval: of data, logs and temporary files, those that did
    /// anything. Made one after the other, as each is as long as the stretch.
    pub fn kinds(&self) -> impl Iterator<Item = (FileKind, Vec<Step>)> {
        Sum::ALL.into_iter().filter_map(|sum| Some((sum.kind(), self.timeline.steps(sum)?)))
    }

    /// Judges what needs all files, and puts the worst first.
    pub fn finish(mut self) -> Analysis {
        let all_ns = self.known_ns + self.unknown_ns;
        self.coverage.known_share = (all_ns > 0).then(|| self.known_ns as f64 / all_ns as f64);
        for busy in &mut self.busiest {
            let share = busy.stall_ns.zip(self.stall_ns, |mine, all| mine as f64 / all.max(1) as f64);
            busy.share = share.known();
        }
        let mut findings: Vec<Finding> =
            self.findings.iter().map(|(finding, kind)| self.as_felt(finding.clone(), *kind)).collect();
        let days = self.captured.days_max(self.course);
        let broken = findings
            .iter()
            .any(|finding| finding.kind == FindingKind::Breach && finding.weight == Weight::Warning);
        let case = SourceCase {
            course: self.course,
            settings: self.settings,
            coverage: &self.coverage,
            timeline: &self.timeline,
            busiest: &self.busiest,
            files_waited: self.files_waited,
            files: self.coverage.files_used,
            kept: &self.kept,
            broken,
            data_bytes: self.data_bytes,
            whole_reads: &self.whole_reads,
            rebuilds: &self.rebuilds,
            vm_writes: &self.vm_writes,
            waited: &self.waited,
            usual_known: days >= DAYS_MIN,
            days,
        };
        findings.extend(SOURCE_RULES.iter().flat_map(|rule| rule(&case)));
        findings.sort_by_key(|finding| std::cmp::Reverse((finding.weight, finding.stall_ns)));
        let mut of_files = 0;
        findings.retain(|finding| {
            of_files += usize::from(finding.path.is_some());
            finding.path.is_none() || of_files <= FINDINGS_MAX
        });
        findings.extend(not_listed(of_files.saturating_sub(FINDINGS_MAX)));
        Analysis {
            source: self.course.source.clone(),
            coverage: self.coverage,
            findings,
            busiest: self.busiest,
        }
    }

    /// A slow file that nobody waits for is worth a note, not an alarm.
    fn as_felt(&self, mut finding: Finding, kind: FileKind) -> Finding {
        let breach = finding.kind == FindingKind::Breach && finding.weight == Weight::Warning;
        if let Some(direction) = finding.direction.filter(|_| breach)
            && nobody_waits(&self.waited, kind, direction)
        {
            finding.weight = Weight::Note;
            finding.text.push_str("; but nobody waits for it, as the server's own waits say");
        }
        finding
    }

    /// Counts what of a file is known.
    fn cover(&mut self, file: &FileSeries) {
        self.coverage.files += 1;
        self.known_ns += u128::from(file.known_ns);
        self.unknown_ns += u128::from(file.unknown_ns);
        let known = || file.steps.iter().filter_map(|step| step.added.known());
        if known().next().is_some() {
            self.coverage.files_used += 1;
            let untimed = file.meaning.read_time == Time::ToSubmission
                || file.meaning.write_time == Time::ToSubmission
                || known().any(|added| added.stall_ns().reason().is_some());
            self.coverage.files_untimed += usize::from(untimed);
            self.coverage.files_unsized += usize::from(file.size_bytes.known().is_none());
        }
        for step in &file.steps {
            let Some(reason) = step.added.reason() else { continue };
            let seen = self.unknown_at.entry(reason).or_insert_with(|| vec![false; self.course.ticks.len()]);
            let unknown: &mut Unknown = self.coverage.unknown.entry(reason).or_default();
            unknown.file_intervals += 1;
            if !std::mem::replace(&mut seen[step.at], true) {
                unknown.intervals += 1;
                let (from_unix_ns, until_unix_ns) = self.course.span_unix_ns(step.at);
                unknown.when.push(Span { from_unix_ns, until_unix_ns });
                unknown.when.sort_by_key(|span| span.from_unix_ns);
                unknown.when.truncate(STRETCHES_MAX);
            }
        }
    }
}

/// That there are so many findings more.
fn not_listed(findings: usize) -> Option<Finding> {
    let text = format!("{findings} more findings of single files, which weigh less, are not listed");
    let finding = Finding::new(FindingKind::NotListed, Weight::Note, text).fact(
        "findings not listed",
        findings as f64,
        "",
    );
    (findings > 0)
        .then(|| finding.next("fewer at once: --source, --from and --to, or a service level that fits"))
}
