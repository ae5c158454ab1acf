//! The judgement of a database at one time, for each of its volumes.

use capability::{Binding, Capability};
use everyday::JudgedVolume;
use filestats::{Figure, FileInterval, ServiceLevel, WaitInterval};
use host::DeviceNumber;
use incidents::{BusyFile, BusyProcess, Detail, LongWait, Readings, Standing, Subject, Verdicts};
use metrics::{Headroom, Latency};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use verdict::{Confidence, Figures, Neighbour, Observation, Verdict, VerdictKind, fine_for, judge};
use workload::CapKind;

/// The judgement of a database on one volume.
pub struct SubjectJudgement {
    pub subject: Subject,
    /// Its effect on an incident.
    pub standing: Standing,
    /// For how long it had been fine, where it is and was not at the last judgement.
    pub fine_for: Duration,
    /// The verdict on the whole window.
    pub verdict: VerdictKind,
    pub confidence: Confidence,
    /// The figures of the whole window.
    pub readings: Readings,
    /// The multiple of the whole window's demand that the volume can carry.
    pub headroom: Option<Headroom>,
    pub binding: Option<Binding>,
    pub read: Latency,
    pub commit: Latency,
    /// Details of the part of the window that decided.
    pub detail: Detail,
    /// The capability of the volume.
    pub capability: Option<Arc<Capability>>,
    /// Lowest ratio of observed to measured figures, where they contradict each other for a day.
    pub contradicted: Option<f64>,
    /// Limits per second of the database's processes on it, the lowest of each kind.
    pub caps: BTreeMap<CapKind, u64>,
    /// The block device of the volume.
    pub device: Option<DeviceNumber>,
}

/// Whether an incident begins or goes on is judged by this part of the window, the newest: a mean over all of it would change too
/// late.
const NEWEST_PART: u32 = 4;
/// Minimum length of the newest part: shorter ones have too few I/Os.
const NEWEST_MIN: Duration = Duration::from_secs(10);
/// Files, programs and waits that are kept of a moment, at most this many of each.
const NAMED_MAX: usize = 5;

/// The newest part of a window.
pub fn newest_part(window: Duration) -> Duration {
    (window / NEWEST_PART).max(NEWEST_MIN).min(window)
}

/// Inputs of a judgement besides the volume.
pub struct Question<'a> {
    pub database: &'a str,
    pub window: Duration,
    pub service_level: &'a ServiceLevel,
    pub waits: &'a [WaitInterval],
}

impl SubjectJudgement {
    /// Judges one volume of a database. `not_fine` are those that were not fine at the last judgement; it is kept up to date.
    pub fn new(
        volume: JudgedVolume,
        question: &Question<'_>,
        not_fine: &mut HashSet<Subject>,
    ) -> SubjectJudgement {
        let JudgedVolume { target, observation, capability, verdict } = volume;
        let span_ns = u64::try_from(newest_part(question.window).as_nanos()).unwrap_or(u64::MAX);
        let newest = observation.newest(span_ns);
        let on_newest = judge(&newest, capability.as_ref(), question.service_level);
        let standing = Standing::new(Verdicts {
            newest: on_newest.verdict,
            whole: verdict.verdict,
            idle: newest.is_idle(),
            share_at_knee: observation.share_at_knee(capability.as_ref()),
        });
        let subject = Subject { mount: target.place(), database: question.database.to_owned() };
        let fine_for = match standing {
            Standing::Fine if not_fine.remove(&subject) => {
                let most = newest_part(question.window);
                fine_for(&observation, capability.as_ref(), question.service_level, most)
            }
            Standing::Bad(_) | Standing::WasBurst => {
                not_fine.insert(subject.clone());
                Duration::ZERO
            }
            Standing::Fine | Standing::Unknown => Duration::ZERO,
        };
        let whole = Measured::new(&observation, capability.as_ref());
        let decided_by_newest = !standing.is_of_whole(on_newest.verdict);
        let (kind, confidence) = (verdict.verdict, verdict.confidence);
        let (headroom, binding) = (headroom(&verdict), verdict.binding);
        let detail = if decided_by_newest {
            let measured = Measured::new(&newest, capability.as_ref());
            detail(on_newest, &newest, &measured, question.waits)
        } else {
            detail(verdict, &observation, &whole, question.waits)
        };
        SubjectJudgement {
            subject,
            standing,
            fine_for,
            verdict: kind,
            confidence,
            readings: whole.readings,
            headroom,
            binding,
            read: whole.read,
            commit: whole.commit,
            detail,
            contradicted: contradicted(&observation, capability.as_ref()),
            caps: lowest_caps(&observation),
            capability: capability.map(Arc::new),
            device: target.facts().device_number().and_then(DeviceNumber::parse),
        }
    }
}

fn contradicted(observation: &Observation, capability: Option<&Capability>) -> Option<f64> {
    let (seen, capability) = (observation.seen.as_ref()?, capability?);
    let lasting = seen.lasting_contradictions(capability.measured_unix_ns);
    lasting.map(|one| one.times).min_by(f64::total_cmp)
}

