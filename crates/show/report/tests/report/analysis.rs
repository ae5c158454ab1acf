//! Reports of a stored stretch, in each format.

use crate::analysis_sample::{HOUR, analysed, charts, files, pages};
use filestats::*;
use report::text::Style;
use report::{ChartSubject, csv, html, json, text};
use serde_json::Value;

const MS: u64 = 1_000_000;

const STYLE: Style = Style { color: false, width: 80 };

#[test]
fn a_bad_hour() {
    let screen = text::analysis(&analysed(HOUR, &files()), &STYLE);
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    insta::assert_snapshot!(screen);
}

#[test]
fn a_good_one() {
    let analysed = analysed(HOUR, &files()[1..]);
    assert!(!analysed.is_bad() && analysed.says_anything());
    insta::assert_snapshot!(text::analysis(&analysed, &STYLE));
}

#[test]
fn findings_as_a_table() {
    insta::assert_snapshot!(csv::analysis(&analysed(HOUR, &files())));
}

#[test]
fn a_page_draws_all_files_by_kind_and_the_file_of_a_finding() {
    let files = files();
    let analysed = analysed(HOUR, &files);
    let page = html::analysis(&analysed, &charts(&analysed, HOUR, &files), "headroom history analyze");
    for words in [
        "All data files",
        "All logs",
        "problem",
        "not known",
        "Outstanding I/Os (N)",
        "service level of reads",
        "of syncs",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn each_file_has_one_chart_and_the_answer_is_not_the_first_finding() {
    for (name, page) in pages() {
        let captions: Vec<&str> =
            page.split("<figcaption><b>/").skip(1).map(|rest| rest.split("</b>").next().unwrap()).collect();
        assert!(!captions.is_empty() || name.contains("good"), "{name}");
        let mut once = captions.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), captions.len(), "{name}: {captions:?}");
    }
    let page = &pages()[0].1;
    // The style sheet makes the first letter a capital.
    let answer =
        "reads of …/16384/16397 averaged 34.0\u{a0}ms for 12 min; the service level is 20.0\u{a0}ms.";
    assert_eq!(page.matches(answer).count(), 1);
}

#[test]
fn files_worth_a_chart_are_those_of_findings_and_the_busiest_others() {
    let files = files();
    let analysed = analysed(HOUR, &files);
    let chosen = html::files_worth_a_chart(&analysed.sources, 16);
    let ChartSubject::Finding(number) = chosen[0].1 else { panic!("{chosen:?}") };
    assert_eq!(analysed.sources[0].findings[number].path.as_deref(), Some(files[0].file.path.as_str()));
    let busy: Vec<&str> = chosen
        .iter()
        .filter_map(|(source, of)| match of {
            ChartSubject::Busy(number) => Some(analysed.sources[*source].busiest[*number].file.path.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(busy, [files[1].file.path.as_str()], "the log, which has no finding");
    assert_eq!(html::files_worth_a_chart(&analysed.sources, 1).len(), 1);
}

#[test]
fn a_week_is_a_page_of_some_hundred_points() {
    for (name, page) in pages() {
        // Figures for the pointer are a part of it.
        assert!(page.len() < 4 << 20, "{name}: {} KiB", page.len() >> 10);
        assert!(page.contains("All ") && page.matches("<svg").count() % 2 == 0, "{name}");
    }
}

#[test]
fn one_note_is_a_note() {
    let mut analysed = analysed(HOUR, &files());
    analysed.sources[0].findings.retain(|finding| finding.weight != findings::Weight::Note);
    assert!(html::analysis(&analysed, &[], "headroom history analyze").contains(">no notes<"));
    analysed.sources[0].findings[0].weight = findings::Weight::Note;
    assert!(html::analysis(&analysed, &[], "headroom history analyze").contains(">1 note<"));
}

#[test]
fn every_format_has_p99_at_most_only_where_there_is_a_histogram() {
    let mut analysed = analysed(HOUR, &files());
    assert!(!text::analysis(&analysed, &STYLE).contains("p99 of"));
    let mut latencies = Latencies::default();
    (0..1000).for_each(|at| latencies.read.record(if at < 980 { 2 * MS } else { 30 * MS }));
    analysed.sources[0].add_latencies(0, &latencies);
    // 30 ms lies in the last quarter of 2^24 to 2^25 ns.
    let at_most = (1_u64 << 25) - 1;
    let told = text::analysis(&analysed, &STYLE);
    assert!(told.contains("reads at most 33.6 ms") && !told.contains("syncs at most"), "{told}");
    let value = json::analysis(&analysed);
    let busy = &value["sources"][0]["busiest"];
    assert_eq!(busy[0]["p99_at_most_ns"]["read_ns"], at_most);
    assert_eq!(
        (&busy[0]["p99_at_most_ns"]["write_ns"], &busy[1]["p99_at_most_ns"]["sync_ns"]),
        (&Value::Null, &Value::Null)
    );
    let fact = format!("p99 of the whole stretch, at most={at_most} ns");
    let rows = csv::analysis(&analysed);
    let with_it: Vec<&str> = rows.lines().filter(|row| row.contains(&fact)).collect();
    assert!(!with_it.is_empty() && with_it.iter().all(|row| row.contains("16397,read,")), "{rows}");
    assert!(html::analysis(&analysed, &[], "headroom history analyze").contains(">33.6<"));
}
