//! Simulated against the real thing, as users do both: the same workload run on LUNs and on their models, and a fit's error
//! against real runs of what it never saw. Needs root, loop devices and FUSE. The whole table: scripts/bench simulate.

use crate::layouts::{Luns, number, within};
use serde_json::Value;

/// Tries a timed check again where it fails, and reports that: other processes may have had the processor.
fn timed(attempt: impl Fn() -> Result<(), String>) {
    for _ in 0..3 {
        let Err(failed) = attempt() else { return };
        eprintln!("once more, since {failed}");
    }
    attempt().unwrap();
}

/// Throughput and mean latency of the only workload.
fn figures(result: &Value) -> (f64, f64) {
    let result = &result["phases"][0]["results"][0];
    (number(&result["iops"]), number(&result["latency_ns_mean"]))
}

#[test]
fn luns_give_what_their_models_do() {
    let Some(served) = Luns::create(&["--count", "2", "--size", "64M", "--latency", "10ms", "--width", "4"])
    else {
        return;
    };
    let Some(capped) = Luns::create(&["--size", "64M", "--read-iops", "800"]) else { return };
    let (first, second) = (served.devices[0].as_str(), served.devices[1].as_str());
    let lun = "[[storage.disks]]\ncount = {}\nsize = \"64M\"\nunits = 4\nread = \"10ms\"\n";
    let of = |count: &str| lun.replace("{}", count);
    let stripe = ["--layout", "stripe:64K", first, second];
    let limit = "[[storage.disks]]\nsize = \"64M\"\nunits = 64\nread = \"60us\"\n\
                 limits = [{ reads = \"800/s\", refill = \"100ms\" }]\n";
    let cases = [
        ("three times as many as it is wide", vec![first], format!("[storage]\n{}", of("1")), 12, "1s"),
        (
            "two striped",
            stripe.to_vec(),
            format!("[storage]\nlayout = \"stripe:64K\"\n{}", of("2")),
            16,
            "1s",
        ),
        // The throttle's slices of 0.1 s: one more or less in the measured part must not matter.
        ("a limit", vec![capped.devices[0].as_str()], format!("[storage]\n{limit}"), 16, "2500ms"),
    ];
    for (name, target, storage, outstanding, duration) in cases {
        let file = served.place.path().join("simulated.toml");
        let length = format!("[[phases]]\nwarm-up = \"300ms\"\nduration = \"{duration}\"\n");
        let workload = format!("[[phases.workloads]]\nblock = \"64K\"\noutstanding = {outstanding}\n");
        std::fs::write(&file, format!("{storage}{length}{workload}")).unwrap();
        let (iops, mean_ns) = figures(&served.json_of(&["simulate", file.to_str().unwrap()]));
        let outstanding = outstanding.to_string();
        let mut run = vec!["run", "--block", "64K", "--outstanding", &outstanding];
        run.extend(["--warm-up", "300ms", "--duration", duration]);
        run.extend(target);
        timed(|| {
            let (real_iops, real_mean_ns) = figures(&served.json_of(&run));
            let agree = within(iops, real_iops, 0.05) && within(mean_ns, real_mean_ns, 0.10);
            let told = || {
                format!("{name}: {iops} IOPS and {mean_ns} ns simulated, {real_iops} and {real_mean_ns} real")
            };
            if agree { Ok(()) } else { Err(told()) }
        });
    }
}

#[test]
fn the_error_that_a_fit_prints_is_that_of_real_runs_it_never_saw() {
    let Some(luns) = Luns::create(&["--size", "64M", "--latency", "5ms", "--width", "8"]) else { return };
    let device = luns.devices[0].as_str();
    luns.json_of(&["measure", device, "--read-only", "--quick"]);
    let fitted = luns.json_of(&["simulate", "--fit", device]);
    let error = number(&fitted["fit"]["error"]);
    let held_out = fitted["fit"]["held_out"].as_array().unwrap();
    let share = |held: &Value, real: f64| (number(&held["simulated_iops"]) / real - 1.0).abs();
    let printed: f64 = held_out.iter().map(|held| share(held, number(&held["measured_iops"]))).sum();
    assert!((printed / held_out.len() as f64 - error).abs() < 1e-9, "{error} of {held_out:?}");
    timed(|| {
        let run = |held: &Value| {
            let (block, outstanding) =
                (held["workload"]["block_bytes"].to_string(), held["outstanding"].to_string());
            let run = ["run", device, "--block", &block, "--outstanding", &outstanding];
            let length = ["--warm-up", "300ms", "--duration", "1s"];
            figures(&luns.json_of(&[&run[..], &length[..]].concat())).0
        };
        let real: f64 = held_out.iter().map(|held| share(held, run(held))).sum();
        let real = real / held_out.len() as f64;
        let told = || format!("{error} is printed, {real} found, of {held_out:?}");
        if (real - error).abs() < 0.03 { Ok(()) } else { Err(told()) }
    });
}
