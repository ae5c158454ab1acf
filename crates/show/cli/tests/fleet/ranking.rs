//! The order of the answer against the truth, with shards, prefixes and credentials.

use crate::servers::{Server, fill, has_prometheus, request};
use crate::synthetic::{SyntheticHost, SyntheticVolume, now_unix_s, openmetrics, prometheus_text, times};
use programs::Headroom;
use serde_json::Value;
use verdict::VerdictKind;

const NO_SCRAPE: &str = "global:\n  scrape_interval: 15s\n";

/// 24 hosts with three volumes: headroom from 0.5 on, all different; the first need action.
fn hosts() -> Vec<SyntheticHost> {
    let volume = |host: usize, number: usize| {
        // Mixed, so that no order of names is that of headroom.
        let place = (host * 3 + number) * 31 % 72;
        let headroom = 0.5 + 0.1 * place as f64;
        let mut volume = SyntheticVolume::healthy(&format!("/data{number}"), headroom);
        if headroom < 1.0 {
            volume.verdict = VerdictKind::DemandExceedsCapability;
        }
        volume
    };
    let host = |at: usize| {
        let volumes = (0..3).map(|number| volume(at, number)).collect();
        SyntheticHost::new(
            &format!("db{at}:9187"),
            if at.is_multiple_of(2) { "east" } else { "west" },
            volumes,
        )
    };
    (0..24).map(host).collect()
}

/// Hosts that must be listed apart: one that was judged long ago, one that was never measured, and one whose database is
/// silent.
fn apart() -> [SyntheticHost; 3] {
    let stale = SyntheticVolume { judged_ago_s: 1200, ..SyntheticVolume::healthy("/data", 50.0) };
    let unmeasured = SyntheticVolume {
        verdict: VerdictKind::CannotSay,
        headroom: None,
        utilisation: None,
        measured: false,
        ..SyntheticVolume::healthy("/data", 1.0)
    };
    let host = |name: &str, volume| SyntheticHost::new(name, "east", vec![volume]);
    let silent = SyntheticHost { source_up: false, ..SyntheticHost::new("silent:9187", "east", Vec::new()) };
    [host("gone:9187", stale), host("new:9187", unmeasured), silent]
}

fn everything() -> Vec<SyntheticHost> {
    [hosts(), apart().to_vec()].concat()
}

/// Hosts of one array have a label for it.
fn of_an_array(samples: &str) -> String {
    samples.replace("cluster=\"east\"", "cluster=\"east\",storage=\"array1\"")
}

/// Three servers with a third of the hosts each, and one that reads from them.
pub fn three_shards(now_unix_s: u64) -> (Vec<Server>, Server) {
    let all = everything();
    let shards: Vec<Server> = (0..3)
        .map(|shard| {
            let dir = tempfile::tempdir().unwrap();
            let own: Vec<_> = all.iter().skip(shard).step_by(3).cloned().collect();
            fill(dir.path(), &of_an_array(&openmetrics(&own, &times(now_unix_s))));
            Server::prometheus(dir, NO_SCRAPE).unwrap()
        })
        .collect();
    let reads =
        shards.iter().map(|one| format!("  - url: {}/api/v1/read\n    read_recent: true\n", one.url()));
    let config = format!("{NO_SCRAPE}remote_read:\n{}", reads.collect::<String>());
    let joined = Server::prometheus(tempfile::tempdir().unwrap(), &config).unwrap();
    (shards, joined)
}

/// All hosts in a VictoriaMetrics whose API is below a prefix.
pub fn victoria_with_all(prefix: &str, now_unix_s: u64) -> Option<Server> {
    let victoria = Server::victoria_metrics(prefix)?;
    for chunk in everything().chunks(4) {
        let import = format!("POST {prefix}/api/v1/import/prometheus");
        let samples = of_an_array(&prometheus_text(chunk, &times(now_unix_s)));
        request(victoria.port, &import, &samples).unwrap();
    }
    // Imported samples are visible after a flush.
    request(victoria.port, &format!("GET {prefix}/internal/force_flush"), "").unwrap();
    Some(victoria)
}

