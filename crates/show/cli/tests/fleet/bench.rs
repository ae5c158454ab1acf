//! `scripts/bench fleet`: what an answer over 1,000 hosts costs, and what a sample takes on disk.

use crate::programs::built;
use crate::servers::{Server, fill, request};
use crate::synthetic::{SyntheticHost, SyntheticVolume, now_unix_s, openmetrics, prometheus_text};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use verdict::VerdictKind;

const HOSTS: usize = 1000;
const VOLUMES: usize = 5;
const SHARDS: usize = 3;
const ANSWERS: usize = 9;
/// What the answer may take at the median.
const LIMIT: Duration = Duration::from_secs(2);

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
    let host = |at: usize| SyntheticHost {
        instance: format!("db{at}:9188"),
        cluster: ["east", "west"][at % 2],
        volumes: (0..VOLUMES).map(|number| volume(at, number)).collect(),
    };
    (0..HOSTS).map(host).collect()
}

#[test]
#[ignore = "a benchmark: scripts/bench fleet"]
fn a_thousand_hosts() {
    let (all, now) = (hosts(), now_unix_s());
    let times: Vec<u64> = (now - 240..now + 900).step_by(120).collect();
    let shards: Vec<Server> = (0..SHARDS)
        .map(|shard| {
            let dir = tempfile::tempdir().unwrap();
            let own: Vec<_> = all.iter().skip(shard).step_by(SHARDS).cloned().collect();
            fill(dir.path(), &openmetrics(&own, &times));
            Server::prometheus(dir, "global: {}\n").unwrap()
        })
        .collect();
    let reads =
        shards.iter().map(|one| format!("  - url: {}/api/v1/read\n    read_recent: true\n", one.url()));
    let config = format!("global: {{}}\nremote_read:\n{}", reads.collect::<String>());
    let joined = Server::prometheus(tempfile::tempdir().unwrap(), &config).unwrap();
    let headroom =
        ["debug", "release"].map(|profile| built().parent().unwrap().join(profile).join("headroom"));
    let program = headroom.iter().rev().find(|path| path.exists()).unwrap();
    let mut took = Vec::new();
    for _ in 0..ANSWERS {
        let began = Instant::now();
        let output = Command::new(program)
            .args(["fleet", "--prometheus", &joined.url(), "--json", "--timeout", "60s"])
            .output()
            .unwrap();
        took.push(began.elapsed());
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let volumes = answer["volumes"].as_array().unwrap();
        assert_eq!(volumes.len(), HOSTS * VOLUMES);
        let order =
            volumes.windows(2).all(|pair| pair[0]["headroom"].as_f64() <= pair[1]["headroom"].as_f64());
        assert!(order && answer["queries"] == 8 && answer["incomplete"] == false);
    }
    took.sort();
    let (median, longest) = (took[ANSWERS / 2], took[ANSWERS - 1]);
    println!(
        "{HOSTS} hosts x {VOLUMES} volumes in {SHARDS} shards ({}): median {:.2} s, longest {:.2} s of {ANSWERS}",
        program.display(),
        median.as_secs_f64(),
        longest.as_secs_f64()
    );
    let of_host = prometheus_text(&all[..1], &[now]).lines().count();
    println!("series of a host with {VOLUMES} volumes: {of_host}");
    assert!(median < LIMIT, "{median:?}");
}

/// A day of a host with values that change, every 15 s.
#[test]
#[ignore = "a benchmark: scripts/bench fleet"]
fn bytes_of_a_sample() {
    let now = now_unix_s();
    let host = SyntheticHost {
        instance: "db1:9188".into(),
        cluster: "east",
        volumes: vec![SyntheticVolume::healthy("/data", 3.0), SyntheticVolume::healthy("/wal", 5.0)],
    };
    let end = now - now % 86_400;
    let times: Vec<u64> = (end - 86_400..end).step_by(15).collect();
    let text = noisy(&openmetrics(std::slice::from_ref(&host), &times));
    let samples = text.lines().count() - 1;
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), &text);
    let bytes = size(&dir.path().join("data"));
    println!("Prometheus: {:.2} bytes a sample of {samples}", bytes as f64 / samples as f64);
    let Some(victoria) = Server::victoria_metrics("") else { return };
    for chunk in noisy(&prometheus_text(&[host], &times)).lines().collect::<Vec<_>>().chunks(100_000) {
        request(victoria.port, "POST /api/v1/import/prometheus", &chunk.join("\n")).unwrap();
    }
    request(victoria.port, "GET /internal/force_flush", "").unwrap();
    request(victoria.port, "GET /internal/force_merge", "").unwrap();
    std::thread::sleep(Duration::from_secs(5));
    let bytes = size(&victoria.dir.path().join("data/data"));
    println!("VictoriaMetrics: {:.2} bytes a sample", bytes as f64 / samples as f64);
}

/// Figures that are measured are not the same twice: 3 digits of noise on all but verdicts, times and capabilities.
fn noisy(text: &str) -> String {
    let mut state = 1_u64;
    let lines = text.lines().map(|line| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let changes = [
            "headroom_headroom",
            "headroom_utilisation",
            "headroom_latency",
            "headroom_expected",
            "headroom_demand",
        ];
        let mut words: Vec<&str> = line.rsplitn(3, ' ').collect();
        if words.len() < 3 || !changes.iter().any(|name| line.starts_with(name)) {
            return line.to_owned();
        }
        let value: f64 = words[1].parse().unwrap();
        let noise = 1.0 + ((state >> 40) as f64 / f64::from(1 << 24) - 0.5) * 0.2;
        let changed = (value * noise).to_string();
        words[1] = &changed;
        words.reverse();
        words.join(" ")
    });
    lines.map(|line| line + "\n").collect()
}

fn size(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries
        .map(|entry| match entry.metadata().unwrap() {
            found if found.is_dir() => size(&entry.path()),
            found => found.len(),
        })
        .sum()
}
