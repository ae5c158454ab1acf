//! A fleet, the worst volume first.

use super::plain::plain;
use crate::number;
use fleet::{Fleet, HeadroomOrigin, Host, Latency, Trend, Volume, VolumeIncidents};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use verdict::VerdictKind;

/// Output of `headroom fleet --json`, of `fleet show`, and each line of `fleet --every`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Fleet"))]
pub(super) struct FleetOutput<'a> {
    /// The time of all queries, nanoseconds since 1970.
    at_unix_ns: u64,
    /// `at_unix_ns` as RFC 3339.
    at_time: Option<String>,
    /// Number of queries sent.
    queries: usize,
    /// True: some of the servers below the queried one gave nothing.
    incomplete: bool,
    /// The server's warnings about that.
    warnings: &'a [String],
    /// Hosts with an agent.
    hosts: usize,
    /// The judged volumes; the one with the least headroom comes first.
    volumes: Vec<VolumeOutput<'a>>,
    /// Volumes whose verdict is old; they are not ranked.
    stale: Vec<StaleOutput<'a>>,
    /// Volumes that were never measured; they are not ranked.
    never_measured: Vec<NeverMeasuredOutput<'a>>,
    /// Sources that give nothing.
    silent_sources: Vec<SilentSourceOutput<'a>>,
    /// Hosts whose agent judges nothing.
    without_database: Vec<HostOutput<'a>>,
}

/// Output of `headroom fleet incidents --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FleetIncidents"))]
pub(super) struct IncidentsOutput<'a> {
    /// The time of all queries, nanoseconds since 1970.
    at_unix_ns: u64,
    /// The period that was searched, nanoseconds.
    within_ns: u64,
    /// Number of queries sent.
    queries: usize,
    /// True: some of the servers below the queried one gave nothing.
    incomplete: bool,
    /// The server's warnings about that.
    warnings: &'a [String],
    /// Volumes with incidents; open ones come first.
    incidents: Vec<IncidentOutput<'a>>,
    /// Volumes whose verdict is old: what is open there is not known.
    stale: Vec<StaleOutput<'a>>,
    /// Sources that give nothing, likewise.
    silent_sources: Vec<SilentSourceOutput<'a>>,
}

/// A host.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FleetHost"))]
struct HostOutput<'a> {
    /// The host, as the server knows it.
    instance: &'a str,
    /// All labels of the host.
    labels: &'a BTreeMap<String, String>,
}

/// A database on a volume of a host.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FleetPlace"))]
struct PlaceOutput<'a> {
    #[serde(flatten)]
    host: HostOutput<'a>,
    /// Where the volume is mounted.
    mount: &'a str,
    /// The database, as in incidents.
    database: &'a str,
}

/// A judged volume of a fleet.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FleetVolume"))]
struct VolumeOutput<'a> {
    #[serde(flatten)]
    place: PlaceOutput<'a>,
    /// The verdict; null where the server has none.
    verdict: Option<VerdictKind>,
    /// `high`, `medium`, `low`.
    confidence: Option<&'static str>,
    /// The multiple of today's demand that can be carried; null where not known.
    headroom: Option<f64>,
    /// Low end of its range; null without one.
    headroom_low: Option<f64>,
    /// High end of its range.
    headroom_high: Option<f64>,
    /// Where the headroom comes from.
    headroom_origin: Option<HeadroomOrigin>,
    /// Share of the storage in use, 1 = all.
    utilisation: Option<f64>,
    /// The resource that runs out first.
    binding: Option<&'a str>,
    /// Mean I/Os that the database waits for.
    outstanding: Option<f64>,
    /// Whether `confidence`, `headroom_low`, `headroom_high`, `outstanding`, `read`, `commit` and `contradicted` were queried:
    /// of more than 200 volumes, only of the worst (`--top`). Where not, they are null.
    details: bool,
    /// Reads from the storage.
    read: LatencyOutput,
    /// Commits.
    commit: LatencyOutput,
    /// Since when the verdict is the same, nanoseconds since 1970.
    since_unix_ns: Option<u64>,
    /// When it was judged, nanoseconds since 1970.
    judged_unix_ns: u64,
    /// When the volume was measured, nanoseconds since 1970.
    measured_unix_ns: Option<u64>,
    /// `measured`, `gentle`, `borrowed`, `declared`; null where the agent does not report it.
    capability_from: Option<&'a str>,
    /// Ratio of the storage's observed to its measured figures, where they differ by 15 % for a day; else null.
    contradicted: Option<f64>,
    /// Whether an incident is open.
    incident_open: bool,
    /// How its utilisation grows; null with fewer than 14 days.
    trend: Option<TrendOutput>,
}