/// (instance, mount) by headroom.
pub fn truth(hosts: &[SyntheticHost]) -> Vec<(String, String)> {
    let mut all: Vec<(f64, String, String)> = Vec::new();
    for host in hosts {
        all.extend(
            host.volumes
                .iter()
                .map(|volume| (volume.headroom.unwrap(), host.instance.clone(), volume.mount.clone())),
        );
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.into_iter().map(|(_, instance, mount)| (instance, mount)).collect()
}

pub fn order(answer: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let volumes = answer["volumes"].as_array().unwrap();
    volumes.iter().map(|volume| (text(&volume["instance"]), text(&volume["mount"]))).collect()
}

fn ask(headroom: &Headroom, url: &str, further: &[&str]) -> (i32, Value) {
    let output = headroom.run(&[&["fleet", "--prometheus", url, "--json"], further].concat());
    let answer = serde_json::from_slice(&output.stdout);
    let answer =
        answer.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code().unwrap(), answer)
}

#[test]
fn three_shards_give_one_ranking_and_a_stopped_one_makes_it_incomplete() {
    if !has_prometheus() {
        return;
    }
    let (mut shards, joined) = three_shards(now_unix_s());
    let headroom = Headroom::new();

    let (code, answer) = ask(&headroom, &joined.url(), &[]);
    assert_eq!(order(&answer), truth(&hosts()));
    assert_eq!((code, &answer["incomplete"], &answer["hosts"]), (1, &Value::Bool(false), &27.into()));
    assert_eq!(
        (&answer["stale"][0]["instance"], answer["stale"].as_array().unwrap().len()),
        (&"gone:9187".into(), 1)
    );
    assert_eq!(answer["never_measured"][0]["instance"], "new:9187");
    let first = &answer["volumes"][0];
    assert_eq!(
        (&first["verdict"], &first["database"]),
        (&"demand-exceeds-capability".into(), &"postgres:".into())
    );
    assert_eq!((&first["binding"], &first["incident_open"]), (&"read-operations".into(), &Value::Bool(true)));
    assert!(first["headroom"] == 0.5 && first["read"]["expected_ns"] == 1.0e6, "{first:#}");
    let queries = answer["queries"].as_u64().unwrap();

    let (code, few) = ask(&headroom, &joined.url(), &["--label", "instance=~db[1-3]:.*"]);
    assert_eq!(few["volumes"].as_array().unwrap().len(), 9);
    assert!(few["queries"] == queries && queries <= 10, "the number of queries is that of all hosts");
    let bad = few["volumes"][0]["headroom"].as_f64().unwrap() < 1.0;
    assert_eq!(code, i32::from(bad));

    let (_, west) =
        ask(&headroom, &joined.url(), &["--label", "cluster=west", "--label", "instance!=db1:9187"]);
    let west = order(&west);
    assert!(west.len() == 33 && west.iter().all(|(instance, _)| instance != "db1:9187"));

    shards.pop();
    let (code, partial) = ask(&headroom, &joined.url(), &[]);
    assert_eq!((&partial["incomplete"], code), (&Value::Bool(true), 1), "{partial:#}");
    assert!(!partial["warnings"][0].as_str().unwrap().is_empty());
    assert_eq!(partial["volumes"].as_array().unwrap().len(), 48);
    let text = headroom.run(&["fleet", "--prometheus", &joined.url()]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("answer incomplete"));
}

