//! The truth test: on a real file system on a real block device, five situations, five right answers, as many
//! times in a row as HEADROOM_TRUTH_ROUNDS says, once by default. Needs root (loop device, cgroup throttle); says
//! so elsewhere.
//!
//! The device is a loop device that a cgroup holds at 2,000 reads a second, before it is measured: a slow
//! disk whose capability is exactly known. A program with the extension loaded is the user's database.

use crate::programs::{Headroom, Scenario};
use serde_json::Value;
use testbed::LoopDisk;
use workload::CapKind;

const READS_A_SECOND: u64 = 2_000;

#[test]
fn five_situations_get_five_right_answers() {
    let Some(mut disk) = LoopDisk::new(4 << 30) else { return };
    disk.format_and_mount();
    if !disk.throttle(CapKind::ReadIops, READS_A_SECOND) {
        return;
    }
    let dir = disk.mount_point().to_owned();
    let headroom = Headroom::new();
    let large = Scenario::prepare("readers", &dir.join("large.db"));
    let small = Scenario::prepare("idle", &dir.join("small.db"));

    let rounds = std::env::var("HEADROOM_TRUTH_ROUNDS").map_or(1, |rounds| rounds.parse().unwrap());
    for round in 1..=rounds {
        let said = |situation: &str, answer: &Value, wanted: &[&str]| {
            let verdict = answer["verdict"].as_str().unwrap();
            println!(
                "round {round}, {situation}: {verdict} ({}), {}",
                answer["confidence"], answer["summary"]
            );
            assert!(wanted.contains(&verdict), "round {round}, {situation}: {answer:#}");
        };

        let measured = headroom.measure(&dir);
        let reads = &measured["curves"][0];
        let iops = reads["knee"]["iops"].as_f64().unwrap();
        assert!(
            (iops / READS_A_SECOND as f64 - 1.0).abs() < 0.1,
            "{READS_A_SECOND} reads a second, {iops} found: {reads:#}"
        );
        assert_eq!(reads["knee"]["reason"], "cap", "{reads:#}");

        let idle = headroom.check_while(&small.start("idle", 14));
        said("an idle-ish workload", &idle, &["healthy"]);

        let readers = headroom.check_while(&large.start("readers", 14));
        said("many readers past the knee", &readers, &["demand-exceeds-capability"]);
        let headroom_left = readers["headroom"].as_f64().unwrap();
        assert!((0.85..1.2).contains(&headroom_left), "no room is left: {headroom_left}");

        assert!(disk.throttle(CapKind::ReadIops, READS_A_SECOND / 5));
        let slow = headroom.check_while(&large.start("readers", 14));
        assert!(disk.throttle(CapKind::ReadIops, READS_A_SECOND));
        said("a fifth of the device", &slow, &["storage-degraded", "throttled"]);

        let commits = headroom.check_while(&small.start("commits", 14));
        said("single-row commits", &commits, &["serialized"]);
        let next = commits["next_step"].as_str().unwrap();
        assert!(next.contains("batch") && next.contains("one transaction"), "{next}");
        let evidence = commits["evidence"].as_array().unwrap();
        let gain = evidence.iter().find(|fact| fact["what"].as_str().unwrap().contains("gain by batching"));
        assert!(gain.is_some_and(|gain| gain["value"].as_f64().unwrap() > 1.5), "{commits:#}");

        let few = headroom.check_while(&small.start("few", 14));
        said("too few I/Os", &few, &["cannot-say"]);
    }
    drop((large, small));
    // Nothing is left on the user's storage.
    assert!(!dir.join("headroom.tmp").exists());
}
