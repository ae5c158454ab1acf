//! From the answers to the fleet.

use crate::labels::{Place, host, is_of_host, place};
use crate::rank::order;
use crate::{
    Fleet, Headroom, HeadroomOrigin, Host, Latency, NeverMeasured, Part, SilentSource, Stale, Trend, Volume,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use verdict::VerdictKind;

/// One series of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Times in seconds since 1970, and values.
    pub points: Vec<(f64, f64)>,
}

/// The answers, one for each [`Part`](crate::Part).
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// To [`Part::Seen`](crate::Part::Seen), and so on.
    pub seen: Vec<Sample>,
    /// Figures.
    pub figures: Vec<Sample>,
    /// Open incidents.
    pub open: Vec<Sample>,
    /// Latencies.
    pub latencies: Vec<Sample>,
    /// Details.
    pub details: Vec<Sample>,
    /// The instances whose latencies and details were queried; `None`: all.
    pub detailed: Option<BTreeSet<String>>,
    /// Measured.
    pub measured: Vec<Sample>,
    /// Silent sources.
    pub silent_sources: Vec<Sample>,
    /// Agents.
    pub agents: Vec<Sample>,
    /// Trend.
    pub trend: Vec<Sample>,
}

impl Answers {
    /// The answer to one of the questions.
    pub fn part(&mut self, part: Part) -> &mut Vec<Sample> {
        match part {
            Part::Seen => &mut self.seen,
            Part::Figures => &mut self.figures,
            Part::Open => &mut self.open,
            Part::Latencies => &mut self.latencies,
            Part::Details => &mut self.details,
            Part::Measured => &mut self.measured,
            Part::SilentSources => &mut self.silent_sources,
            Part::Agents => &mut self.agents,
            Part::Trend => &mut self.trend,
        }
    }
}

const DAY_S: f64 = 86_400.0;

/// The fleet at a time in seconds since 1970. A volume that was judged longer ago than `stale_after_s` is
/// stale.
pub fn fleet(answers: &Answers, at_unix_s: f64, stale_after_s: f64) -> Fleet {
    let mut judged = Judged::from_seen(&answers.seen);
    fill_figures(&mut judged, answers.figures.iter().chain(&answers.details));
    for sample in &answers.open {
        if let Some(at) = judged.find(&sample.labels) {
            judged.volumes[at].incident_open = true;
        }
    }
    for volume in &mut judged.volumes {
        volume.has_details =
            answers.detailed.as_ref().is_none_or(|asked| asked.contains(volume.host.instance()));
    }
    fill_latencies(&mut judged, &answers.latencies);
    fill_measured(&mut judged.volumes, &answers.measured);
    fill_trends(&mut judged, &answers.trend, at_unix_s);
    let with_database: BTreeSet<&Host> = judged.volumes.iter().map(|volume| &volume.host).collect();
    let agents: BTreeSet<Host> = answers.agents.iter().map(|sample| host(&sample.labels)).collect();
    let agents: BTreeSet<&Host> = agents.iter().collect();
    let mut fleet = Fleet {
        at_unix_s,
        hosts: agents.union(&with_database).count(),
        without_database: agents.difference(&with_database).copied().cloned().collect(),
        silent_sources: silent_sources(&answers.silent_sources),
        has_trends: !answers.trend.is_empty(),
        ..Fleet::default()
    };
    for volume in judged.volumes {
        if at_unix_s - volume.judged_unix_s > stale_after_s {
            let Volume { host, mount, database, judged_unix_s, .. } = volume;
            fleet.stale.push(Stale { host, mount, database, judged_unix_s });
        } else if volume.measured_unix_s.is_none() {
            let Volume { host, mount, database, verdict, incident_open, .. } = volume;
            fleet.never_measured.push(NeverMeasured { host, mount, database, verdict, incident_open });
        } else {
            fleet.volumes.push(volume);
        }
    }
    fleet.volumes.sort_by(order);
    fleet.stale.sort_by(|a, b| {
        a.judged_unix_s
            .total_cmp(&b.judged_unix_s)
            .then_with(|| (&a.host, &a.mount, &a.database).cmp(&(&b.host, &b.mount, &b.database)))
    });
    fleet
        .never_measured
        .sort_by(|a, b| (&a.host, &a.mount, &a.database).cmp(&(&b.host, &b.mount, &b.database)));
    fleet
}

/// Judged volumes and databases, found by the labels of a series. Answers have tens of thousands of them: none is copied
/// to be compared.
struct Judged<'a> {
    volumes: Vec<Volume>,
    /// By instance, mount and database; hosts with the same name differ in other labels.
    by_name: HashMap<[&'a str; 3], Vec<usize>>,
}

