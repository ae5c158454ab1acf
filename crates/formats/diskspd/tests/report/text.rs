//! The text reports: how they look, and that scripts which read diskspd's read them.

use crate::samples::{Load, mixed, phase, reads, result, several};
use diskspd::report::{SystemFacts, profile_text, text, text_2016};
use regex::Regex;

#[test]
fn a_report_with_latencies_and_buckets() {
    insta::assert_snapshot!(text(&mixed(true, true).report()));
}

#[test]
fn a_report_without_them() {
    insta::assert_snapshot!(text(&mixed(false, false).report()));
}

#[test]
fn a_direction_without_ios_is_n_a() {
    insta::assert_snapshot!(text(&reads().report()));
}

#[test]
fn several_targets_and_time_spans_on_a_large_machine() {
    insta::assert_snapshot!(text(&several().report()));
}

#[test]
fn the_form_of_2016() {
    insta::assert_snapshot!(text_2016(&mixed(true, true).report()));
}

#[test]
fn the_form_of_2016_with_several_time_spans() {
    insta::assert_snapshot!(text_2016(&several().report()));
}

#[test]
fn the_profile_alone_is_how_the_report_begins() {
    let sample = mixed(true, false);
    assert!(text(&sample.report()).starts_with(&profile_text(&sample.command_line, &sample.profile)));
}

/// The totals of a table, as scripts read them: I/Os, MiB/s and IOPS after "total:".
fn totals(report: &str) -> Vec<Vec<f64>> {
    let row = Regex::new(r"(?m)^total:\s+(\d+) \|\s+(\d+) \|\s+([\d.]+) \|\s+([\d.]+)").unwrap();
    let numbers = |found: regex::Captures<'_>| {
        found.iter().skip(1).flatten().map(|m| m.as_str().parse().unwrap()).collect()
    };
    row.captures_iter(report).map(numbers).collect()
}

#[test]
fn scripts_find_the_totals_and_they_are_the_results() {
    let sample = mixed(true, true);
    let result = &sample.phases[0].results[0];
    for report in [text(&sample.report()), text_2016(&sample.report())] {
        let totals = totals(&report);
        let expected =
            [(result.ios(), result.iops()), (result.read.count, f64::NAN), (result.write.count, f64::NAN)];
        assert_eq!(totals.len(), expected.len());
        for (row, (ios, iops)) in totals.iter().zip(expected) {
            assert_eq!((row[0], row[1]), (ios as f64 * 4096.0, ios as f64));
            assert!(iops.is_nan() || (row[3] - iops).abs() <= 0.005, "{row:?} {iops}");
        }
        assert!((totals[0][2] - result.mib_per_s()).abs() <= 0.005);
    }
}

#[test]
fn rows_of_threads_add_up_to_the_totals() {
    let report = text(&several().report());
    let row = Regex::new(r"(?m)^ {5}\d \| +\d+ \| +(\d+) \|").unwrap();
    let total = Regex::new(r"(?m)^total: +\d+ \| +(\d+) \|").unwrap();
    let sections: Vec<&str> = report.split(" IO\nthread").skip(1).collect();
    assert_eq!(sections.len(), 6);
    for section in sections {
        let sum: u64 = row.captures_iter(section).map(|found| found[1].parse::<u64>().unwrap()).sum();
        assert_eq!(total.captures(section).unwrap()[1].parse::<u64>().unwrap(), sum);
    }
}

#[test]
fn bars_stand_below_each_other_in_every_table() {
    for sample in [mixed(true, true), mixed(true, false), mixed(false, true), several(), reads()] {
        for report in [text(&sample.report()), text_2016(&sample.report())] {
            for table in report.split("\nthread |").skip(1) {
                let lines: Vec<String> = format!("thread |{table}").lines().map(str::to_owned).collect();
                let end = lines.iter().position(|line| line.starts_with("total:")).unwrap();
                let bars = |line: &str| line.match_indices('|').map(|(at, _)| at).collect::<Vec<_>>();
                let heading = bars(&lines[0]);
                assert!(lines[1].len() > *heading.last().unwrap() && lines[1].trim_matches('-').is_empty());
                for row in &lines[2..end - 1] {
                    // Numbers are one wider than their headings from AvgLat on in diskspd, too.
                    let drift = bars(row).iter().zip(&heading).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
                    assert!(bars(row).len() == heading.len() && drift <= 1, "{}\n{row}", lines[0]);
                }
            }
        }
    }
}

