//! `scripts/bench fleet`: what an answer over 1,000 hosts costs, and what series take of memory and disk.

mod bytes;
mod memory;

use crate::ranking::{order, truth};
use crate::servers::{Server, fill};
use crate::synthetic::{SyntheticHost, SyntheticVolume, now_unix_s};
use programs::built;
use serde_json::Value;
use std::fmt::Write;
use std::process::Command;
use std::time::{Duration, Instant};
use verdict::VerdictKind;

const HOSTS: usize = 1000;
const VOLUMES: usize = 5;
const SHARDS: usize = 3;
const ANSWERS: usize = 9;
/// Volumes of a large fleet whose details are queried: the default of `--top`.
const TOP: usize = 20;
/// Bound on the median time of an answer.
const MEDIAN_MAX: Duration = Duration::from_secs(2);
/// Between two scrapes, seconds.
const SCRAPE_S: u64 = 15;
/// How far back an instant query searches for a sample.
const RECENT_S: u64 = 300;
/// How long after it was made the data is current.
const AHEAD_S: u64 = 900;
/// Of other families than those that `fleet` reads.
const SPARSE_S: u64 = 120;
const READ: [&str; 10] = [
    "headroom_verdict",
    "headroom_headroom",
    "headroom_utilisation",
    "headroom_demand",
    "headroom_incident",
    "headroom_binding",
    "headroom_latency",
    "headroom_expected_latency",
    "headroom_capability_measured",
    "headroom_source_up",
];
/// Families of which it reads an hour, the default of `--lookback`.
const OF_AN_HOUR: [&str; 2] = ["headroom_verdict_timestamp_seconds", "headroom_build_info"];
const HOUR_S: u64 = 3600;
/// Days with a percentile, and how many a day has by the recording rule.
const TREND_DAYS: u64 = 60;
const PERCENTILES_A_DAY: u64 = 2;
const DAY_S: u64 = 86_400;

fn hosts() -> Vec<SyntheticHost> {
    let volume = |host: usize, number: usize| {
        let place = (host * VOLUMES + number) * 2_749 % (HOSTS * VOLUMES);
        let headroom = 0.9 + 0.01 * place as f64;
        let mut volume = SyntheticVolume::healthy(&format!("/data{number}"), headroom);
        if headroom < 1.0 {
            volume.verdict = VerdictKind::DemandExceedsCapability;
        }
        volume
    };
    let host = |at: usize| {
        let volumes = (0..VOLUMES).map(|number| volume(at, number)).collect();
        SyntheticHost::new(&format!("db{at}:9187"), ["east", "west"][at % 2], volumes)
    };
    (0..HOSTS).map(host).collect()
}

/// A sample every 15 s of what queries look back at, and the percentiles of 60 days. The counters that the agent would
/// increase are constant: how long a query takes does not depend on it.
fn samples(host: &SyntheticHost, now: u64) -> String {
    let mut text = String::new();
    let series = host.series(now);
    for (series, value) in &series {
        let of_an_hour = OF_AN_HOUR.iter().any(|name| series.starts_with(name));
        let from = now - if of_an_hour { HOUR_S } else { RECENT_S };
        let is_read = of_an_hour || READ.iter().any(|name| series.starts_with(name));
        let step = if is_read { SCRAPE_S } else { SPARSE_S };
        let is_time = series.starts_with(OF_AN_HOUR[0]);
        for at in (from..now + AHEAD_S).step_by(step as usize) {
            // Writing into a String cannot fail.
            let _ = match is_time {
                true => writeln!(text, "{series} {at} {at}"),
                false => writeln!(text, "{series} {value} {at}"),
            };
        }
    }
    for (series, value) in &series {
        let Some(labels) = series.strip_prefix("headroom_utilisation_ratio") else { continue };
        for at in (now - TREND_DAYS * DAY_S..now).step_by((DAY_S / PERCENTILES_A_DAY) as usize) {
            let name = "instance_mount:headroom_utilisation_ratio:p95_1d";
            let _ = writeln!(text, "{name}{labels} {value} {at}");
        }
    }
    text
}

/// Three servers with a third of the hosts each, and one that reads from them.
fn joined(hosts: &[SyntheticHost]) -> (Vec<Server>, Server, usize) {
    let now = now_unix_s();
    let mut series = 0;
    let shards: Vec<Server> = (0..SHARDS)
        .map(|shard| {
            let dir = tempfile::tempdir().unwrap();
            let own = hosts.iter().skip(shard).step_by(SHARDS);
            let text: String = own.map(|host| samples(host, now)).collect();
            fill(dir.path(), &(text + "# EOF\n"));
            let server = Server::prometheus(dir, "global: {}\n").unwrap();
            let counted = server.query("count({__name__=~\"headroom_.+\"})", now);
            series += counted[0]["value"][1].as_str().unwrap().parse::<usize>().unwrap();
            server
        })
        .collect();
    let reads =
        shards.iter().map(|one| format!("  - url: {}/api/v1/read\n    read_recent: true\n", one.url()));
    let config = format!("global: {{}}\nremote_read:\n{}", reads.collect::<String>());
    let joined = Server::prometheus(tempfile::tempdir().unwrap(), &config).unwrap();
    (shards, joined, series)
}