/// A latency and its expectation.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FleetLatency"))]
struct LatencyOutput {
    /// Mean latency, nanoseconds.
    latency_ns: Option<f64>,
    /// Latency that the measured curves expect, nanoseconds.
    expected_ns: Option<f64>,
}

/// How the utilisation of a volume grows.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Trend"))]
struct TrendOutput {
    /// Days that are known.
    days: usize,
    /// The daily 95th percentile of utilisation today, by the line through all days.
    utilisation: f64,
    /// Its growth a day.
    per_day: f64,
    /// Half the width of its 95 % interval.
    per_day_half_width: f64,
    /// Days until it reaches 1; null where it does not within a year.
    exhausted_in_days: Option<u32>,
    /// Days until it reaches 1 by the upper edge of the 95 % band.
    earliest_days: Option<u32>,
    /// Days until it reaches 1 by the lower edge of the 95 % band; null: perhaps never.
    latest_days: Option<u32>,
    /// Whether that is within 30 days.
    within_30_days: bool,
    /// Whether that is within 90 days.
    within_90_days: bool,
}

/// A volume whose verdict is old.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StaleVolume"))]
struct StaleOutput<'a> {
    #[serde(flatten)]
    place: PlaceOutput<'a>,
    /// When it was judged last, nanoseconds since 1970.
    judged_unix_ns: u64,
    /// `judged_unix_ns` as RFC 3339.
    judged_time: Option<String>,
    /// How long ago, nanoseconds.
    age_ns: u64,
}

/// A volume that was never measured.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "NeverMeasured"))]
struct NeverMeasuredOutput<'a> {
    #[serde(flatten)]
    place: PlaceOutput<'a>,
    /// Its verdict.
    verdict: Option<VerdictKind>,
}

/// A source that gives nothing.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SilentSource"))]
struct SilentSourceOutput<'a> {
    #[serde(flatten)]
    host: HostOutput<'a>,
    /// The source.
    source: &'a str,
}

/// A volume with incidents.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FleetIncident"))]
struct IncidentOutput<'a> {
    #[serde(flatten)]
    place: PlaceOutput<'a>,
    /// Whether one is open now; null where the volume is not judged any more.
    open: Option<bool>,
    /// The part of the period in which one was open, 0 to 1; time without samples is not counted.
    open_share: f64,
    /// That time, nanoseconds.
    open_ns: u64,
    /// The verdict now.
    verdict: Option<VerdictKind>,
}

/// All of it.
pub fn fleet(fleet: &Fleet) -> Value {
    let never = fleet.never_measured.iter().map(|one| NeverMeasuredOutput {
        place: place(&one.host, &one.mount, &one.database),
        verdict: one.verdict,
    });
    let at = ns(fleet.at_unix_s);
    plain(&FleetOutput {
        at_unix_ns: at,
        at_time: number::rfc3339(at),
        queries: fleet.queries,
        incomplete: fleet.incomplete,
        warnings: &fleet.warnings,
        hosts: fleet.hosts,
        volumes: fleet.volumes.iter().map(volume).collect(),
        stale: stale(fleet),
        never_measured: never.collect(),
        silent_sources: silent_sources(fleet),
        without_database: fleet.without_database.iter().map(host).collect(),
    })
}