/// Values of a percentile table that a script which leaves out "N/A" keeps.
fn percentiles(report: &str) -> Vec<(String, Vec<Option<f64>>)> {
    let row = Regex::new(r"(?m)^ *(min|\d\dth|\d-nines|max) \| +(\S+) \| +(\S+) \| +(\S+)$").unwrap();
    let cell = |text: &str| if text == "N/A" { None } else { Some(text.parse().unwrap()) };
    let read =
        |found: regex::Captures<'_>| (found[1].to_string(), (2..5).map(|at| cell(&found[at])).collect());
    row.captures_iter(report).map(read).collect()
}

#[test]
fn a_percentile_is_printed_only_with_ten_samples_above_it() {
    let sample = mixed(true, true);
    let result = &sample.phases[0].results[0];
    let table = percentiles(&text(&sample.report()));
    assert_eq!(table.len(), 15);
    assert_eq!(percentiles(&text_2016(&sample.report())), table);
    let total = |name: &str| table.iter().find(|(row, _)| row == name).unwrap().1[2];
    // Some 4,000 I/Os: 40 above the 99th percentile, 4 above 3-nines.
    assert!((3_800..4_200).contains(&result.ios()));
    assert!(total("99th").is_some() && total("3-nines").is_none() && total("9-nines").is_none());
    let longest_ns = result.threads.iter().map(|thread| thread.total().ns_max).max().unwrap();
    assert!((total("max").unwrap() - longest_ns as f64 / 1e6).abs() <= 0.0005);
    for column in 0..3 {
        let values: Vec<f64> = table.iter().filter_map(|(_, cells)| cells[column]).collect();
        assert!(values.is_sorted() && values.len() > 5, "{values:?}");
    }
}

#[test]
fn the_deviation_of_the_total_is_that_of_the_sum() {
    let load = Load { threads: 2, reads: 100, writes: 0, buckets: 2, bucket_ms: 500, block_bytes: 4096 };
    let mut sample = mixed(false, true);
    let mut result = result("/data/t.dat", 1 << 30, load);
    // Two threads that take turns: 30 and 10 I/Os, 10 and 30; each deviates by 10 in half a second.
    for (thread, counts) in result.threads.iter_mut().zip([[30, 10], [10, 30]]) {
        thread.series.iter_mut().zip(counts).for_each(|(slice, count)| slice.read.count = count);
    }
    sample.phases = vec![phase(vec![result])];
    let report = text(&sample.report());
    let cells: Vec<&str> = report.lines().filter_map(|line| line.split('|').nth(5)).map(str::trim).collect();
    assert_eq!(
        &cells[1..4],
        ["20.00", "20.00", "/data/t.dat (1GiB)"].map(|cell| if cell.starts_with('/') {
            "IopsStdDev"
        } else {
            cell
        })
    );
    let total = report.lines().find(|line| line.starts_with("total:")).unwrap();
    assert!(total.ends_with(" |       0.00"), "{total}");
}

#[test]
fn a_stall_at_the_end_and_a_started_bucket() {
    let mut sample = mixed(false, true);
    let result = &mut sample.phases[0].results[0];
    for thread in &mut result.threads {
        // Nothing came in the second of three seconds, nor in the third, which was cut short.
        thread.series.truncate(1);
        thread.series[0].read.count = 10;
        thread.series[0].write.count = 0;
    }
    result.series = vec![workload::Slice::default(); 3];
    result.elapsed_ns = 2_900_000_000;
    let report = text(&sample.report());
    let total = report.lines().find(|line| line.starts_with("total:")).unwrap();
    assert!(total.ends_with(" |      10.00"), "20 I/Os a second, then none: {total}");
}

#[test]
fn a_run_that_was_ended_before_it_was_measured_says_so() {
    let mut sample = several();
    sample.phases[1].results.iter_mut().for_each(|result| result.elapsed_ns = 0);
    let report = text(&sample.report());
    assert_eq!(report.matches("The test was interrupted before the measurements began.").count(), 1);
    let seconds = Regex::new(r"total test time:\t(\S+)s").unwrap().captures(&report).unwrap()[1].to_string();
    assert_eq!(seconds, "2.00");
}

#[test]
fn a_machine_nothing_is_known_of_has_no_made_up_zeros() {
    let mut sample = mixed(true, true);
    sample.system = SystemFacts::default();
    sample.phases[0].results[0].cores.clear();
    let report = text(&sample.report());
    assert!(!report.contains("CPU |") && !report.contains("core count"));
    assert!(report.contains("\tactive power scheme:\t<unknown>\n"));
}
