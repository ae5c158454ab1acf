//! Storage that stands still in the middle of a run: what its users wait, and what the storage says of itself.

use super::{Started, text};
use programs::Headroom;
use serde_json::Value;
use std::thread::sleep;
use std::time::{Duration, Instant};
use testbed::LoopDisk;
use workload::{CapKind, RunResult};

const STALL: Duration = Duration::from_secs(2);
/// Low, so that the I/Os that waited are done soon after the stall on a busy machine too.
const RATE: u64 = 200;

#[test]
fn a_stall_shows_in_what_users_of_an_open_loop_wait_and_is_hidden_in_what_the_storage_took() {
    let Some(mut disk) = LoopDisk::new(64 << 20) else { return };
    let ours = Headroom::new();
    let rate = format!("{RATE}/s");
    let flags =
        ["--rate", &rate, "--outstanding", "4", "--block", "4K", "--warm-up", "0s", "--duration", "10s"];
    let run =
        Started::new(&mut ours.command(&[&["run", text(disk.device()), "--json"], &flags[..]].concat()));
    sleep(Duration::from_secs(3));
    // A byte a second: to a halt.
    let started = Instant::now();
    if !disk.throttle(CapKind::ReadBytes, 1) {
        return;
    }
    sleep(STALL);
    disk.unthrottle();
    let stall = started.elapsed();
    let said = run.end();
    assert_eq!(said.code, Some(0), "{}", said.stderr);

    let answer: Value = serde_json::from_str(&said.stdout).unwrap();
    let told = answer["phases"][0]["results"][0].clone();
    let result: RunResult = serde_json::from_value(told.clone()).unwrap();
    let response = result.response.unwrap().read;
    let service = result.read.latency;
    // A busy machine may complete those of the last moments just after the end; those that waited are a fifth of all.
    assert!(
        result.read.count <= 10 * RATE + 2 && result.read.count >= 10 * RATE * 95 / 100,
        "none of them is lost: {}",
        result.read.count
    );

    // The users' waits: all of the stall, and all requests that came meanwhile.
    let stall_ns = stall.as_nanos() as f64;
    let near = |ns: u64| (ns as f64 / stall_ns - 1.0).abs() < 0.15;
    assert!(near(response.max_ns().unwrap()), "{:?}", response.max_ns());
    assert!(near(response.percentile_ns(99.0).unwrap()), "{:?}", response.percentile_ns(99.0));
    // Of those that came while it stood, every tenth waited less than a tenth of it.
    let delayed: u64 = response.filled().filter(|(ns, _)| *ns as f64 > stall_ns / 10.0).map(|(_, n)| n).sum();
    let expected = RATE as f64 * stall.as_secs_f64() * 0.9;
    assert!((delayed as f64 / expected - 1.0).abs() < 0.15, "{delayed} of {expected}");

    // The storage's own times: the four that were outstanding, and nothing at the same percentile.
    let hidden = service.percentile_ns(99.0).unwrap();
    assert!((hidden as f64) < stall_ns / 10.0, "{hidden}");
    let stood: u64 = service.filled().filter(|(ns, _)| *ns as f64 > stall_ns / 2.0).map(|(_, n)| n).sum();
    assert_eq!(stood, 4);

    let finding = |kind: &str| {
        let findings = told["findings"].as_array().unwrap();
        findings
            .iter()
            .find(|finding| finding["kind"] == kind)
            .unwrap_or_else(|| panic!("no {kind}: {findings:#?}"))
    };
    for (kind, words) in [
        ("response", "stalls made the I/Os behind them wait, which a closed loop hides"),
        ("stalls", "Nothing completed in"),
    ] {
        assert_eq!(finding(kind)["weight"], "warning");
        assert!(finding(kind)["text"].as_str().unwrap().contains(words), "{:#}", finding(kind));
    }
}
