//! `/api/v1/state`: each database on each volume, at once.

use crate::about::{About, measure_command};
use crate::live::{Database, Known, SourceNow, VolumeNow};
use incidents::Subject;
use serde::Serialize;
use verdict::{Confidence, VerdictKind};

/// The answer of `/api/v1/state`, but for the time.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct State<'a> {
    /// The host's name.
    host: &'a str,
    /// Version of Headroom.
    version: &'a str,
    /// When the agent started, nanoseconds since 1970.
    started_unix_ns: u64,
    /// The window that a verdict is about, nanoseconds.
    window_ns: u64,
    /// From one judgement to the next, nanoseconds.
    every_ns: u64,
    /// False for a history; `now_unix_ns` is its end then.
    live: bool,
    /// Each database on each volume.
    volumes: Vec<VolumeState<'a>>,
    /// The databases that were found or named.
    databases: Vec<DatabaseState<'a>>,
    /// Incidents that are open.
    incidents_open: usize,
}

/// The state with the time, as it is sent: for its schema, since a state is kept as text and the time is put before it.
#[cfg(feature = "schema")]
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[schemars(rename = "State")]
pub(crate) struct StateNow<'a> {
    /// The time, nanoseconds since 1970.
    now_unix_ns: u64,
    #[serde(flatten)]
    state: State<'a>,
}

/// A database on a volume. Figures are those of the newest window; null where unknown.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct VolumeState<'a> {
    /// Identifier that stays equal for a database and mount, also after a restart.
    id: &'a str,
    /// The source without credentials, as in incidents.
    database: &'a str,
    /// As `database`.
    source: &'a str,
    /// Its engine.
    engine: String,
    /// Where the volume is mounted.
    mount: &'a str,
    /// Name of its block device.
    device: Option<&'a str>,
    /// The verdict.
    verdict: VerdictKind,
    /// The verdict in one sentence.
    sentence: String,
    /// The recommended action.
    next_step: String,
    /// How far to trust it.
    confidence: Option<Confidence>,
    /// Caveats, sentences.
    doubts: &'a [String],
    /// Since when the verdict is the same, nanoseconds since 1970.
    since_unix_ns: Option<u64>,
    /// When it was judged, nanoseconds since 1970.
    judged_unix_ns: Option<u64>,
    /// Why nothing is known now: the verdict is then `cannot-say`, and all figures are null.
    gap: Option<String>,
    /// Share of the storage in use, 1 = all.
    utilisation: Option<f64>,
    /// The multiple of today's demand that can be carried.
    headroom: Option<f64>,
    /// Low end of its range.
    headroom_low: Option<f64>,
    /// High end of its range.
    headroom_high: Option<f64>,
    /// Why it is a range.
    headroom_reason: Option<&'a str>,
    /// The resource that runs out first, as words.
    binding: Option<String>,
    /// Mean I/Os that the database waits for.
    outstanding: Option<f64>,
    /// Reads a second of the database that reached the storage.
    reads_per_second: Option<f64>,
    /// Writes a second of the database that reached the storage.
    writes_per_second: Option<f64>,
    /// Bytes a second that it read from the storage.
    read_bytes_per_second: Option<f64>,
    /// Bytes a second that it wrote to the storage.
    written_bytes_per_second: Option<f64>,
    /// Latency of the operations that sessions wait for longest, reads or commits; without a capability the mean of the
    /// window.
    latency_ns: Option<f64>,
    /// Latency that the curves expect there, nanoseconds.
    expected_latency_ns: Option<f64>,
    /// Promised mean latency of reads, nanoseconds.
    service_level_ns: Option<u64>,
    /// The measurement that the verdict rests on; null where the volume was never measured.
    capability: Option<CapabilityState<'a>>,
    /// The command that measures it.
    measure_command: String,
}

/// A measurement.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CapabilityState<'a> {
    /// When, nanoseconds since 1970.
    measured_unix_ns: u64,
    /// The directory that was measured.
    directory: &'a str,
}

