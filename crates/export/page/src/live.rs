use crate::{Details, Instant};
use capability::Capability;
use incidents::{Mark, MarkKind, Readings, Subject};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{self, Duration};
use timeline::{Ring, Span};
use verdict::{Moment, Verdict};
use workload::{Cap, TargetFacts};

/// The agent's state, for the page.
#[derive(Debug, Default)]
pub struct Live {
    known: Mutex<Known>,
    /// Grows with each change of the known state; a moment is none.
    version: AtomicU64,
}

#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Those that are watched, by their names.
    pub sources: BTreeMap<String, SourceNow>,
    pub volumes: BTreeMap<Subject, VolumeNow>,
    pub databases: Vec<Database>,
    /// Databases were looked for once.
    pub ready: bool,
}

/// How a source does.
#[derive(Debug, Default)]
pub(crate) struct SourceNow {
    /// Why it gives nothing.
    pub failing: Option<String>,
    /// Until when someone looks at its files.
    looked_at_until: Option<time::Instant>,
    /// They were reduced with the last judgement.
    is_reduced: bool,
}

/// A database that was found, or named.
#[derive(Clone, Debug, PartialEq)]
pub struct Database {
    /// The cluster, file, container, unit or program.
    pub name: String,
    /// "postgres".
    pub engine: String,
    /// Its first process, where known.
    pub pid: Option<u32>,
    /// Its source, as in verdicts and incidents; `None` where none works.
    pub source: Option<String>,
    /// Figures that it does not report, each with the line that grants it.
    pub lacks: Vec<String>,
}

/// The last judgement of a database on a volume.
#[derive(Clone, Debug)]
pub struct Judged {
    /// When, nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// The verdict on the window.
    pub verdict: Verdict,
    /// Its figures, as in the history and in the metrics.
    pub readings: Readings,
    /// The capability it was judged by.
    pub capability: Option<Arc<Capability>>,
    /// The limits that were in force.
    pub caps: Vec<Cap>,
    /// Promised latency of reads, nanoseconds.
    pub service_level_ns: u64,
}

/// A database on a volume.
#[derive(Debug)]
pub(crate) struct VolumeNow {
    pub id: String,
    pub facts: Option<TargetFacts>,
    /// The last judgement, also while nothing is known now.
    pub judged: Option<Judged>,
    /// Since when the verdict is this one.
    pub since_unix_ns: Option<u64>,
    pub ring: Ring<Instant>,
    pub marks: VecDeque<Mark>,
    /// Number of the newest marks that were not taken for the history yet.
    unsaved_marks: usize,
    pub details: Option<Arc<Details>>,
}

/// Marks kept of each volume.
const MARKS_MAX: usize = 100;
/// Volumes kept: 200 sources of five volumes.
const VOLUMES_MAX: usize = 1_000;
/// Details are reduced for this long after they were requested: a page requests them every few seconds.
const LOOKED_AT: Duration = Duration::from_secs(30);

impl Live {
    /// Only these sources are watched now.
    pub fn keep_only(&self, sources: &[&str]) {
        let is_watched = |source: &str| sources.contains(&source);
        let mut known = self.known();
        let before = (known.sources.len(), known.volumes.len());
        known.sources.retain(|source, _| is_watched(source));
        known.volumes.retain(|subject, _| is_watched(&subject.database));
        let is_same = before == (known.sources.len(), known.volumes.len());
        drop(known);
        if !is_same {
            self.changed();
        }
    }

    /// A source is watched from now on.
    pub fn began(&self, source: &str) {
        self.known().sources.insert(source.to_owned(), SourceNow::default());
        self.changed();
    }

    /// It is no longer watched.
    pub fn gone(&self, source: &str) {
        let mut known = self.known();
        known.sources.remove(source);
        known.volumes.retain(|subject, _| subject.database != source);
        drop(known);
        self.changed();
    }

    /// It gives nothing now.
    pub fn failed(&self, source: &str, at_unix_ns: u64, why: &str) {
        let mut known = self.known();
        let Some(watched) = known.sources.get_mut(source) else { return };
        let is_new = watched.failing.as_deref() != Some(why);
        watched.failing = Some(why.to_owned());
        for (_, volume) in known.volumes.iter_mut().filter(|(subject, _)| subject.database == source) {
            volume.ring.fail(at_unix_ns, why);
        }
        drop(known);
        if is_new {
            self.changed();
        }
    }

    /// The databases of this host, as they were found or named.
    pub fn found(&self, databases: Vec<Database>) {
        let mut known = self.known();
        let is_new = !known.ready || known.databases != databases;
        (known.ready, known.databases) = (true, databases);
        drop(known);
        if is_new {
            self.changed();
        }
    }

    /// The newest moment of a volume. One on which the database does nothing is kept only where it is known already.
    pub fn sampled(
        &self,
        subject: &Subject,
        facts: &TargetFacts,
        moment: &Moment,
        capability: Option<&Capability>,
    ) {
        let instant = Instant::new(moment, capability);
        let does_something = match &instant {
            Ok(instant) => instant.sample.reading.iops.is_some_and(|iops| iops > 0.0),
            Err(_) => false,
        };
        let mut known = self.known();
        let Some(source) = known.sources.get_mut(&subject.database) else { return };
        let was_failing = source.failing.take().is_some();
        if !does_something && !known.volumes.contains_key(subject) {
            return;
        }
        let Some(volume) = known.volume(subject) else { return };
        let is_new = volume.facts.is_none();
        if is_new {
            volume.facts = Some(facts.clone());
        }
        match instant {
            Ok(instant) => volume.ring.push(instant.sample.span, instant),
            Err((span, reason)) => volume.unknown(span, reason),
        }
        drop(known);
        if was_failing || is_new {
            self.changed();
        }
    }