#[test]
#[ignore = "a benchmark: scripts/bench fleet"]
fn a_thousand_hosts() {
    let all = hosts();
    let (shards, joined, series) = joined(&all);
    questions(&shards, &joined);
    let headroom =
        ["debug", "release"].map(|profile| built().parent().unwrap().join(profile).join("headroom"));
    let program = headroom.iter().rev().find(|path| path.exists()).unwrap();
    let profile = program.parent().unwrap().file_name().unwrap().display();
    let servers_s = || shards.iter().chain([&joined]).map(Server::cpu_s).sum::<f64>();
    let ask = |format: &[&str], filter: &str| {
        let mut command = Command::new(program);
        command.args(["fleet", "--prometheus", &joined.url(), "--timeout", "60s", "--label", filter]);
        command.args(format).output().unwrap()
    };
    let everything = "cluster=~\".+\"";
    let mut slow = Vec::new();
    for (what, format) in [("a list", &[][..]), ("JSON", &["--json"][..])] {
        let before_s = servers_s();
        let mut took: Vec<Duration> = (0..ANSWERS)
            .map(|_| {
                let began = Instant::now();
                let output = ask(format, everything);
                assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
                began.elapsed()
            })
            .collect();
        took.sort();
        let (median, longest) = (took[ANSWERS / 2], took[ANSWERS - 1]);
        println!(
            "{what} of {HOSTS} hosts x {VOLUMES} volumes in {SHARDS} shards, {series} series in all ({profile} build): \
             median {:.2} s, longest {:.2} s of {ANSWERS}; {:.2} s of CPU in the four servers for each",
            median.as_secs_f64(),
            longest.as_secs_f64(),
            (servers_s() - before_s) / ANSWERS as f64,
        );
        if median >= MEDIAN_MAX {
            slow.push(what);
        }
    }
    let json = |filter: &str| -> Value { serde_json::from_slice(&ask(&["--json"], filter).stdout).unwrap() };
    let queries = check(&json(everything), &all);
    assert_eq!(check(&json("instance=~\"db99[0-9]:9187\""), &all[990..]), queries);
    println!("{queries} queries, for all hosts as for ten of them");
    assert!(slow.is_empty(), "{slow:?} took {MEDIAN_MAX:?} or longer in the median");
}

/// Prints the cost of each question alone; `fleet` accepts answers of 64 MiB.
fn questions(shards: &[Server], joined: &Server) {
    let scope = fleet::Scope { filters: Vec::new(), lookback_s: HOUR_S, trend_from_samples: false };
    for part in fleet::Part::ALL {
        let (before_s, joined_before_s) = (shards.iter().map(Server::cpu_s).sum::<f64>(), joined.cpu_s());
        let began = Instant::now();
        let expression = part.expression(&scope);
        let answer = joined.answer_over(&expression.text, now_unix_s(), expression.range).unwrap();
        let shards_s = shards.iter().map(Server::cpu_s).sum::<f64>() - before_s;
        println!(
            "{part:?}: {:.2} s, {:.1} MB; {shards_s:.2} s of CPU in the shards, {:.2} s in the server that reads them",
            began.elapsed().as_secs_f64(),
            answer.len() as f64 / 1e6,
            joined.cpu_s() - joined_before_s,
        );
    }
}

/// Each volume of an answer against the one that must have its rank; returns the number of queries.
fn check(answer: &Value, hosts: &[SyntheticHost]) -> u64 {
    let volumes = answer["volumes"].as_array().unwrap();
    assert_eq!(order(answer), truth(hosts));
    assert_eq!(answer["incomplete"], false);
    let number = |value: &Value| value.as_f64().is_some();
    for volume in volumes {
        let figures = ["headroom", "headroom_low", "headroom_high", "utilisation", "outstanding"];
        let is_listed = number(&volume["trend"]["days"]) && number(&volume["headroom"]);
        let has_details = figures.iter().all(|key| number(&volume[key]))
            && ["read", "commit"].iter().all(|kind| number(&volume[kind]["expected_ns"]))
            && volume["confidence"] == "high";
        assert!(is_listed && has_details == volume["details"].as_bool().unwrap(), "{volume:#}");
    }
    assert!(volumes[..TOP.min(volumes.len())].iter().all(|volume| volume["details"] == true));
    answer["queries"].as_u64().unwrap()
}

#[test]
#[ignore = "a benchmark: scripts/bench fleet"]
fn series_of_a_host() {
    for volumes in [1, 2, 5] {
        let mut host = hosts().swap_remove(0);
        host.volumes.truncate(volumes);
        let series = host.series(now_unix_s());
        let points = series.iter().filter(|(name, _)| name.starts_with("headroom_curve_")).count();
        println!("a host with {volumes} volumes: {} series, {points} of them points of curves", series.len());
    }
}
