//! Printed and kept reports: programs that read diskspd's output must read ours, and find the figures of the run.

use super::bench::{Bench, profile, within};
use serde_json::Value;
use std::path::Path;

/// Runs it, its text into a file; the run as the history keeps it.
fn printed(bench: &Bench, flags: &str, file: &Path) -> (String, Value) {
    let output = bench.command(flags).output().unwrap();
    assert!(output.status.success(), "{flags}: {}", String::from_utf8_lossy(&output.stderr));
    std::fs::write(file, &output.stdout).unwrap();
    let list = bench.headroom.json(&["history"]);
    let newest = list.as_array().unwrap().iter().map(|entry| entry["id"].as_i64().unwrap()).max().unwrap();
    let kept = bench.headroom.json(&["history", "show", "run", &newest.to_string()]);
    (String::from_utf8(output.stdout).unwrap(), kept)
}

fn count(of: &Value, direction: &str) -> u64 {
    of[direction]["count"].as_u64().unwrap()
}

/// Mean latency of a direction over the threads, milliseconds.
fn mean_ms(of: &Value, direction: &str) -> f64 {
    let threads = of["threads"].as_array().unwrap();
    let sum =
        |field: &str| threads.iter().map(|thread| thread[direction][field].as_f64().unwrap()).sum::<f64>();
    sum("stall_ns") / sum("count") / 1e6
}

fn told_ns(of: &Value, direction: &str, percent: f64) -> Option<f64> {
    let all = of[direction]["percentiles"].as_array()?;
    all.iter().find(|pair| pair[0] == percent).and_then(|pair| pair[1].as_f64())
}

#[test]
fn all_three_forms_are_imported_with_the_figures_of_the_run() {
    let Some(bench) = Bench::new() else { return };
    let place = tempfile::tempdir().unwrap();
    for (form, name) in [("", "a.txt"), ("--format 2.0.17", "b.txt"), ("-Rxml", "c.xml"), ("-Rtext", "d.txt")]
    {
        let file = place.path().join(name);
        let flags = format!("-r -b8K -Su -L -D500 -t2 -o4 -w30 {form}");
        let (_, kept) = printed(&bench, &flags, &file);
        let imported = bench.headroom.json(&["history", "import", "--dry-run", file.to_str().unwrap()]);
        let imported = &imported["phases"][0]["results"][0];
        for direction in ["read", "write"] {
            assert!(count(&kept, direction) > 100);
            assert_eq!(count(imported, direction), count(&kept, direction), "{form}: {direction}");
            assert_eq!(imported[direction]["bytes"], kept[direction]["bytes"], "{form}: {direction}");
            within("AvgLat", mean_ms(imported, direction) - mean_ms(&kept, direction), -0.002..=0.002);
            for (at, thread) in imported["threads"].as_array().unwrap().iter().enumerate() {
                assert_eq!(thread[direction]["count"], kept["threads"][at][direction]["count"], "{form}");
            }
            // The longest of all threads.
            let longest = kept["threads"].as_array().unwrap().iter();
            let longest =
                longest.map(|thread| thread[direction]["ns_max"].as_f64().unwrap()).fold(0.0, f64::max);
            within("max", told_ns(imported, direction, 100.0).unwrap() - longest, -600.0..=600.0);
            let median = told_ns(imported, direction, 50.0).unwrap();
            assert!(median < longest && median > told_ns(imported, direction, 0.0).unwrap());
        }
        let seconds = |of: &Value| of["elapsed_ns"].as_f64().unwrap() / 1e9;
        within("seconds", seconds(imported) - seconds(&kept), -0.006..=0.006);
        for (field, wanted) in
            [("block_bytes", 8192), ("outstanding", 4), ("threads", 2), ("write_percent", 30)]
        {
            assert_eq!(imported["workload"][field], wanted, "{form}: {field}");
        }
        assert_eq!(imported["workload"]["caching"], "direct", "{form}");
        if form == "-Rxml" {
            assert_eq!(imported["series"][1]["read"]["count"], kept["series"][1]["read"]["count"], "buckets");
        }
    }
}

