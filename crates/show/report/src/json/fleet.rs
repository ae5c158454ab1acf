//! A fleet, the worst volume first.

use crate::number;
use fleet::{Fleet, Host, Latency, Trend, Volume};
use serde_json::{Value, json};

/// All of it.
pub fn fleet(fleet: &Fleet) -> Value {
    let stale = fleet.stale.iter().map(|one| {
        let judged = ns(one.judged_unix_s);
        let age_ns = ((fleet.at_unix_s - one.judged_unix_s).max(0.0) * 1e9) as u64;
        of_host(
            &one.host,
            &one.mount,
            &one.database,
            json!({ "judged_unix_ns": judged, "judged_time": number::rfc3339(judged), "age_ns": age_ns }),
        )
    });
    let never = fleet
        .never_measured
        .iter()
        .map(|one| of_host(&one.host, &one.mount, &one.database, json!({ "verdict": one.verdict })));
    let silent = fleet.silent_sources.iter().map(
        |one| json!({ "instance": one.host.instance(), "labels": one.host.labels, "source": one.source }),
    );
    let without = fleet.without_database.iter();
    let without = without.map(|host| json!({ "instance": host.instance(), "labels": host.labels }));
    let at = ns(fleet.at_unix_s);
    json!({
        "at_unix_ns": at,
        "at_time": number::rfc3339(at),
        "queries": fleet.queries,
        "incomplete": fleet.incomplete,
        "warnings": fleet.warnings,
        "hosts": fleet.hosts,
        "volumes": fleet.volumes.iter().map(volume).collect::<Vec<_>>(),
        "stale": stale.collect::<Vec<_>>(),
        "never_measured": never.collect::<Vec<_>>(),
        "silent_sources": silent.collect::<Vec<_>>(),
        "without_database": without.collect::<Vec<_>>(),
    })
}

/// Where incidents were open.
pub fn fleet_incidents(rows: &[(Volume, f64)], within_s: u64, fleet: &Fleet) -> Value {
    let incidents = rows.iter().map(|(one, share)| {
        of_host(
            &one.host,
            &one.mount,
            &one.database,
            json!({
                "open": one.incident_open,
                "open_share": share,
                "open_ns": (share * within_s as f64 * 1e9) as u64,
                "verdict": one.verdict,
            }),
        )
    });
    json!({
        "at_unix_ns": ns(fleet.at_unix_s),
        "within_ns": within_s.saturating_mul(1_000_000_000),
        "queries": fleet.queries,
        "incomplete": fleet.incomplete,
        "warnings": fleet.warnings,
        "incidents": incidents.collect::<Vec<_>>(),
    })
}

fn volume(one: &Volume) -> Value {
    let headroom = one.headroom;
    let latency = |latency: Latency| {
        json!({
            "latency_ns": latency.latency_s.map(|seconds| seconds * 1e9),
            "expected_ns": latency.expected_s.map(|seconds| seconds * 1e9),
        })
    };
    of_host(
        &one.host,
        &one.mount,
        &one.database,
        json!({
            "verdict": one.verdict,
            "confidence": one.confidence.map(|level| ["low", "medium", "high"][usize::from(level.clamp(1, 3)) - 1]),
            "headroom": headroom.map(|headroom| headroom.plan),
            "headroom_low": headroom.and_then(|headroom| headroom.low),
            "headroom_high": headroom.and_then(|headroom| headroom.high),
            "headroom_origin": headroom.map(|headroom| headroom.origin),
            "utilisation": one.utilisation,
            "binding": one.binding,
            "outstanding": one.outstanding,
            "read": latency(one.read),
            "commit": latency(one.commit),
            "since_unix_ns": one.since_unix_s.map(ns),
            "judged_unix_ns": ns(one.judged_unix_s),
            "measured_unix_ns": one.measured_unix_s.map(ns),
            "capability_from": one.known_from,
            "contradicted": one.contradicted,
            "incident_open": one.incident_open,
            "trend": one.trend.as_ref().map(trend),
        }),
    )
}

fn trend(trend: &Trend) -> Value {
    json!({
        "days": trend.days,
        "utilisation": trend.today,
        "per_day": trend.per_day,
        "per_day_half_width": trend.per_day_half_width,
        "exhausted_in_days": trend.reach.map(|reach| reach.days),
        "earliest_days": trend.reach.map(|reach| reach.earliest),
        "latest_days": trend.reach.and_then(|reach| reach.latest),
        "within_30_days": trend.runs_out_within(30),
        "within_90_days": trend.runs_out_within(90),
    })
}

/// The keys of a database on a volume of a host, and further ones.
fn of_host(host: &Host, mount: &str, database: &str, mut further: Value) -> Value {
    further["instance"] = json!(host.instance());
    further["labels"] = json!(host.labels);
    further["mount"] = json!(mount);
    further["database"] = json!(database);
    further
}

fn ns(unix_s: f64) -> u64 {
    (unix_s.max(0.0) * 1e9) as u64
}
