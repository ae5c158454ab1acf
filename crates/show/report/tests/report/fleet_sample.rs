//! A fleet with all that the report can show.

use fleet::{
    Fleet, Headroom, HeadroomOrigin, Host, Latency, NeverMeasured, SilentSource, Stale, Trend, Volume,
};
use verdict::VerdictKind;

const AT: f64 = 1_795_251_600.0;

fn host(instance: &str) -> Host {
    let labels = [("instance", instance), ("job", "headroom"), ("cluster", "east")];
    Host { labels: labels.map(|(name, value)| (name.into(), value.into())).into() }
}

pub fn volume(instance: &str, verdict: VerdictKind, headroom: f64) -> Volume {
    Volume {
        host: host(instance),
        mount: "/data".into(),
        database: "postgres:".into(),
        verdict: Some(verdict),
        confidence: Some(3),
        headroom: Some(Headroom {
            plan: headroom,
            low: Some(0.9 * headroom),
            high: Some(1.2 * headroom),
            origin: HeadroomOrigin::Agent,
        }),
        utilisation: Some(1.0 / headroom),
        binding: Some("read-operations".into()),
        outstanding: Some(3.2),
        read: Latency { latency_s: Some(0.0021), expected_s: Some(0.0014) },
        commit: Latency { latency_s: Some(0.004), expected_s: Some(0.0039) },
        measured_unix_s: Some(AT - 9.0 * 86_400.0),
        known_from: Some("measured".into()),
        contradicted: None,
        has_details: true,
        judged_unix_s: AT - 4.0,
        since_unix_s: Some(AT - 1260.0),
        incident_open: verdict.needs_action(),
        trend: None,
    }
}

pub fn sample() -> Fleet {
    let daily: Vec<(f64, f64)> = (0..30)
        .map(|day| (f64::from(day), 0.5 + 0.011 * f64::from(day) + 0.02 * f64::from(day % 3)))
        .collect();
    let mut growing = volume("db3:9187", VerdictKind::Healthy, 1.3);
    growing.trend = Trend::fit(&daily, 29.0);
    let by_utilisation = Headroom { plan: 4.0, low: None, high: None, origin: HeadroomOrigin::Utilisation };
    let unsure =
        Volume { headroom: Some(by_utilisation), ..volume("db4:9187", VerdictKind::NobodyWaits, 4.0) };
    Fleet {
        at_unix_s: AT,
        volumes: vec![
            volume("db2:9187", VerdictKind::Throttled, 6.1),
            volume("db1:9187", VerdictKind::DemandExceedsCapability, 0.83),
            growing,
            unsure,
        ],
        stale: vec![Stale {
            host: host("db7:9187"),
            mount: "/data".into(),
            database: "postgres:".into(),
            judged_unix_s: AT - 1900.0,
        }],
        never_measured: vec![NeverMeasured {
            host: host("db8:9187"),
            mount: "/wal".into(),
            database: "postgres:".into(),
            verdict: Some(VerdictKind::CannotSay),
            incident_open: false,
        }],
        silent_sources: vec![SilentSource { host: host("db9:9187"), source: "mysql:".into() }],
        without_database: vec![host("web1:9187")],
        hosts: 8,
        incomplete: true,
        warnings: vec!["remote read: no answer of shard 3".into()],
        queries: 7,
        has_trends: true,
    }
}