impl<'a> Judged<'a> {
    fn from_seen(seen: &'a [Sample]) -> Judged<'a> {
        let mut judged = Judged { volumes: Vec::new(), by_name: HashMap::new() };
        for sample in seen {
            let Some((place, value)) = place(&sample.labels).zip(sample.value()) else { continue };
            if let Some(volume) = judged.find(&sample.labels).map(|at| &mut judged.volumes[at]) {
                volume.judged_unix_s = volume.judged_unix_s.max(value);
                continue;
            }
            judged.by_name.entry(names(&sample.labels)).or_default().push(judged.volumes.len());
            judged.volumes.push(unknown_volume(&place, value));
        }
        judged
    }

    /// The place of the series' volume in the list.
    fn find(&self, labels: &BTreeMap<String, String>) -> Option<usize> {
        let named = self.by_name.get(&names(labels))?;
        named.iter().copied().find(|at| is_of_host(labels, &self.volumes[*at].host))
    }
}

/// Instance, mount and database.
fn names(labels: &BTreeMap<String, String>) -> [&str; 3] {
    ["instance", "mount", "source"].map(|name| labels.get(name).map_or("", String::as_str))
}

/// A volume where an incident is open or was.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeIncidents {
    /// The volume.
    pub volume: Volume,
    /// Whether one is open now; `None` where the volume is not judged any more.
    pub is_open: Option<bool>,
    /// For how long one was open, seconds.
    pub open_s: f64,
}

/// The volumes of the fleet where an incident is open or was: first those where one is open, then those where that is not known,
/// each the longest first. `found` is the answer to [`incidents_within`](crate::incidents_within).
pub fn with_incidents(fleet: &Fleet, found: &[Sample]) -> Vec<VolumeIncidents> {
    let known = fleet.volumes.iter();
    let known: HashMap<(&Host, &str, &str), &Volume> =
        known.map(|one| ((&one.host, one.mount.as_str(), one.database.as_str()), one)).collect();
    let rows = found.iter().filter_map(|sample| {
        let (place, open_s) = place(&sample.labels).zip(sample.value())?;
        let key = (&place.host, place.mount.as_str(), place.source.as_str());
        let (volume, is_open) = match known.get(&key) {
            Some(volume) => ((*volume).clone(), Some(volume.incident_open)),
            None => unranked(fleet, &place),
        };
        Some(VolumeIncidents { volume, is_open, open_s })
    });
    let mut rows: Vec<VolumeIncidents> = rows.collect();
    let rank = |row: &VolumeIncidents| match row.is_open {
        Some(true) => 0,
        None => 1,
        Some(false) => 2,
    };
    rows.sort_by(|a, b| {
        let by_time = || b.open_s.total_cmp(&a.open_s);
        rank(a).cmp(&rank(b)).then_with(by_time).then_with(|| order(&a.volume, &b.volume))
    });
    rows
}

/// One that is stale or was never measured has incidents too.
fn unranked(fleet: &Fleet, place: &Place) -> (Volume, Option<bool>) {
    let is_it = |one: &&NeverMeasured| {
        one.host == place.host && one.mount == place.mount && one.database == place.source
    };
    let mut volume = unknown_volume(place, 0.0);
    let found = fleet.never_measured.iter().find(is_it);
    if let Some(found) = found {
        (volume.verdict, volume.incident_open) = (found.verdict, found.incident_open);
    }
    (volume, found.map(|found| found.incident_open))
}

impl Sample {
    /// The last value; `None` for one that is no number.
    fn value(&self) -> Option<f64> {
        self.points.last().map(|(_, value)| *value).filter(|value| value.is_finite())
    }
}

fn unknown_volume(place: &Place, judged_unix_s: f64) -> Volume {
    Volume {
        host: place.host.clone(),
        mount: place.mount.clone(),
        database: place.source.clone(),
        verdict: None,
        confidence: None,
        headroom: None,
        utilisation: None,
        binding: None,
        outstanding: None,
        read: Latency::default(),
        commit: Latency::default(),
        measured_unix_s: None,
        known_from: None,
        contradicted: None,
        has_details: false,
        judged_unix_s,
        since_unix_s: None,
        incident_open: false,
        trend: None,
    }
}

/// Where no end of a series was marked, the verdict before is there for five minutes more: the one that began last holds.
fn set_verdict(volume: &mut Volume, word: Option<&String>, since_unix_s: f64) {
    if volume.since_unix_s.is_none_or(|known| since_unix_s >= known) {
        volume.since_unix_s = Some(since_unix_s);
        volume.verdict = word.and_then(|word| VerdictKind::ALL.into_iter().find(|kind| kind.word() == word));
    }
}