    /// A volume was judged; `details` where someone looks at the source.
    pub fn judged(&self, subject: &Subject, facts: &TargetFacts, judged: Judged, details: Option<Details>) {
        let mut known = self.known();
        let Some(source) = known.sources.get_mut(&subject.database) else { return };
        source.is_reduced = details.is_some();
        let Some(volume) = known.volume(subject) else { return };
        if volume.facts.as_ref() != Some(facts) {
            volume.facts = Some(facts.clone());
        }
        volume.judge(judged);
        volume.details = details.map(Arc::new);
        drop(known);
        self.changed();
    }

    /// The marks that were set since the last call, for the history.
    pub fn take_marks(&self) -> Vec<(Subject, Mark)> {
        let mut known = self.known();
        let mut taken = Vec::new();
        for (subject, volume) in &mut known.volumes {
            let unsaved = std::mem::take(&mut volume.unsaved_marks);
            let newest = volume.marks.iter().rev().take(unsaved);
            taken.extend(newest.map(|mark| (subject.clone(), mark.clone())));
        }
        taken
    }

    /// Whether someone looks at the files, waits or users of a source, so that they are worth reducing.
    pub fn is_looked_at(&self, source: &str) -> bool {
        self.known().sources.get(source).is_some_and(SourceNow::is_looked_at)
    }

    /// Whether someone looks at them and there are none yet: worth a judgement before its time.
    pub fn is_waited_for(&self, source: &str) -> bool {
        self.known().sources.get(source).is_some_and(|source| source.is_looked_at() && !source.is_reduced)
    }

    /// Someone looks at the volume of that id. Returns its details, where there are some already.
    pub(crate) fn look_at(&self, id: &str) -> Option<Arc<Details>> {
        let mut known = self.known();
        let (subject, volume) = known.volumes.iter().find(|(_, volume)| volume.id == id)?;
        let (source, details) = (subject.database.clone(), volume.details.clone());
        let source = known.sources.get_mut(&source)?;
        source.looked_at_until = time::Instant::now().checked_add(LOOKED_AT);
        details
    }

    /// Grows with each change.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Relaxed)
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn changed(&self) {
        self.version.fetch_add(1, Relaxed);
    }
}

impl SourceNow {
    fn is_looked_at(&self) -> bool {
        self.looked_at_until.is_some_and(|until| time::Instant::now() < until)
    }
}

impl Known {
    /// The volume, which may be new; `None` where there are too many.
    pub fn volume(&mut self, subject: &Subject) -> Option<&mut VolumeNow> {
        let is_full = self.volumes.len() >= VOLUMES_MAX && !self.volumes.contains_key(subject);
        (!is_full).then(|| self.volumes.entry(subject.clone()).or_insert_with(|| VolumeNow::new(subject)))
    }

    /// The volume of an id.
    pub fn find(&self, id: &str) -> Option<(&Subject, &VolumeNow)> {
        self.volumes.iter().find(|(_, volume)| volume.id == id)
    }
}

impl VolumeNow {
    pub fn new(subject: &Subject) -> VolumeNow {
        VolumeNow {
            id: id(subject),
            facts: None,
            judged: None,
            since_unix_ns: None,
            ring: Ring::default(),
            marks: VecDeque::new(),
            unsaved_marks: 0,
            details: None,
        }
    }

    fn unknown(&mut self, span: Span, reason: filestats::Reason) {
        self.ring.push_unknown(span, &reason.to_string());
        if reason == filestats::Reason::Restart {
            self.mark(Mark { at_unix_ns: span.to_ns, kind: MarkKind::Restart, text: reason.to_string() });
        }
    }

    fn judge(&mut self, judged: Judged) {
        let before = self.judged.as_ref();
        if before.is_none_or(|before| before.verdict.verdict != judged.verdict.verdict) {
            self.since_unix_ns = Some(judged.at_unix_ns);
        }
        let none = Vec::new();
        let caps_before = before.map_or(&judged.caps, |before| &before.caps);
        let set = judged
            .caps
            .iter()
            .filter(|cap| !caps_before.contains(cap))
            .map(|cap| format!("limit set: {cap} ({})", cap.origin));
        let is_kept =
            |cap: &&Cap| judged.caps.iter().any(|now| now.kind == cap.kind && now.origin == cap.origin);
        let lifted = before.map_or(&none, |before| &before.caps).iter().filter(|cap| !is_kept(cap));
        let lifted = lifted.map(|cap| format!("limit lifted: {cap} ({})", cap.origin));
        let texts: Vec<String> = set.chain(lifted).collect();
        for text in texts {
            self.mark(Mark { at_unix_ns: judged.at_unix_ns, kind: MarkKind::Cap, text });
        }
        self.judged = Some(judged);
    }

    fn mark(&mut self, mark: Mark) {
        let repeats = self.marks.back().is_some_and(|last| {
            last.kind == mark.kind
                && last.text == mark.text
                && mark.at_unix_ns.saturating_sub(last.at_unix_ns) < 5_000_000_000
        });
        if !repeats {
            self.marks.push_back(mark);
            self.unsaved_marks += 1;
        }
        while self.marks.len() > MARKS_MAX {
            self.marks.pop_front();
        }
    }
}

/// An identifier that stays equal for a database and mount, also after a restart: FNV-1a of both, 64 bits.
fn id(subject: &Subject) -> String {
    let bytes = subject.database.bytes().chain([0]).chain(subject.mount.bytes());
    let hash = bytes
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{hash:016x}")
}