#[test]
fn victoriametrics_answers_the_same_behind_vmauth_with_a_prefix_and_a_credential() {
    let prefix = "/select/0/prometheus";
    let Some(victoria) = victoria_with_all(prefix, now_unix_s()) else { return };
    let users = format!(
        "users:\n  - username: reader\n    password: sesame\n    url_prefix: {0}\n  - bearer_token: open\n    url_prefix: {0}\n",
        victoria.url()
    );
    let vmauth = Server::vmauth(&users).unwrap();
    let headroom = Headroom::new();
    let url = format!("{}{prefix}", vmauth.url());
    for credential in ["basic reader:sesame", "bearer open"] {
        let mut command = headroom.command(&["fleet", "--prometheus", &url, "--json"]);
        let output = command.env("HEADROOM_PROMETHEUS_AUTH", credential).output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
        });
        assert_eq!(order(&answer), truth(&hosts()), "{credential}");
        assert_eq!(answer["stale"][0]["instance"], "gone:9187");
        assert_eq!(output.status.code(), Some(1));
    }
    let refused = headroom.run(&["fleet", "--prometheus", &url]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(3) && said.contains("HEADROOM_PROMETHEUS_AUTH"), "{said}");
}

#[test]
fn a_fleet_without_problems_is_fine_only_where_all_of_it_is_judged() {
    if !has_prometheus() {
        return;
    }
    let now = now_unix_s();
    let [gone, unmeasured, silent] = apart();
    let host = |name: &str, volume| SyntheticHost::new(name, "east", vec![volume]);
    let cannot_say = SyntheticVolume {
        verdict: VerdictKind::CannotSay,
        headroom: None,
        ..SyntheticVolume::healthy("/data", 3.0)
    };
    let all = [
        host("db1:9187", SyntheticVolume::healthy("/data", 3.0)),
        host("idle:9187", cannot_say),
        gone,
        unmeasured,
        silent,
    ];
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), &openmetrics(&all, &times(now)));
    let server = Server::prometheus(dir, NO_SCRAPE).unwrap();
    let headroom = Headroom::new();
    let (code, answer) = ask(&headroom, &server.url(), &["--label", "instance=db1:9187"]);
    assert_eq!((code, answer["volumes"].as_array().unwrap().len()), (0, 1));
    // Each of the others makes the answer one that says nothing about a part, and is named.
    for (other, word) in [
        ("gone", "1 volume not judged any more"),
        ("new", "1 volume never measured"),
        ("idle", "1 volume with the verdict cannot say"),
        ("silent", "1 source without an answer"),
    ] {
        let filter = format!("instance=~\"(db1|{other}):9187\"");
        let output = headroom.run(&["fleet", "--prometheus", &server.url(), "--label", &filter]);
        let text = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        let headline = format!("none of 1 judged volume of 2 hosts needs action; unknown: {word}");
        assert!(text.starts_with(&headline) && output.status.code() == Some(3), "{text}");
    }
    let incidents = |filter: &str| {
        let output = headroom.run(&["fleet", "incidents", "--prometheus", &server.url(), "--label", filter]);
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(incidents("instance=db1:9187"), (0, "no incident was open within 24 h\n".into()));
    for (other, title) in [("gone", "Not judged any more (1)"), ("silent", "Sources that give nothing (1)")] {
        let (code, text) = incidents(&format!("instance=~\"(db1|{other}):9187\""));
        assert!(code == 3 && text.contains("no incident is known") && text.contains(title), "{text}");
    }
    let (code, answer) = ask(&headroom, &server.url(), &["--label", "cluster=nowhere"]);
    assert_eq!((code, answer["volumes"].as_array().unwrap().len()), (3, 0));
    let shown = headroom.run(&["fleet", "show", "db1", "--prometheus", &server.url()]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("HEALTHY") && shown.contains("expected 1"), "{shown}");
    let none = headroom.run(&["fleet", "show", "db9", "--prometheus", &server.url()]);
    assert_eq!(none.status.code(), Some(3));
    let page = server.dir.path().join("fleet.html");
    headroom.run(&["fleet", "--prometheus", &server.url(), "--html", page.to_str().unwrap()]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("db1:9187 /data") && page.contains("Not judged any more"), "{page}");
    let lines =
        headroom.run(&["fleet", "--prometheus", &server.url(), "--every", "1s", "--count", "2", "--json"]);
    assert_eq!(String::from_utf8_lossy(&lines.stdout).lines().count(), 2);
}