/// Bounds of the headroom, from the agent.
#[derive(Clone, Copy, Default)]
struct Range {
    plan: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

fn fill_figures<'a>(judged: &mut Judged<'_>, figures: impl Iterator<Item = &'a Sample>) {
    let mut ranges = vec![Range::default(); judged.volumes.len()];
    for sample in figures {
        let (Some(name), Some(value)) = (sample.labels.get("__name__"), sample.value()) else { continue };
        let Some(at) = judged.find(&sample.labels) else { continue };
        let (volume, range) = (&mut judged.volumes[at], &mut ranges[at]);
        match name.as_str() {
            "headroom_headroom_ratio" => range.plan = Some(value),
            "headroom_headroom_low_ratio" => range.low = Some(value),
            "headroom_headroom_high_ratio" => range.high = Some(value),
            "headroom_utilisation_ratio" => volume.utilisation = Some(value),
            "headroom_demand_outstanding" => volume.outstanding = Some(value),
            "headroom_verdict_confidence" => volume.confidence = Some(value as u8),
            "headroom_verdict_since_timestamp_seconds" => {
                set_verdict(volume, sample.labels.get("verdict"), value);
            }
            "headroom_capability_contradicted_ratio" => volume.contradicted = Some(value),
            "headroom_binding" if value > 0.0 => volume.binding = sample.labels.get("resource").cloned(),
            _ => {}
        }
    }
    for (volume, Range { plan, low, high }) in judged.volumes.iter_mut().zip(ranges) {
        let by_agent = plan.map(|plan| Headroom { plan, low, high, origin: HeadroomOrigin::Agent });
        volume.headroom = by_agent.or_else(|| by_utilisation(volume));
    }
}

fn by_utilisation(volume: &Volume) -> Option<Headroom> {
    let utilisation = volume.utilisation.filter(|value| *value > 0.0)?;
    let is_said = volume.verdict.is_some_and(|kind| kind != VerdictKind::CannotSay);
    let origin = HeadroomOrigin::Utilisation;
    is_said.then_some(Headroom { plan: 1.0 / utilisation, low: None, high: None, origin })
}

fn fill_latencies(judged: &mut Judged<'_>, latencies: &[Sample]) {
    for sample in latencies {
        let Some(volume) = judged.find(&sample.labels).map(|at| &mut judged.volumes[at]) else { continue };
        let latency = match sample.labels.get("op").map(String::as_str) {
            Some("read") => &mut volume.read,
            Some("commit") => &mut volume.commit,
            _ => continue,
        };
        match sample.labels.get("__name__").map(String::as_str) {
            Some("headroom_latency_seconds") => latency.latency_s = sample.value(),
            Some("headroom_expected_latency_seconds") => latency.expected_s = sample.value(),
            _ => {}
        }
    }
}

fn fill_measured(volumes: &mut [Volume], measured: &[Sample]) {
    let mut known: HashMap<[&str; 2], Vec<&Sample>> = HashMap::new();
    for sample in measured.iter().filter(|sample| sample.value().is_some()) {
        let [instance, mount, _] = names(&sample.labels);
        known.entry([instance, mount]).or_default().push(sample);
    }
    for volume in volumes {
        let named = known.get(&[volume.host.instance(), volume.mount.as_str()]);
        let found = named.and_then(|all| all.iter().rev().find(|one| is_of_host(&one.labels, &volume.host)));
        volume.measured_unix_s = found.and_then(|sample| sample.value());
        volume.known_from = found.and_then(|sample| sample.labels.get("from").cloned());
    }
}

/// A server of rules may add labels of its own to what it records, so that only the host's must be there.
fn fill_trends(judged: &mut Judged<'_>, trend: &[Sample], at_unix_s: f64) {
    let mut daily: HashMap<[&str; 3], Vec<&Sample>> = HashMap::new();
    for sample in trend {
        daily.entry(names(&sample.labels)).or_default().push(sample);
    }
    for volume in &mut judged.volumes {
        let key = [volume.host.instance(), volume.mount.as_str(), volume.database.as_str()];
        let is_of_it = |sample: &&&Sample| {
            volume.host.labels.iter().all(|(name, value)| sample.labels.get(name) == Some(value))
        };
        let found = daily.get(&key).and_then(|all| all.iter().find(is_of_it));
        let days = found.map(|sample| sample.points.iter().map(|(at, value)| (at / DAY_S, *value)).collect());
        volume.trend = days.and_then(|days: Vec<_>| Trend::fit(&days, at_unix_s / DAY_S));
    }
}

fn silent_sources(samples: &[Sample]) -> Vec<SilentSource> {
    let all = samples.iter().filter_map(|sample| {
        Some(SilentSource { host: host(&sample.labels), source: sample.labels.get("source")?.clone() })
    });
    let mut all: Vec<SilentSource> = all.collect();
    all.sort();
    all
}

#[cfg(test)]
mod tests;
