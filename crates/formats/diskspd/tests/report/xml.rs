//! The XML result: its elements in diskspd's order, and what scripts that read diskspd's find in it.

use crate::samples::{Load, Sample, mixed, phase, reads, result, several, target};
use crate::tree;
use diskspd::report::{CpuFacts, xml};

fn read(sample: &Sample) -> tree::Element {
    tree::read(&xml(&sample.report()))
}

#[test]
fn a_result_with_latencies_and_buckets() {
    insta::assert_snapshot!(without_percentiles(&xml(&mixed(true, true).report())));
}

#[test]
fn several_targets_and_time_spans_on_a_large_machine() {
    insta::assert_snapshot!(without_percentiles(&xml(&several().report())));
}

/// Leaves out most of the hundred buckets of a latency.
fn without_percentiles(xml: &str) -> String {
    let buckets = regex::Regex::new(
        r"(?m)^ +<Bucket>\n +<Percentile>(\d\d?)</Percentile>\n(?: +<\w+Milliseconds>.*\n)* +</Bucket>\n",
    )
    .unwrap();
    let kept = |found: &regex::Captures<'_>| {
        if ["0", "1", "50", "99"].contains(&&found[1]) { found[0].to_string() } else { String::new() }
    };
    buckets.replace_all(xml, kept).into_owned()
}

/// Reads as `Process-DiskSpd.ps1` does, by its own paths: the row of its table, and the table of percentiles.
#[test]
fn process_diskspd_finds_what_it_reads() {
    let sample = mixed(true, true);
    let text = xml(&sample.report());
    assert_eq!(text.lines().next(), Some("<Results>"), "it looks at the first line");
    let x = tree::read(&text);
    let ran = &sample.phases[0].results[0];

    assert_eq!(x.all("Results.System.ComputerName")[0].text, "db7.example.net");
    let seconds = x.number("Results.TimeSpan.TestTimeSeconds");
    assert!((seconds - ran.elapsed_s()).abs() <= 0.005);
    assert_eq!(x.sum("Results.TimeSpan.Thread.Target.ReadCount"), ran.read.count as f64);
    assert_eq!(x.sum("Results.TimeSpan.Thread.Target.WriteCount"), ran.write.count as f64);
    assert_eq!(x.sum("Results.TimeSpan.Thread.Target.ReadBytes"), ran.read.bytes as f64);
    assert_eq!(x.sum("Results.TimeSpan.Thread.Target.WriteBytes"), ran.write.bytes as f64);
    assert_eq!(x.all("Results.TimeSpan.Thread.Target.Path")[0].text, "/data/t.dat");
    for (name, count) in [("Read", ran.read.count), ("Write", ran.write.count)] {
        let deviation = x.number(&format!("Results.TimeSpan.Iops.{name}IopsStdDev"));
        let iops = count as f64 / seconds;
        assert!(deviation > 0.0 && deviation / iops < 0.1, "a steady run is not painted red");
    }
    assert_eq!(x.number("Results.TimeSpan.ThreadCount"), 2.0);

    let asked = "Results.Profile.TimeSpans.TimeSpan";
    assert_ne!(x.all(&format!("{asked}.DisableAffinity"))[0].text, "true");
    assert_eq!(x.number(&format!("{asked}.Targets.Target.Random")), 4096.0);
    assert_eq!(x.number(&format!("{asked}.Targets.Target.WriteRatio")), 30.0);
    assert_eq!(x.number(&format!("{asked}.Targets.Target.RequestCount")), 8.0);
    assert_eq!(x.number(&format!("{asked}.Targets.Target.BlockSize")), 4096.0);

    let cpu = "Results.TimeSpan.CpuUtilization";
    assert_eq!(x.number(&format!("{cpu}.Average.UsagePercent")), 33.62);
    assert_eq!(x.number(&format!("{cpu}.Average.KernelPercent")), 16.62);
    assert_eq!(x.numbers(&format!("{cpu}.CPU.UsagePercent")), [55.0, 12.25]);
    assert_eq!(x.numbers(&format!("{cpu}.CPU.KernelPercent")), [25.0, 8.25]);

    let mean_ms = |latency: &workload::LatencyHistogram| latency.mean_ns().unwrap() / 1e6;
    let read_ms = x.number("Results.TimeSpan.Latency.AverageReadMilliseconds");
    let write_ms = x.number("Results.TimeSpan.Latency.AverageWriteMilliseconds");
    assert!((read_ms - mean_ms(&ran.read.latency)).abs() <= 0.0005);
    assert!((write_ms - mean_ms(&ran.write.latency)).abs() <= 0.0005);

    let buckets = x.all("Results.TimeSpan.Latency.Bucket");
    for wanted in ["25", "50", "75", "90", "95", "99", "99.9", "99.99", "99.999", "100"] {
        let bucket = buckets.iter().find(|bucket| bucket.all("Percentile")[0].text == wanted).unwrap();
        // Too few I/Os: no value, as where there are no reads.
        let told = !wanted.starts_with("99.");
        assert_eq!(bucket.all("ReadMilliseconds").len(), usize::from(told), "{wanted}");
        assert_eq!(bucket.all("WriteMilliseconds").len(), usize::from(told), "{wanted}");
    }
}