#[test]
fn a_trend_says_when_with_its_uncertainty() {
    if !has_prometheus() {
        return;
    }
    let now = now_unix_s();
    let volumes = vec![SyntheticVolume::healthy("/data", 1.2), SyntheticVolume::healthy("/flat", 1.2)];
    let host = SyntheticHost::new("db1:9187", "east", volumes);
    let dir = tempfile::tempdir().unwrap();
    let mut samples = openmetrics(&[host], &times(now));
    // The oldest first: samples of a series are appended.
    let daily: String = (0..40_u64)
        .rev()
        .map(|day| {
            let at = now - day * 86_400;
            let labels = "instance=\"db1:9187\",job=\"headroom\",cluster=\"east\",source=\"postgres:\"";
            let name = "instance_mount:headroom_utilisation_ratio:p95_1d";
            // 0.7 today, 0.012 a day.
            let value = 0.7 - 0.012 * day as f64 + 0.01 * (day % 3) as f64;
            format!(
                "{name}{{{labels},mount=\"/data\"}} {value} {at}\n{name}{{{labels},mount=\"/flat\"}} 0.5 {at}\n"
            )
        })
        .collect();
    samples.insert_str(0, &daily);
    fill(dir.path(), &samples);
    let server = Server::prometheus(dir, NO_SCRAPE).unwrap();
    let headroom = Headroom::new();
    let (_, answer) = ask(&headroom, &server.url(), &[]);
    let of = |mount: &str| {
        let found = answer["volumes"].as_array().unwrap().iter().find(|volume| volume["mount"] == mount);
        found.unwrap()["trend"].clone()
    };
    let growing = of("/data");
    let days = growing["exhausted_in_days"].as_f64().unwrap();
    assert!((23.0..27.0).contains(&days) && growing["within_30_days"] == true, "{growing:#}");
    assert!(growing["earliest_days"].as_f64() <= Some(days) && growing["latest_days"].as_f64() >= Some(days));
    assert!(of("/flat")["exhausted_in_days"].is_null() && of("/flat")["within_90_days"] == false);
    let text = headroom.run(&["fleet", "--prometheus", &server.url()]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("At today's growth"));
}

#[test]
fn of_a_large_fleet_the_worst_volumes_have_details() {
    if !has_prometheus() {
        return;
    }
    let now = now_unix_s();
    // 21 hosts with ten volumes each; the first host's are the worst.
    let volume = |host: usize, number: usize| {
        SyntheticVolume::healthy(&format!("/data{number}"), 1.0 + (host * 10 + number) as f64)
    };
    let host = |at: usize| {
        let volumes = (0..10).map(|number| volume(at, number)).collect();
        SyntheticHost::new(&format!("db{at}:9187"), "east", volumes)
    };
    let hosts: Vec<SyntheticHost> = (0..21).map(host).collect();
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), &openmetrics(&hosts, &times(now)));
    let server = Server::prometheus(dir, NO_SCRAPE).unwrap();
    let headroom = Headroom::new();
    let detailed = |further: &[&str]| {
        let (_, answer) = ask(&headroom, &server.url(), further);
        assert_eq!((order(&answer), &answer["queries"]), (truth(&hosts), &9.into()));
        let volumes = answer["volumes"].as_array().unwrap().clone();
        let has = |volume: &&Value| {
            let is_known = volume["headroom_low"].is_number() && volume["read"]["expected_ns"].is_number();
            assert_eq!(volume["details"], is_known, "{volume:#}");
            is_known
        };
        volumes.iter().filter(has).count()
    };
    assert_eq!(detailed(&["--top", "10"]), 10);
    assert_eq!(detailed(&[]), 20, "two hosts");
    assert_eq!(detailed(&["--top", "300"]), 210);
}