/// Where incidents were open.
pub fn fleet_incidents(rows: &[VolumeIncidents], within_s: u64, fleet: &Fleet) -> Value {
    let incidents = rows.iter().map(|VolumeIncidents { volume, is_open, open_s }| IncidentOutput {
        place: place(&volume.host, &volume.mount, &volume.database),
        open: *is_open,
        open_share: open_s / within_s as f64,
        open_ns: (open_s * 1e9) as u64,
        verdict: volume.verdict,
    });
    plain(&IncidentsOutput {
        at_unix_ns: ns(fleet.at_unix_s),
        within_ns: within_s.saturating_mul(1_000_000_000),
        queries: fleet.queries,
        incomplete: fleet.incomplete,
        warnings: &fleet.warnings,
        incidents: incidents.collect(),
        stale: stale(fleet),
        silent_sources: silent_sources(fleet),
    })
}

fn stale(fleet: &Fleet) -> Vec<StaleOutput<'_>> {
    let stale = fleet.stale.iter().map(|one| {
        let judged = ns(one.judged_unix_s);
        StaleOutput {
            place: place(&one.host, &one.mount, &one.database),
            judged_unix_ns: judged,
            judged_time: number::rfc3339(judged),
            age_ns: ((fleet.at_unix_s - one.judged_unix_s).max(0.0) * 1e9) as u64,
        }
    });
    stale.collect()
}

fn silent_sources(fleet: &Fleet) -> Vec<SilentSourceOutput<'_>> {
    let silent = fleet.silent_sources.iter();
    silent.map(|one| SilentSourceOutput { host: host(&one.host), source: &one.source }).collect()
}

fn volume(one: &Volume) -> VolumeOutput<'_> {
    let headroom = one.headroom;
    let level = |level: u8| ["low", "medium", "high"][usize::from(level.clamp(1, 3)) - 1];
    VolumeOutput {
        place: place(&one.host, &one.mount, &one.database),
        verdict: one.verdict,
        confidence: one.confidence.map(level),
        headroom: headroom.map(|headroom| headroom.plan),
        headroom_low: headroom.and_then(|headroom| headroom.low),
        headroom_high: headroom.and_then(|headroom| headroom.high),
        headroom_origin: headroom.map(|headroom| headroom.origin),
        utilisation: one.utilisation,
        binding: one.binding.as_deref(),
        outstanding: one.outstanding,
        details: one.has_details,
        read: latency(one.read),
        commit: latency(one.commit),
        since_unix_ns: one.since_unix_s.map(ns),
        judged_unix_ns: ns(one.judged_unix_s),
        measured_unix_ns: one.measured_unix_s.map(ns),
        capability_from: one.known_from.as_deref(),
        contradicted: one.contradicted,
        incident_open: one.incident_open,
        trend: one.trend.as_ref().map(trend),
    }
}

fn latency(latency: Latency) -> LatencyOutput {
    LatencyOutput {
        latency_ns: latency.latency_s.map(|seconds| seconds * 1e9),
        expected_ns: latency.expected_s.map(|seconds| seconds * 1e9),
    }
}

fn trend(trend: &Trend) -> TrendOutput {
    TrendOutput {
        days: trend.days,
        utilisation: trend.today,
        per_day: trend.per_day,
        per_day_half_width: trend.per_day_half_width,
        exhausted_in_days: trend.reach.map(|reach| reach.days),
        earliest_days: trend.reach.map(|reach| reach.earliest),
        latest_days: trend.reach.and_then(|reach| reach.latest),
        within_30_days: trend.runs_out_within(30),
        within_90_days: trend.runs_out_within(90),
    }
}

fn host(host: &Host) -> HostOutput<'_> {
    HostOutput { instance: host.instance(), labels: &host.labels }
}

fn place<'a>(of: &'a Host, mount: &'a str, database: &'a str) -> PlaceOutput<'a> {
    PlaceOutput { host: host(of), mount, database }
}

fn ns(unix_s: f64) -> u64 {
    (unix_s.max(0.0) * 1e9) as u64
}