/// A database that was found or named.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DatabaseState<'a> {
    /// Its name.
    name: &'a str,
    /// Its engine.
    engine: &'a str,
    /// Its first process.
    pid: Option<u32>,
    /// Its source; null where none works.
    source: Option<&'a str>,
    /// Whether the agent reads it.
    watched: bool,
    /// Figures that it does not report, each with the line that grants it, or why it gives nothing.
    lacks: Vec<&'a str>,
}

/// The mean rates of the window, which the page shows beside the verdict.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    reads: Option<f64>,
    writes: Option<f64>,
    read_bytes: Option<f64>,
    written_bytes: Option<f64>,
    latency_ns: Option<f64>,
}

/// Judgements after which a volume is taken for one that is not judged.
const JUDGEMENTS_MISSED: u64 = 3;

/// All but the time, which is another one in each answer.
pub(crate) fn state<'a>(known: &'a Known, about: &'a About, incidents_open: usize) -> State<'a> {
    let volumes = known.volumes.iter().map(|(subject, volume)| one(known, about, subject, volume));
    State {
        host: &about.host,
        version: &about.version,
        started_unix_ns: about.started_unix_ns,
        window_ns: about.window_ns,
        every_ns: about.every_ns,
        live: about.live,
        volumes: volumes.collect(),
        databases: databases(known),
        incidents_open,
    }
}

fn one<'a>(known: &Known, about: &About, subject: &'a Subject, volume: &'a VolumeNow) -> VolumeState<'a> {
    let source = known.sources.get(&subject.database);
    let gap = gap(source, volume);
    // While nothing is known now, old figures must not be taken for the present.
    let is_idle = is_idle(volume, about);
    let judged = volume.judged.as_ref().filter(|_| gap.is_none() && !is_idle);
    let verdict = judged.map(|judged| &judged.verdict);
    let rates = if gap.is_none() { rates(volume, about.window_ns) } else { Rates::default() };
    let readings = judged.map(|judged| judged.readings).unwrap_or_default();
    let capability = volume.judged.as_ref().and_then(|judged| judged.capability.as_ref());
    let device = volume.facts.as_ref().and_then(|facts| facts.devices.first());
    let is_still = is_idle || judged.is_some_and(|judged| judged.readings.iops == Some(0.0));
    let (sentence, next_step) = sentence(subject, volume, gap.as_deref(), is_still);
    VolumeState {
        id: &volume.id,
        database: &subject.database,
        source: &subject.database,
        engine: engine(known, &subject.database),
        mount: &subject.mount,
        device: device.map(|device| device.name.as_str()),
        verdict: verdict.map_or(VerdictKind::CannotSay, |verdict| verdict.verdict),
        sentence,
        next_step,
        confidence: verdict.map(|verdict| verdict.confidence),
        doubts: verdict.map_or(&[][..], |verdict| &verdict.doubts),
        since_unix_ns: if gap.is_none() { volume.since_unix_ns } else { volume.ring.failing_since_ns() },
        judged_unix_ns: volume.judged.as_ref().map(|judged| judged.at_unix_ns),
        gap,
        utilisation: readings.utilisation,
        headroom: verdict.and_then(|verdict| verdict.headroom),
        headroom_low: verdict.and_then(|verdict| verdict.headroom_low),
        headroom_high: verdict.and_then(|verdict| verdict.headroom_high),
        headroom_reason: verdict.and_then(|verdict| verdict.headroom_reason.as_deref()),
        binding: verdict
            .and_then(|verdict| verdict.binding)
            .map(|binding| format!("{binding} run out first")),
        outstanding: readings.outstanding,
        reads_per_second: rates.reads,
        writes_per_second: rates.writes,
        read_bytes_per_second: rates.read_bytes,
        written_bytes_per_second: rates.written_bytes,
        latency_ns: readings.latency_ns.or(rates.latency_ns),
        expected_latency_ns: readings.expected_ns,
        service_level_ns: volume.judged.as_ref().map(|judged| judged.service_level_ns),
        capability: capability.map(|capability| CapabilityState {
            measured_unix_ns: capability.measured_unix_ns,
            directory: &capability.target.path,
        }),
        measure_command: measure_command(&subject.mount),
    }
}