fn lowest_caps(observation: &Observation) -> BTreeMap<CapKind, u64> {
    let mut lowest = BTreeMap::new();
    for cap in &observation.caps {
        let known = lowest.entry(cap.kind).or_insert(cap.per_second);
        *known = cap.per_second.min(*known);
    }
    lowest
}

/// The figure to plan with; its range where it has one.
fn headroom(verdict: &Verdict) -> Option<Headroom> {
    let plan = verdict.headroom?;
    let low = verdict.headroom_low.unwrap_or(plan);
    let high = verdict.headroom_high.unwrap_or(plan);
    Some(Headroom { plan, low, high })
}

/// The figures of an observation.
struct Measured {
    readings: Readings,
    read: Latency,
    commit: Latency,
}

impl Measured {
    fn new(observation: &Observation, capability: Option<&Capability>) -> Measured {
        let figures = Figures::from_moments(&observation.moments, capability);
        let place = figures.reads_place.as_ref();
        let read = Latency {
            latency_ns: place.map(|place| place.latency_ns),
            expected_ns: place.map(|place| place.expected_ns),
        };
        let commit_ns = figures.commit_ns();
        let expected_ns = commit_ns.zip(figures.commit_ratio).map(|(ns, ratio)| ns / ratio);
        let commit = Latency { latency_ns: commit_ns, expected_ns };
        let times = |latency: &Latency| {
            latency.latency_ns.zip(latency.expected_ns).map_or(0.0, |(latency, expected)| latency / expected)
        };
        let longest = if times(&commit) > times(&read) { commit } else { read };
        let known = figures.database.is_some();
        let rates = figures.rates();
        let readings = Readings {
            utilisation: figures.utilisation.map(|utilisation| utilisation.value),
            outstanding: known.then_some(figures.outstanding),
            latency_ns: longest.latency_ns,
            expected_ns: longest.expected_ns,
            iops: rates.map(|rates| rates.iops()),
            read_bytes_per_second: rates.map(|rates| rates.read_bytes),
            written_bytes_per_second: rates.map(|rates| rates.written_bytes),
        };
        Measured { readings, read, commit }
    }
}

fn detail(
    verdict: Verdict,
    observation: &Observation,
    measured: &Measured,
    waits: &[WaitInterval],
) -> Detail {
    // An incident begins with a problem.
    let files = if verdict.verdict.needs_action() { busiest_files(&observation.files()) } else { Vec::new() };
    Detail {
        at_unix_ns: observation.ended_unix_ns(),
        summary: verdict.summary,
        cause: verdict.cause,
        confidence: verdict.confidence,
        readings: measured.readings,
        evidence: verdict.evidence,
        next_step: verdict.next_step,
        files,
        processes: observation.neighbours.iter().take(NAMED_MAX).map(busy_process).collect(),
        waits: longest_waits(waits),
    }
}

fn busiest_files(files: &[FileInterval]) -> Vec<BusyFile> {
    let known = files.iter().filter_map(|file| {
        let delta = file.interval.known().filter(|delta| delta.counters.operations() > 0)?;
        let (read, write) = (delta.counters.read, delta.counters.write);
        let seconds = delta.elapsed_s();
        let sync_ns = delta.counters.sync.known().and_then(|sync| sync.stall_ns.known()).unwrap_or(0);
        let stall_ns = read.stall_ns.zip(write.stall_ns, u64::saturating_add).known();
        let outstanding = stall_ns.map(|ns| ns.saturating_add(sync_ns) as f64 / delta.elapsed_ns as f64);
        Some(BusyFile {
            path: file.file.path.clone(),
            operations_per_s: read.count.saturating_add(write.count) as f64 / seconds,
            bytes_per_s: read.bytes.saturating_add(write.bytes) as f64 / seconds,
            outstanding,
        })
    });
    let mut known: Vec<BusyFile> = known.collect();
    let time = |file: &BusyFile| file.outstanding.unwrap_or(0.0);
    known.sort_by(|a, b| time(b).total_cmp(&time(a)).then(b.operations_per_s.total_cmp(&a.operations_per_s)));
    // Calls and block layer are rows of one file: the longer time is the file's.
    let mut named = HashSet::new();
    known.retain(|file| named.insert(file.path.clone()));
    known.truncate(NAMED_MAX);
    known
}

fn busy_process(neighbour: &Neighbour) -> BusyProcess {
    let share = neighbour.part_of(None);
    let (command, device) = (neighbour.command.clone(), neighbour.device.clone());
    BusyProcess { pid: neighbour.pid, command, device, share }
}

fn longest_waits(waits: &[WaitInterval]) -> Vec<LongWait> {
    let known = waits.iter().filter_map(|wait| {
        let Figure::Known(delta) = &wait.interval else { return None };
        let ns = delta.wait_ns.known().filter(|ns| *ns > 0)?;
        Some(LongWait { event: wait.event.clone(), sessions: ns as f64 / delta.elapsed_ns as f64 })
    });
    let mut known: Vec<LongWait> = known.collect();
    known.sort_by(|a, b| b.sessions.total_cmp(&a.sessions));
    known.truncate(NAMED_MAX);
    known
}
