//! `headroom fleet incidents`: for how long incidents were open, of hosts with and without samples of the whole period.

use crate::servers::{Server, fill, has_prometheus, request};
use crate::synthetic::{
    DATABASE, SyntheticHost, SyntheticVolume, now_unix_s, openmetrics, prometheus_text, times,
};
use programs::Headroom;
use serde_json::Value;
use std::fmt::Write;

const HOUR_S: u64 = 3600;
const SCRAPE_S: u64 = 15;
/// The next samples: as long as the test takes.
const AHEAD_S: u64 = 360;
/// Maximum error of a host's figure: a part of the period at each end of the known time.
const PART_S: f64 = 120.0;

/// When a host was seen, and when an incident was open, in seconds before now.
struct History {
    instance: &'static str,
    seen_s: u64,
    opened_s: u64,
    closed_s: Option<u64>,
}

const HISTORIES: [History; 4] = [
    History { instance: "new:9187", seen_s: HOUR_S, opened_s: HOUR_S, closed_s: Some(HOUR_S / 2) },
    History { instance: "old:9187", seen_s: 24 * HOUR_S, opened_s: 10 * HOUR_S, closed_s: Some(7 * HOUR_S) },
    History { instance: "slow:9187", seen_s: 2 * HOUR_S, opened_s: 1200, closed_s: None },
    History { instance: "just:9187", seen_s: 2 * HOUR_S, opened_s: 40, closed_s: None },
];

fn hosts() -> Vec<SyntheticHost> {
    let volumes = || vec![SyntheticVolume::healthy("/data", 3.0)];
    HISTORIES.iter().map(|one| SyntheticHost::new(one.instance, "east", volumes())).collect()
}

/// The hosts' samples with these histories of incidents instead of their own. A second has `per_second` units of time.
fn samples(current: &str, now_unix_s: u64, per_second: u64) -> String {
    let others = current.lines().filter(|line| !line.starts_with("headroom_incident_open"));
    let mut text: String =
        others.filter(|line| !line.starts_with('#')).flat_map(|line| [line, "\n"]).collect();
    for History { instance, seen_s, opened_s, closed_s } in HISTORIES {
        let labels = format!("instance=\"{instance}\",job=\"headroom\",cluster=\"east\"");
        let end = closed_s.map_or(u64::MAX, |closed_s| now_unix_s - closed_s);
        for at in (now_unix_s - seen_s..now_unix_s + AHEAD_S).step_by(SCRAPE_S as usize) {
            let is_open = u8::from(at >= now_unix_s - opened_s && at < end);
            // Writing into a String cannot fail.
            let _ = writeln!(
                text,
                "headroom_incident_open{{{labels},mount=\"/data\",source=\"{DATABASE}\"}} {is_open} {}",
                at * per_second
            );
        }
    }
    text
}

/// Order, times and exit codes of the answer.
fn check(url: &str) {
    let headroom = Headroom::new();
    let ask = |filter: &str| -> (Option<i32>, Value) {
        let arguments = ["fleet", "incidents", "--prometheus", url, "--label", filter, "--json"];
        let output = headroom.run(&arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), serde_json::from_slice(&output.stdout).expect(&said))
    };
    let (code, answer) = ask("cluster=east");
    assert_eq!((code, &answer["queries"]), (Some(1), &8.into()), "{answer:#}");
    let rows = answer["incidents"].as_array().unwrap();
    let order: Vec<_> = rows.iter().map(|row| (row["instance"].as_str().unwrap(), &row["open"])).collect();
    let [open, closed] = [true, false].map(Value::Bool);
    let expected = [("slow:9187", &open), ("just:9187", &open), ("old:9187", &closed), ("new:9187", &closed)];
    assert_eq!(order, expected, "{answer:#}");
    for (row, expected_s) in rows.iter().zip([1200.0, 40.0, 10_800.0, 1800.0]) {
        let open_s = row["open_ns"].as_f64().unwrap() / 1e9;
        assert!(open_s > 0.0 && (open_s - expected_s).abs() <= PART_S, "{open_s} s of {expected_s}: {row:#}");
        assert!((row["open_share"].as_f64().unwrap() - open_s / 86_400.0).abs() < 1e-9);
    }

    let (code, answer) = ask("instance=~\"new:.*|old:.*\"");
    assert_eq!((code, answer["incidents"].as_array().unwrap().len()), (Some(0), 2), "{answer:#}");
    let text = headroom.run(&["fleet", "incidents", "--prometheus", url, "--label", "instance=new:9187"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("closed") && text.contains(" min ") && !text.contains(" h "), "{text}");
}

#[test]
fn a_host_that_was_seen_for_an_hour_of_a_day_was_open_for_a_part_of_that_hour() {
    if !has_prometheus() {
        return;
    }
    let now = now_unix_s();
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), &(samples(&openmetrics(&hosts(), &times(now)), now, 1) + "# EOF\n"));
    check(&Server::prometheus(dir, "global: {}\n").unwrap().url());
}

#[test]
fn victoriametrics_says_the_same_of_incidents() {
    let Some(victoria) = Server::victoria_metrics("") else { return };
    let now = now_unix_s();
    let text = samples(&prometheus_text(&hosts(), &times(now)), now, 1000);
    request(victoria.port, "POST /api/v1/import/prometheus", &text).unwrap();
    request(victoria.port, "GET /internal/force_flush", "").unwrap();
    check(&victoria.url());
}
