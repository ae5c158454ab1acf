//! The pages of runs that the tests and the browser look at.

use crate::runs_sample;
use capability::SweepComparison;
use charts::{Factor, NamedRun};
use report::html::{self, Comparison, ComparisonRow, RunsPage, Validity};
use workload::{PhaseResult, RunResult};

/// A page of the open loop with what is found of it.
pub fn open_loop_page() -> String {
    let run = runs_sample::open_loop();
    let found = findings::findings(&run, &findings::RunConditions::default());
    let bad = found.iter().filter(|finding| finding.weight != findings::Weight::Good);
    let sentences: Vec<String> = bad.map(|finding| finding.text.clone()).collect();
    html::runs(&RunsPage {
        title: "Open loop",
        runs: &NamedRun::all(&[run]),
        charts: &[],
        sentences: &sentences,
        validity: Validity::of_findings(&found),
        command: "headroom run --rate 20000",
        version: "0.2.0",
    })
}

/// Page names and pages.
pub fn pages() -> Vec<(&'static str, String)> {
    let oltp = [PhaseResult { name: "oltp".into(), results: vec![runs_sample::oltp()] }];
    let sentences = [
        "Reads and writes waited for the storage, not for the processor: the busiest thread used 33 % of a core.",
        "For 400 ms around second 30 nothing completed: the longest read took 402 ms, p99 does not show it.",
    ]
    .map(String::from);
    let page = |title: &'static str, runs: &[NamedRun], command: &str| {
        html::runs(&RunsPage {
            title,
            runs,
            charts: &[],
            sentences: &sentences,
            validity: Validity::Valid,
            command,
            version: "0.2.0",
        })
    };
    let sweep = runs_sample::sweep(&[4096, 8192, 65_536], 1.0);
    let matrix = runs_sample::matrix();
    let matrix_page = RunsPage {
        title: "Matrix of /data",
        runs: &NamedRun::all(&matrix),
        charts: &[],
        sentences: &[],
        validity: Validity::Unknown,
        command: "headroom run /data --block 4K,8K,16K,64K,256K --outstanding 1,2,4,8,16,32,64,128",
        version: "0.2.0",
    };
    let layouts = runs_sample::layouts();
    let compared = SweepComparison::between(&layouts[0].saturation, &layouts[1].saturation);
    let study = "headroom run --sweep=8:256:8 --layout span,stripe:64K /dev/loop0 /dev/loop1 /dev/loop2";
    vec![
        ("sweep-layouts.html", html::sweeps(&layouts, compared.as_ref(), study, "0.2.0")),
        ("sweep-one.html", html::sweeps(&layouts[1..], None, "headroom run --sweep /dev/loop0", "0.2.0")),
        (
            "runs-one.html",
            page("oltp on /data", &NamedRun::phases(&oltp), "headroom run oltp /data --duration 60s"),
        ),
        ("runs-open-loop.html", open_loop_page()),
        (
            "runs-sweep.html",
            page("Rising load on /data", &NamedRun::all(&sweep), "headroom run --file sweep.toml"),
        ),
        ("runs-nothing.html", page("Nothing", &[], "")),
        ("matrix.html", html::matrix(&matrix_page, Factor::Outstanding, Factor::BlockSize)),
        (
            "comparison.html",
            comparison(&runs_sample::sweep(&[8192], 1.0), &runs_sample::sweep(&[8192], 1.22)),
        ),
        ("comparison-runs.html", comparison(&[runs_sample::oltp()], &[slower()])),
    ]
}

fn slower() -> RunResult {
    let workload = runs_sample::oltp().workload;
    runs_sample::run(workload, 60, 1.22, None)
}

fn comparison(before: &[RunResult], after: &[RunResult]) -> String {
    let row = |what: &str, values: [&str; 2], change: f64, interval: (f64, f64), better, words: &str| {
        ComparisonRow {
            what: what.into(),
            a: values[0].into(),
            b: values[1].into(),
            change: Some(change),
            interval: Some(interval),
            better,
            words: words.into(),
            headline: what != "CPU an I/O",
        }
    };
    let rows = [
        row("IOPS", ["96,950", "79,420"], -0.18, (-0.2, -0.16), Some(false), "fewer, beyond noise"),
        row("mean latency", ["1.32 ms", "1.61 ms"], 0.22, (0.19, 0.25), Some(false), "slower, beyond noise"),
        row("p99 latency", ["4.10 ms", "4.02 ms"], -0.02, (-0.06, 0.03), None, "cannot tell"),
        row("CPU an I/O", ["3.1 us", "2.6 us"], -0.16, (-0.18, -0.14), Some(true), "less, beyond noise"),
        ComparisonRow {
            what: "p99.9 latency".into(),
            words: "too few I/Os".into(),
            ..ComparisonRow::default()
        },
    ];
    let mut runs = NamedRun::group("before", before);
    runs.extend(NamedRun::group("after", after));
    html::comparison(&Comparison {
        title: "slower",
        tone: report::Tone::Bad,
        summary: "Random 8 KiB reads: 18 % fewer IOPS than before, beyond noise.",
        names: ["before", "after"],
        sentences: &["Intervals are of 95 % confidence, over 5 runs of each.".into()],
        rows: &rows,
        runs: &runs,
        command: "headroom compare 12 17",
        version: "0.2.0",
    })
}
