//! Bytes of a sample on disk.

use super::{DAY_S, SCRAPE_S};
use crate::servers::{Server, fill, request};
use crate::synthetic::{SyntheticHost, SyntheticVolume, now_unix_s, openmetrics, prometheus_text, uptime_s};
use std::path::Path;
use std::time::Duration;

/// A day of a host with values that change, every 15 s.
#[test]
#[ignore = "a benchmark: scripts/bench fleet"]
fn bytes_of_a_sample() {
    let now = now_unix_s();
    let volumes = vec![SyntheticVolume::healthy("/data", 3.0), SyntheticVolume::healthy("/wal", 5.0)];
    let host = SyntheticHost::new("db1:9187", "east", volumes);
    let end = now - now % DAY_S;
    let times: Vec<u64> = (end - DAY_S..end).step_by(SCRAPE_S as usize).collect();
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
    let data = victoria.dir.path().join("data");
    let (bytes, index) = (size(&data.join("data")), size(&data.join("indexdb")));
    println!(
        "VictoriaMetrics: {:.2} bytes a sample, and an index of {} KiB",
        bytes as f64 / samples as f64,
        index / 1024
    );
}

/// Figures that are measured are not the same twice: 10 % of noise on all but verdicts, times and capabilities, and on what
/// counters count between two samples.
fn noisy(text: &str) -> String {
    let changes = [
        "headroom_headroom",
        "headroom_utilisation",
        "headroom_latency",
        "headroom_expected",
        "headroom_demand",
        "headroom_source_collection",
    ];
    let mut state = 1_u64;
    let lines = text.lines().map(|line| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let noise = ((state >> 40) as f64 / f64::from(1 << 24) - 0.5) * 0.2;
        let words: Vec<&str> = line.rsplitn(3, ' ').collect();
        let [time, value, series] = words[..] else { return line.to_owned() };
        let value: f64 = value.parse().unwrap();
        if changes.iter().any(|name| series.starts_with(name)) {
            format!("{series} {} {time}", value * (1.0 + noise))
        } else if series.starts_with("headroom_device_") {
            // All of them began at zero at the same time: what one counts in 15 s is this part of it.
            let part = SCRAPE_S as f64 / uptime_s(time) as f64;
            let counted = value * (1.0 + noise * part);
            let is_whole = !series.contains("_seconds_total");
            format!(
                "{series} {} {time}",
                if is_whole { counted.round() } else { (counted * 1e3).round() / 1e3 }
            )
        } else {
            line.to_owned()
        }
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