#[test]
fn l_and_d_add_columns_and_percentiles_and_without_them_there_are_none() {
    let Some(bench) = Bench::new() else { return };
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("a.txt");
    let (plain, _) = printed(&bench, "-r -b4K -Su", &file);
    assert!(
        !plain.contains("AvgLat") && !plain.contains("IopsStdDev") && !plain.contains("%-ile"),
        "{plain}"
    );
    let (full, kept) = printed(&bench, "-r -b4K -Su -L -D200 -v -P5000", &file);
    for piece in [
        "|  AvgLat  | IopsStdDev | LatStdDev |",
        "  %-ile |",
        "using verbose mode",
        "3-nines |",
        "9-nines |        N/A",
    ] {
        assert!(full.contains(piece), "no '{piece}' in {full}");
    }
    // The deviation of the buckets, from the buckets themselves.
    let buckets = kept["series"].as_array().unwrap().iter().take(5);
    let rates: Vec<f64> = buckets.map(|row| row["read"]["count"].as_f64().unwrap() * 5.0).collect();
    let mean = rates.iter().sum::<f64>() / 5.0;
    let deviation = (rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / 5.0).sqrt();
    let total = full.lines().find(|line| line.starts_with("total:")).unwrap();
    let cells: Vec<&str> = total.split('|').map(str::trim).collect();
    within("IopsStdDev", cells[5].parse::<f64>().unwrap() - deviation, -0.02..=0.02);
    assert_eq!(cells[1], count(&kept, "read").to_string());
}

#[test]
fn rp_shows_and_runs_nothing() {
    let Some(bench) = Bench::new() else { return };
    let seen = testbed::BlockTrace::start(bench.disk.number()).unwrap();
    for form in ["-Rp", "-Rpxml", "-Rptext"] {
        let output = bench.command(&format!("-w100 {form}")).output().unwrap();
        assert!(output.status.success());
        assert!(String::from_utf8(output.stdout).unwrap().contains(&bench.device()));
    }
    assert_eq!(seen.stop().ios, []);
    assert!(!bench.headroom.history().exists(), "nothing to keep, no history");
}

#[test]
fn a_run_is_kept_with_its_command_line() {
    let Some(bench) = Bench::new() else { return };
    let seen = bench.run("-r -b8K -Su");
    assert!(seen.json["command_line"].as_str().unwrap().starts_with("headroom diskspd -W0 -d1 -r -b8K -Su"));
    let list = bench.headroom.json(&["history"]).to_string();
    assert!(list.contains("headroom diskspd -W0 -d1 -r -b8K -Su"), "{list}");
    assert!(seen.json["session"].is_number());
    assert_eq!(seen.result()["tool"], Value::Null, "our own, no import");
}

#[test]
fn what_linux_lacks_is_left_out_where_that_is_asked_for() {
    let Some(bench) = Bench::new() else { return };
    let refused = bench.command("-x -Sr -ft -r").output().unwrap();
    let errors = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{errors}");
    for flag in ["-x: ", "-Sr: ", "-ft: "] {
        assert!(errors.contains(flag), "{errors}");
    }
    let output = bench.command("-x -Sr -ft -r -b4K --ignore-unsupported").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert!(text.contains("using software cache") && !text.contains("completion routines"), "{text}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("ignored: -x: "));
}

#[test]
fn x_takes_another_duration_and_prints_each_time_span_and_the_totals() {
    let Some(bench) = Bench::new() else { return };
    let place = tempfile::tempdir().unwrap();
    let span = format!(
        "<TimeSpan><Duration>60</Duration><Warmup>9</Warmup><Targets><Target><Path>{}</Path>\
         <DisableOSCache>true</DisableOSCache></Target></Targets></TimeSpan>",
        bench.device()
    );
    let xml = profile(place.path(), &span.repeat(2));
    let flags = ["diskspd", &format!("-X{}", xml.display()), "-d1", "-W0", "-C0"];
    let text = String::from_utf8(bench.headroom.run(&flags).stdout).unwrap();
    for piece in ["Results for timespan 1:", "Results for timespan 2:", "Totals:", "actual test time:\t1.00s"]
    {
        assert!(text.contains(piece), "no '{piece}' in {text}");
    }
}