/// Reads as VMFleet does: the number of a percentile is its place, and times of several timespans add up.
#[test]
fn vm_fleet_finds_what_it_reads() {
    let sample = several();
    let x = read(&sample);
    assert_eq!(x.all("Results.TimeSpan").len(), 2);
    assert!((x.sum("Results.TimeSpan.TestTimeSeconds") - 4.0).abs() < 0.02);
    let ios: u64 = sample.phases.iter().flat_map(|phase| &phase.results).map(workload::RunResult::ios).sum();
    let target = "Results.TimeSpan.Thread.Target";
    assert_eq!(x.sum(&format!("{target}.ReadCount")) + x.sum(&format!("{target}.WriteCount")), ios as f64);
    for span in x.all("Results.TimeSpan") {
        let buckets = span.all("Latency.Bucket");
        assert_eq!(buckets.len(), 108);
        for percentile in [0, 50, 90, 99] {
            assert_eq!(buckets[percentile].number("Percentile"), percentile as f64);
            assert!(buckets[percentile].number("ReadMilliseconds") > 0.0);
        }
        let median = buckets[50].number("TotalMilliseconds");
        assert!(buckets[0].number("TotalMilliseconds") < median);
        assert!(median < buckets[107].number("TotalMilliseconds"));
    }
}

/// Averages as VMFleet's first version does: the IOPS of the buckets.
#[test]
fn buckets_average_to_the_iops_of_the_run() {
    let sample = mixed(false, true);
    let buckets: Vec<f64> = read(&sample)
        .all("Results.TimeSpan.Iops.Bucket")
        .iter()
        .map(|bucket| bucket.attribute("Total"))
        .collect();
    let mean = buckets.iter().sum::<f64>() / buckets.len() as f64;
    assert_eq!(buckets.len(), 2);
    assert!((mean / sample.phases[0].results[0].iops() - 1.0).abs() < 0.01, "{buckets:?}");
}

#[test]
fn the_profile_in_a_result_can_be_run_again() {
    for sample in [mixed(true, true), several()] {
        let again = diskspd::profile_xml::read(&xml(&sample.report()), &[]).unwrap();
        assert_eq!(again.profile, sample.profile);
    }
}

#[test]
fn elements_come_in_the_order_of_diskspd() {
    let x = read(&mixed(true, true));
    assert_eq!(x.all("Results")[0].names(), ["System", "Profile", "TimeSpan"]);
    assert_eq!(
        x.all("Results.System")[0].names(),
        ["ComputerName", "Tool", "RunTime", "PowerScheme", "ProcessorTopology"]
    );
    let span = x.all("Results.TimeSpan")[0];
    let names = ["TestTimeSeconds", "ThreadCount", "RequestCount", "ProcCount", "CpuUtilization"];
    let names = names.into_iter().chain(["Latency", "Iops", "Thread", "Thread"]);
    assert_eq!(span.names(), names.collect::<Vec<_>>());
    let counts = ["Path", "BytesCount", "FileSize", "IOCount", "ReadBytes", "ReadCount", "WriteBytes"];
    let latencies = ["WriteCount", "AverageReadLatencyMilliseconds", "ReadLatencyStdev"];
    let more = ["AverageWriteLatencyMilliseconds", "WriteLatencyStdev", "AverageLatencyMilliseconds"];
    let names = counts.into_iter().chain(latencies).chain(more).chain(["LatencyStdev", "Iops"]);
    assert_eq!(span.all("Thread.Target")[0].names(), names.collect::<Vec<_>>());
    assert_eq!(span.numbers("Thread.Id"), [0.0, 1.0]);
}

