//! A fleet as text, JSON and a page.

use fleet::{
    Fleet, Headroom, HeadroomOrigin, Host, Latency, NeverMeasured, SilentSource, Stale, Trend, Volume,
    VolumeIncidents,
};
use report::text::Style;
use report::{html, text};
use verdict::VerdictKind;

const AT: f64 = 1_795_251_600.0;
const STYLE: Style = Style { color: false, width: 132 };

fn host(instance: &str) -> Host {
    let labels = [("instance", instance), ("job", "headroom"), ("cluster", "east")];
    Host { labels: labels.map(|(name, value)| (name.into(), value.into())).into() }
}

fn volume(instance: &str, verdict: VerdictKind, headroom: f64) -> Volume {
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
        judged_unix_s: AT - 4.0,
        since_unix_s: Some(AT - 1260.0),
        incident_open: verdict.is_bad_news(),
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

#[test]
fn the_ranking_as_text() {
    insta::assert_snapshot!(text::fleet(&sample(), 3, &STYLE));
}

#[test]
fn the_headline_says_of_how_many_nothing_can_be_said() {
    let never = sample().never_measured.remove(0);
    let fleet = Fleet {
        volumes: vec![volume("db1:9187", VerdictKind::Healthy, 3.0)],
        never_measured: vec![never.clone(); 999],
        hosts: 1000,
        ..Fleet::default()
    };
    let headline = |fleet: &Fleet| text::fleet(fleet, 3, &STYLE).lines().next().unwrap().to_owned();
    assert_eq!(
        headline(&fleet),
        "none of 1 judged volume of 1,000 hosts needs action; unknown: 999 volumes never measured"
    );
    let whole = Fleet { never_measured: Vec::new(), hosts: 1, ..fleet.clone() };
    assert_eq!(headline(&whole), "none of 1 volume of 1 host needs action");
    let bad = NeverMeasured { verdict: Some(VerdictKind::NotStorage), ..never };
    let bad = Fleet { never_measured: vec![bad], hosts: 2, ..fleet };
    assert_eq!(headline(&bad), "1 of 2 volumes of 2 hosts needs action");
}

#[test]
fn a_narrow_terminal_names_what_it_leaves_out() {
    let text = text::fleet(&sample(), 3, &Style { color: false, width: 80 });
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("no room here for: ") && text.contains("db2:9187 /data"), "{text}");
}

#[test]
fn a_host_with_all_that_is_known() {
    let mut fleet = sample();
    fleet.volumes.drain(..2);
    insta::assert_snapshot!(text::fleet_host(&fleet, &STYLE));
}

#[test]
fn incidents_as_text() {
    let fleet = Fleet { incomplete: false, ..sample() };
    let open = [(Some(true), 21_600.0), (None, 8640.0), (Some(false), 864.0)];
    let rows = fleet.volumes.iter().cloned().zip(open);
    let rows: Vec<VolumeIncidents> =
        rows.map(|(volume, (is_open, open_s))| VolumeIncidents { volume, is_open, open_s }).collect();
    insta::assert_snapshot!(text::fleet_incidents(&rows, 86_400, &fleet, &STYLE));
    let none = text::fleet_incidents(&[], 3600, &fleet, &STYLE);
    assert!(none.contains("no incident is known to have been open within 60 min"), "{none}");
    let whole = Fleet { stale: Vec::new(), silent_sources: Vec::new(), ..fleet };
    assert_eq!(text::fleet_incidents(&[], 3600, &whole, &STYLE), "no incident was open within 60 min\n");
}

#[test]
fn a_page_escapes_what_others_named() {
    let mut fleet = sample();
    fleet.volumes[0].mount = "/<script>".into();
    let page = html::fleet(&fleet, "headroom fleet", "0.1.0");
    assert!(page.contains("/&lt;script&gt;") && !page.contains("/<script>"), "{page}");
    for words in ["Answer incomplete: remote read", "Never measured", "db8:9187", "exhausted within 90 days"]
    {
        assert!(page.contains(words), "no {words}");
    }
}
