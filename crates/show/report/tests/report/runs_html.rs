//! Properties of every page of runs.

use crate::odd_runs::{large, odd_run};
use crate::{run_pages, runs_sample};
use charts::{NamedRun, RunChart};
use proptest::prelude::*;
use report::html::{self, RunsPage, Validity};
use workload::RunResult;

const CHARTS: [RunChart; 7] = [
    RunChart::LoadCurve,
    RunChart::Sweep,
    RunChart::HEAT_MAP,
    RunChart::Percentiles,
    RunChart::OverTime,
    RunChart::LatencyOverTime,
    RunChart::Histogram,
];

#[test]
fn a_page_has_its_command_and_loads_nothing() {
    for (name, page) in run_pages::pages() {
        let addresses = crate::html::without_script(&page).replace("href=\"#", "");
        for outside in ["http:", "https:", "url(", "@import", "src=", "href=", "<script"] {
            assert!(!addresses.contains(outside), "{name}: {outside}");
        }
        assert!(page.contains("How to read this") && !page.contains("NaN"), "{name}");
        assert!(name == "runs-nothing.html" || page.contains(">Run it again<a"), "{name}");
    }
}

#[test]
fn names_from_outside_never_become_markup() {
    const HOSTILE: &str = "</title><script>alert('x')</script>\"><img src=x>&amp;\u{202e}\x1b[31m";
    let mut first = runs_sample::oltp();
    (first.target, first.tool, first.workload.name) = (HOSTILE.into(), Some(HOSTILE.into()), HOSTILE.into());
    let runs = [first, runs_sample::open_loop()];
    let mut named = NamedRun::group(HOSTILE, &runs);
    named[0].name = HOSTILE.into();
    let sentences = [HOSTILE.to_owned()];
    let page = RunsPage {
        title: HOSTILE,
        runs: &named,
        charts: &CHARTS,
        sentences: &sentences,
        validity: Validity::Invalid(HOSTILE),
        command: HOSTILE,
        version: HOSTILE,
    };
    let text = html::runs(&page);
    assert!(text.contains("&lt;script&gt;"), "the name is shown");
    let text = crate::html::without_script(&text);
    assert!(!text.contains("<script") && !text.contains("<img"));
    assert!(!text.contains('\u{202e}') && !text.contains('\x1b'));
}

#[test]
fn the_page_of_a_sweep_begins_with_the_picture_and_folds_long_tables() {
    let pages = run_pages::pages();
    let page = &pages.iter().find(|(name, _)| *name == "sweep-layouts.html").unwrap().1;
    assert!(page.find("<svg").unwrap() < page.find("<table").unwrap());
    assert_eq!((page.matches("<details>").count(), page.matches("<details open>").count()), (4, 0));
    assert!(page.contains("Steps of stripe:64K"));
    assert!(page.matches("/dev/loop0, /dev/loop1").count() <= 2, "members' names are said once");
    for word in [
        "knee",
        "throughput",
        "unloaded latency",
        "linear",
        "levels",
        "degraded",
        "critical",
        "queue",
        "members",
    ] {
        assert!(page.contains(&format!("<td class=\"l\">{word}</td>")), "{word}");
    }
}

#[test]
fn a_property_that_only_one_sweep_has_moves_no_other_to_a_wrong_row() {
    let mut layouts = runs_sample::layouts();
    layouts[1].operating_limit_iops = Some(4321.0);
    let page = html::sweeps(&layouts, None, "headroom run --sweep", "0.2.0");
    let table = page.split("id=\"what-the-curves-say\"").nth(1).unwrap().split("</table>").next().unwrap();
    let row = |name: &str| {
        let cell = format!("<td class=\"l\">{name}</td>");
        let cells = table.split(&cell).nth(1).unwrap_or_else(|| panic!("{name}: {table}"));
        cells.split("</tr>").next().unwrap().to_owned()
    };
    assert!(row("operating limit").contains("4,321\u{a0}IOPS"), "{table}");
    assert_eq!(row("throughput").matches("IOPS").count(), 2, "{table}");
    assert_eq!(row("unloaded latency").matches("the mean of the fastest step").count(), 2, "{table}");
}

#[test]
fn an_open_loop_shows_what_users_waited_and_a_warning_beside_it() {
    let page = run_pages::open_loop_page();
    let tiles = page.split("<section class=\"figures\"").nth(1).unwrap().split("</section>").next().unwrap();
    for words in ["p99 from intended start", "199 ms", "p99 of the service time is 160\u{a0}us"] {
        assert!(tiles.contains(words), "{words}: {tiles}");
    }
    assert!(tiles.contains("toned warning") && tiles.contains("with care"), "{tiles}");
    assert!(page.contains("199\u{a0}ms at p99 from the intended start"));
}

#[test]
fn findings_decide_whether_figures_are_valid() {
    let conditions = findings::RunConditions { memory_bytes: Some(16 << 30), ..Default::default() };
    let validity = |run: &RunResult| {
        let found = findings::findings(run, &conditions);
        match Validity::of_findings(&found) {
            Validity::Valid => "valid".to_owned(),
            Validity::WithCare(warning) => warning.to_owned(),
            Validity::Invalid(_) => "not valid".to_owned(),
            Validity::Unknown => "unknown".to_owned(),
        }
    };
    let mut run = runs_sample::oltp();
    run.target_bytes = 16 << 20;
    run.workload.shape.caching = workload::Caching::Buffered;
    let kinds = findings::findings(&run, &conditions);
    let first = kinds.iter().find(|finding| finding.weight == findings::Weight::Warning).unwrap();
    assert_eq!(validity(&run), first.kind.warning());
    run.read.count = 3;
    run.write.count = 0;
    assert_eq!(validity(&run), "not valid");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_result_stops_a_page(
        runs in prop::collection::vec(prop::collection::vec(large(), 0..9), 0..5),
        float in prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(0.0), Just(-1.0), 0.0..1e9_f64],
    ) {
        let results: Vec<RunResult> = runs.iter().map(|whole| odd_run(whole, &[float])).collect();
        let named = NamedRun::all(&results);
        let page = RunsPage { title: "", runs: &named, charts: &CHARTS, sentences: &[], validity: Validity::Unknown, command: "", version: "" };
        let page = html::runs(&page);
        prop_assert!(page.ends_with("</html>\n") && !page.contains("NaN"));
    }
}