#[test]
fn each_bucket_tells_shortest_longest_mean_and_deviation() {
    let sample = mixed(true, true);
    let x = read(&sample);
    let first = x.all("Results.TimeSpan.Thread.Target.Iops.Bucket")[0];
    let tally = sample.phases[0].results[0].threads[0].series[0].read;
    assert_eq!(first.attribute("SampleMillisecond"), 1000.0);
    assert_eq!(first.attribute("Read"), tally.count as f64);
    for (name, ns) in [
        ("ReadMinLatencyMilliseconds", tally.ns_min as f64),
        ("ReadMaxLatencyMilliseconds", tally.ns_max as f64),
        ("ReadAvgLatencyMilliseconds", tally.mean_ns().unwrap()),
        ("ReadLatencyStdDev", tally.deviation_ns().unwrap()),
    ] {
        assert!((first.attribute(name) - ns / 1e6).abs() <= 0.0005, "{name}");
    }
    // The shortest of all threads, also where one of them did nothing in that bucket.
    let mut idle = mixed(true, true);
    idle.phases[0].results[0].threads[1].series[0].read = workload::Tally::default();
    let all = read(&idle);
    assert!(all.all("Results.TimeSpan.Iops.Bucket")[0].attribute("ReadMinLatencyMilliseconds") > 0.0);
}

#[test]
fn what_was_not_measured_is_left_out() {
    let x = read(&mixed(false, false));
    assert!(x.all("Results.TimeSpan.Latency").is_empty() && x.all("Results.TimeSpan.Iops").is_empty());
    let x = read(&reads());
    assert!(x.all("Results.TimeSpan.Latency.AverageWriteMilliseconds").is_empty());
    assert!(x.all("Results.TimeSpan.Latency.Bucket.WriteMilliseconds").is_empty());
    assert!(x.all("Results.TimeSpan.Iops.WriteIopsStdDev").is_empty());
    let mut early = mixed(true, true);
    early.phases[0].results[0].elapsed_ns = 0;
    assert_eq!(read(&early).all("Results.TimeSpan")[0].names(), ["Error"]);
}

#[test]
fn names_of_files_and_machines_are_escaped() {
    let path = "/data/<a> & \"b\"";
    let mut sample = mixed(true, true);
    sample.system.computer_name = "a<b".into();
    sample.profile.time_spans[0].targets = vec![target(path, 30)];
    let x = read(&sample);
    assert_eq!(x.all("Results.TimeSpan.Thread.Target.Path")[0].text, path);
    assert_eq!(x.all("Results.Profile.TimeSpans.TimeSpan.Targets.Target.Path")[0].text, path);
    assert_eq!(x.all("Results.System.ComputerName")[0].text, "a<b");
}

#[test]
fn masks_are_as_long_as_the_machine_needs() {
    let mut sample = mixed(false, false);
    let cpu = |id| CpuFacts { id, core: id / 2, socket: id / 64, ..Default::default() };
    sample.system.cpus = (0..128).map(cpu).collect();
    let text = xml(&sample.report());
    assert!(text.contains(&format!("ActiveProcessors=\"128\" ActiveProcessorMask=\"0x{}\"", "f".repeat(32))));
    assert!(text.contains(&format!("Mask=\"0x{}{}\"", "f".repeat(16), "0".repeat(16))));
    assert!(text.contains("<Core Group=\"0\" Core=\"3\" Mask=\"0xc0\" EfficiencyClass=\"0\"/>"));
}

#[test]
fn a_target_of_which_nothing_is_known_by_thread_still_has_its_latencies() {
    let mut sample = mixed(true, false);
    let load = Load { threads: 1, reads: 50, writes: 0, buckets: 1, bucket_ms: 500, block_bytes: 512 };
    let mut without = result("/data/t.dat", 1 << 20, load);
    let exact = without.read.latency.mean_ns().unwrap() / 1e6;
    without.threads.clear();
    sample.phases = vec![phase(vec![without])];
    let mean = read(&sample).number("Results.TimeSpan.Latency.AverageTotalMilliseconds");
    assert!((mean - exact).abs() <= 0.0005);
}