fn gap(source: Option<&SourceNow>, volume: &VolumeNow) -> Option<String> {
    let failing = source.and_then(|source| source.failing.as_deref()).or(volume.ring.failing());
    failing.map(str::to_owned)
}

fn sentence(subject: &Subject, volume: &VolumeNow, gap: Option<&str>, is_still: bool) -> (String, String) {
    match (gap, &volume.judged) {
        (Some(gap), _) => (
            format!("nothing is known of {} now: {gap}", subject.database),
            "the agent tries again every 30 s at most; headroom sources doctor says what the source needs"
                .to_owned(),
        ),
        (None, Some(_)) if is_still => (
            format!("the database did no I/O on {} in the newest window", subject.mount),
            "nothing".to_owned(),
        ),
        (None, Some(judged)) => (judged.verdict.summary.clone(), judged.verdict.next_step.clone()),
        (None, None) => {
            ("the first judgement comes within seconds".to_owned(), "wait for the first judgement".to_owned())
        }
    }
}

/// Whether a volume beside the first one is not judged: since its server restarted, the database did nothing there.
fn is_idle(volume: &VolumeNow, about: &About) -> bool {
    let newest = volume.ring.samples().next_back().map(|(span, _)| span.to_ns);
    let judged = volume.judged.as_ref().map(|judged| judged.at_unix_ns);
    let longest = about.window_ns.saturating_add(JUDGEMENTS_MISSED.saturating_mul(about.every_ns));
    newest.zip(judged).is_some_and(|(newest, judged)| newest.saturating_sub(judged) > longest)
}

/// Means over the newest window of the ring.
fn rates(volume: &VolumeNow, window_ns: u64) -> Rates {
    let newest = volume.ring.samples().next_back().map_or(0, |(span, _)| span.to_ns);
    let window = volume.ring.samples().rev().take_while(|(span, _)| newest - span.to_ns < window_ns);
    let mut ns = 0.0;
    let (mut sums, mut waited, mut ios) = ([0.0; 4], 0.0, 0.0);
    for (span, instant) in window {
        let length = span.len_ns() as f64;
        let reading = &instant.sample.reading;
        let values = [
            instant.reads_per_second,
            instant.writes_per_second,
            reading.read_bytes_per_second,
            reading.written_bytes_per_second,
        ];
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value.unwrap_or(0.0) * length);
        if let Some((latency_ns, iops)) = reading.latency_ns.zip(reading.iops) {
            waited += latency_ns * iops * length;
            ios += iops * length;
        }
        ns += length;
    }
    let mean = |sum: f64| (ns > 0.0).then(|| sum / ns);
    let [reads, writes, read_bytes, written_bytes] = sums.map(mean);
    Rates { reads, writes, read_bytes, written_bytes, latency_ns: (ios > 0.0).then(|| waited / ios) }
}

/// The engine of a discovered database; else the word before the colon of the source.
fn engine(known: &Known, source: &str) -> String {
    let found = known.databases.iter().find(|database| database.source.as_deref() == Some(source));
    let by_name = || source.split_once(':').map_or(source, |(engine, _)| engine).to_owned();
    found.map_or_else(by_name, |database| database.engine.clone())
}

fn databases(known: &Known) -> Vec<DatabaseState<'_>> {
    known.databases.iter().map(|database| database_state(known, database)).collect()
}

fn database_state<'a>(known: &'a Known, database: &'a Database) -> DatabaseState<'a> {
    let watched = database.source.as_ref().and_then(|source| known.sources.get(source));
    let failing = watched.and_then(|watched| watched.failing.as_deref());
    DatabaseState {
        name: &database.name,
        engine: &database.engine,
        pid: database.pid,
        source: database.source.as_deref(),
        watched: watched.is_some(),
        lacks: failing.into_iter().chain(database.lacks.iter().map(String::as_str)).collect(),
    }
}
