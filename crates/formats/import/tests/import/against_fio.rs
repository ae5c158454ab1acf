//! fio is run, and what is read from its output is compared with fio's own figures.

use import::read;
use serde_json::Value;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use workload::{Direction, RunResult};

/// Runs fio on a file of its own; `None` where it is not installed.
fn fio(arguments: &[&str]) -> Option<String> {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let number = RUNS.fetch_add(1, Relaxed);
    let dir = std::env::temp_dir().join(format!("headroom-import-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let run = Command::new("fio")
        .args(["--name=job", "--size=4m", "--runtime=1", "--time_based"])
        .arg(format!("--directory={}", dir.display()))
        .args(arguments)
        .output();
    std::fs::remove_dir_all(&dir).unwrap();
    match run {
        Ok(output) => {
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{told} {}", String::from_utf8_lossy(&output.stdout));
            Some(String::from_utf8(output.stdout).unwrap())
        }
        Err(error) => {
            eprintln!("skipped: fio does not run here: {error}");
            None
        }
    }
}

/// Every figure of a side that fio tells.
fn compare(ours: &Direction, mean_ns: Option<f64>, theirs: &Value, latency: &str, elapsed_ns: u64) {
    assert_eq!(ours.count, theirs["total_ios"].as_u64().unwrap());
    assert_eq!(ours.bytes, theirs["io_bytes"].as_u64().unwrap());
    if ours.count == 0 {
        return;
    }
    assert!(elapsed_ns >= theirs["runtime"].as_u64().unwrap() * 1_000_000);
    let latency = &theirs[latency];
    let mean = latency["mean"].as_f64().unwrap();
    assert!((mean_ns.unwrap() - mean).abs() < 1e-6 * mean, "{mean_ns:?} {mean}");
    for (percent, ns) in latency["percentile"].as_object().unwrap() {
        assert_eq!(ours.percentile_ns(percent.parse().unwrap()), ns.as_u64(), "{percent}");
    }
    assert_eq!(ours.percentile_ns(0.0), latency["min"].as_u64());
    assert_eq!(ours.percentile_ns(100.0), latency["max"].as_u64());
    if let Some(bins) = latency["bins"].as_object() {
        assert_eq!(ours.latency.count(), ours.count);
        assert!((ours.latency.mean_ns().unwrap() - mean).abs() < 1e-6 * mean);
        // Ours groups ranges of fio's only where they are within a thousandth of each other.
        let mut bins: Vec<(u64, u64)> =
            bins.iter().map(|(ns, count)| (ns.parse().unwrap(), count.as_u64().unwrap())).collect();
        bins.sort_unstable();
        let mut below = 0;
        for (ns, count) in bins {
            below += count;
            let filled: u64 =
                ours.latency.filled().filter(|(top, _)| *top <= ns + ns / 1000 + 1).map(|(_, n)| n).sum();
            assert_eq!(filled, below, "I/Os up to {ns} ns");
        }
    }
}

fn check(text: &str, latency: &str) -> RunResult {
    let imported = read(text, None).unwrap();
    let result = imported.results().next().unwrap().clone();
    let value: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let job = &value["jobs"][0];
    assert_eq!(result.tool.as_deref(), value["fio version"].as_str());
    let whole = &result.series[0];
    compare(&result.read, whole.read.mean_ns(), &job["read"], latency, result.elapsed_ns);
    compare(&result.write, whole.write.mean_ns(), &job["write"], latency, result.elapsed_ns);
    result
}

#[test]
fn normal_json_is_read_exactly() {
    let Some(text) = fio(&["--rw=randrw", "--rwmixread=70", "--bs=8k", "--output-format=json"]) else {
        return;
    };
    let result = check(&text, "clat_ns");
    assert_eq!(result.read.latency.count(), 0, "no histogram is made up");
    assert!(result.outstanding() > 0.0);
}

#[test]
fn json_plus_is_read_exactly() {
    let Some(text) = fio(&["--rw=randwrite", "--bs=4k", "--fdatasync=4", "--output-format=json+"]) else {
        return;
    };
    let result = check(&text, "clat_ns");
    let sync = serde_json::from_str::<Value>(&text).unwrap()["jobs"][0]["sync"]["lat_ns"].clone();
    assert_eq!(result.sync.count, sync["N"].as_u64().unwrap());
    assert!(result.sync.count > 0 && result.sync.latency.count() == result.sync.count);
    assert_eq!(result.sync.percentile_ns(100.0), sync["max"].as_u64());
}

#[test]
fn total_latency_is_taken_where_it_has_percentiles() {
    let arguments =
        ["--rw=randread", "--lat_percentiles=1", "--numjobs=2", "--group_reporting", "--output-format=json+"];
    let Some(text) = fio(&arguments) else { return };
    let result = check(&text, "lat_ns");
    assert_eq!((result.workload.threads, result.threads.len()), (2, 0));
}

#[test]
fn threads_add_up_to_what_fio_says_of_each() {
    let Some(text) = fio(&["--rw=read", "--numjobs=3", "--output-format=json+"]) else { return };
    let imported = read(&text, None).unwrap();
    let results: Vec<&RunResult> = imported.results().collect();
    let value: Value = serde_json::from_str(&text).unwrap();
    let sum = |key: &str| {
        value["jobs"].as_array().unwrap().iter().map(|job| job["read"][key].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((results.len(), results[0].threads.len()), (1, 3));
    assert_eq!((results[0].read.count, results[0].read.bytes), (sum("total_ios"), sum("io_bytes")));
    assert_eq!(results[0].read.latency.count(), sum("total_ios"));
}
