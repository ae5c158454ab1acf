//! From the answers to the fleet.

use crate::labels::{Place, host, place};
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
    /// Latencies.
    pub latencies: Vec<Sample>,
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
            Part::Latencies => &mut self.latencies,
            Part::Measured => &mut self.measured,
            Part::SilentSources => &mut self.silent_sources,
            Part::Agents => &mut self.agents,
            Part::Trend => &mut self.trend,
        }
    }
}

const DAY_S: f64 = 86_400.0;

/// The fleet at a time in seconds since 1970. What was judged longer ago than `stale_after_s` is stale.
pub fn fleet(answers: &Answers, at_unix_s: f64, stale_after_s: f64) -> Fleet {
    let mut judged: HashMap<Place, Volume> = HashMap::new();
    for sample in &answers.seen {
        let Some((place, value)) = place(&sample.labels).zip(sample.value()) else { continue };
        let volume = unknown_volume(&place, value);
        let entry = judged.entry(place).or_insert(volume);
        entry.judged_unix_s = entry.judged_unix_s.max(value);
    }
    fill_figures(&mut judged, &answers.figures);
    fill_latencies(&mut judged, &answers.latencies);
    fill_measured(&mut judged, &answers.measured);
    let with_database: BTreeSet<Host> = judged.keys().map(|place| place.host.clone()).collect();
    let agents: BTreeSet<Host> = answers.agents.iter().map(|sample| host(&sample.labels)).collect();
    let mut fleet = Fleet {
        at_unix_s,
        hosts: agents.union(&with_database).count(),
        without_database: agents.difference(&with_database).cloned().collect(),
        silent_sources: silent_sources(&answers.silent_sources),
        has_trends: !answers.trend.is_empty(),
        ..Fleet::default()
    };
    for (place, volume) in judged {
        let Place { host, mount, source: database } = place;
        if at_unix_s - volume.judged_unix_s > stale_after_s {
            fleet.stale.push(Stale { host, mount, database, judged_unix_s: volume.judged_unix_s });
        } else if volume.measured_unix_s.is_none() {
            let Volume { verdict, incident_open, .. } = volume;
            fleet.never_measured.push(NeverMeasured { host, mount, database, verdict, incident_open });
        } else {
            fleet.volumes.push(volume);
        }
    }
    fill_trends(&mut fleet.volumes, &answers.trend, at_unix_s);
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

/// The volumes of the fleet where an incident is open or was, each with the share of the time; the longest first. `found` is
/// the answer to [`incidents_within`](crate::incidents_within).
pub fn with_incidents(fleet: &Fleet, found: &[Sample]) -> Vec<(Volume, f64)> {
    let known = fleet.volumes.iter();
    let known: HashMap<(&Host, &str, &str), &Volume> =
        known.map(|one| ((&one.host, one.mount.as_str(), one.database.as_str()), one)).collect();
    let rows = found.iter().filter_map(|sample| {
        let (place, share) = place(&sample.labels).zip(sample.value())?;
        let key = (&place.host, place.mount.as_str(), place.source.as_str());
        let ranked = known.get(&key).map(|volume| (*volume).clone());
        Some((ranked.unwrap_or_else(|| unranked(fleet, &place)), share))
    });
    let mut rows: Vec<(Volume, f64)> = rows.collect();
    rows.sort_by(|(a, share_of_a), (b, share_of_b)| {
        let open = b.incident_open.cmp(&a.incident_open);
        open.then_with(|| share_of_b.total_cmp(share_of_a)).then_with(|| order(a, b))
    });
    rows
}

/// One that is stale or was never measured has incidents too.
fn unranked(fleet: &Fleet, place: &Place) -> Volume {
    let is_it = |one: &&NeverMeasured| {
        one.host == place.host && one.mount == place.mount && one.database == place.source
    };
    let mut volume = unknown_volume(place, 0.0);
    if let Some(found) = fleet.never_measured.iter().find(is_it) {
        (volume.verdict, volume.incident_open) = (found.verdict, found.incident_open);
    }
    volume
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

/// What the agent says of headroom.
#[derive(Default)]
struct Range {
    plan: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

fn fill_figures(judged: &mut HashMap<Place, Volume>, figures: &[Sample]) {
    let mut ranges: HashMap<Place, Range> = HashMap::new();
    for sample in figures {
        let (Some(name), Some(value)) = (sample.labels.get("__name__"), sample.value()) else { continue };
        let Some(place) = place(&sample.labels) else { continue };
        let Some(volume) = judged.get_mut(&place) else { continue };
        match name.as_str() {
            "headroom_headroom_ratio" => ranges.entry(place).or_default().plan = Some(value),
            "headroom_headroom_low_ratio" => ranges.entry(place).or_default().low = Some(value),
            "headroom_headroom_high_ratio" => ranges.entry(place).or_default().high = Some(value),
            "headroom_utilisation_ratio" => volume.utilisation = Some(value),
            "headroom_demand_outstanding" => volume.outstanding = Some(value),
            "headroom_verdict_confidence" => volume.confidence = Some(value as u8),
            "headroom_verdict_since_timestamp_seconds" => {
                set_verdict(volume, sample.labels.get("verdict"), value);
            }
            "headroom_capability_contradicted_ratio" => volume.contradicted = Some(value),
            "headroom_incident_open" => volume.incident_open = value > 0.0,
            "headroom_binding" if value > 0.0 => volume.binding = sample.labels.get("resource").cloned(),
            _ => {}
        }
    }
    for (place, volume) in judged {
        let Range { plan, low, high } = ranges.remove(place).unwrap_or_default();
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

fn fill_latencies(judged: &mut HashMap<Place, Volume>, latencies: &[Sample]) {
    for sample in latencies {
        let Some(volume) = place(&sample.labels).and_then(|place| judged.get_mut(&place)) else { continue };
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

fn fill_measured(judged: &mut HashMap<Place, Volume>, measured: &[Sample]) {
    let known = measured.iter().filter_map(|sample| {
        let from = sample.labels.get("from").cloned();
        Some(((host(&sample.labels), sample.labels.get("mount")?.clone()), (sample.value()?, from)))
    });
    let known: HashMap<(Host, String), (f64, Option<String>)> = known.collect();
    for (place, volume) in judged {
        let known = known.get(&(place.host.clone(), place.mount.clone()));
        volume.measured_unix_s = known.map(|(at, _)| *at);
        volume.known_from = known.and_then(|(_, from)| from.clone());
    }
}

/// A server of rules may add labels of its own to what it records, so that only the host's must be there.
fn fill_trends(volumes: &mut [Volume], trend: &[Sample], at_unix_s: f64) {
    let mut daily: HashMap<(&str, &str, &str), Vec<&Sample>> = HashMap::new();
    for sample in trend {
        let label = |name: &str| sample.labels.get(name).map_or("", String::as_str);
        daily.entry((label("instance"), label("mount"), label("source"))).or_default().push(sample);
    }
    for volume in volumes {
        let key = (volume.host.instance(), volume.mount.as_str(), volume.database.as_str());
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
