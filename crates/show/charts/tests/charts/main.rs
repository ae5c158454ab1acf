//! Properties of every chart of runs.

mod odd_runs;
mod runs_sample;

use charts::{Chart, Factor, Measure, NamedRun, RunChart, Theme, png_file, svg_file};
use odd_runs::odd_run;
use proptest::prelude::*;
use workload::{RunResult, Shape};

const FACTORS: [Factor; 6] = [
    Factor::BlockSize,
    Factor::Outstanding,
    Factor::Threads,
    Factor::WriteShare,
    Factor::Pattern,
    Factor::Target,
];

fn all_charts() -> Vec<RunChart> {
    let mut charts: Vec<RunChart> = RunChart::NAMES.iter().map(|(_, chart)| *chart).collect();
    for (x, y) in [(0, 1), (2, 3), (4, 5)] {
        for value in [Measure::Iops, Measure::MibPerS, Measure::MeanLatency, Measure::P99Latency] {
            charts.push(RunChart::HeatMap { x: FACTORS[x], y: FACTORS[y], value });
        }
    }
    charts
}

/// Every place in the file where a number of pixels stands.
fn numbers_of(svg: &str) -> Vec<f64> {
    let attributes =
        [" x=\"", " y=\"", " width=\"", " height=\"", " x1=\"", " cx=\"", " cy=\"", " opacity=\""];
    let values = attributes.iter().flat_map(|attribute| svg.split(attribute).skip(1));
    values.map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
}

fn check_file(chart: &Chart) {
    for theme in [Theme::Light, Theme::Dark] {
        let svg = svg_file(chart, theme);
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"));
        assert!(!svg.contains("NaN") && !svg.contains("inf\"") && !svg.contains("var("), "{}", chart.title);
        assert!(numbers_of(&svg).iter().all(|number| number.is_finite()));
        assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
    }
}

#[test]
fn every_chart_of_realistic_runs_is_a_complete_file() {
    let (oltp, open) = ([runs_sample::oltp()], [runs_sample::open_loop()]);
    let (sweep, matrix) = (runs_sample::sweep(&[4096, 65_536], 1.0), runs_sample::matrix());
    for runs in [&oltp[..], &open, &sweep, &matrix] {
        for kind in all_charts() {
            check_file(&kind.draw(&NamedRun::all(runs)));
        }
    }
}

#[test]
fn a_file_says_what_was_run() {
    let mut run = runs_sample::oltp();
    run.target = "/data/<&\"日本".into();
    let chart = RunChart::Percentiles.draw(&NamedRun::all(&[run]));
    let svg = svg_file(&chart, Theme::Light);
    let metadata = svg.split("<metadata>").nth(1).and_then(|rest| rest.split("</metadata>").next()).unwrap();
    assert!(metadata.contains("random 70/30 8 KiB, 32 x 1 outstanding on /data/&lt;&amp;&quot;日本"));
    assert!(metadata.contains("60 s measured from 2026-11-21 09:00:00 UTC"));
    assert!(metadata.contains("&quot;block_bytes&quot;:8192"), "the whole workload");
    let png = png_file(&chart, Theme::Light).unwrap();
    let found = |text: &[u8]| png.windows(text.len()).any(|window| window == text);
    assert!(
        found(b"tEXtTitle\0Latency percentiles") && found(b"iTXtSettings\0"),
        "what is not Latin-1 is iTXt"
    );
}

/// Written by us, read by the png crate's decoder: pixels and text as they went in.
#[test]
fn a_picture_is_in_the_colours_of_its_theme() {
    let chart = RunChart::Histogram.draw(&NamedRun::all(&[runs_sample::oltp()]));
    for (theme, ground) in [(Theme::Light, [255, 255, 255]), (Theme::Dark, [0x17, 0x1b, 0x21])] {
        let file = png_file(&chart, theme).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(&file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        assert_eq!(pixels[..3], ground, "the corner is ground");
        let grounds = pixels.chunks_exact(3).filter(|pixel| **pixel == ground).count();
        let share = grounds as f64 / (pixels.len() / 3) as f64;
        assert!((0.5..0.99).contains(&share), "{share} of the picture is ground: text and bars are the rest");
        let texts = &reader.info().uncompressed_latin1_text;
        assert!(texts.iter().any(|text| text.keyword == "Software" && text.text == "Headroom"));
    }
}

#[test]
fn a_cell_that_was_not_run_is_hatched_and_not_zero() {
    let runs: Vec<RunResult> = runs_sample::sweep(&[4096, 8192], 1.0).into_iter().skip(1).collect();
    let chart = RunChart::HEAT_MAP.draw(&NamedRun::all(&runs));
    let svg = svg_file(&chart, Theme::Light);
    assert!(svg.contains("not run, or no I/O completed"));
    let whole =
        svg_file(&RunChart::HEAT_MAP.draw(&NamedRun::all(&runs_sample::sweep(&[4096], 1.0))), Theme::Light);
    assert!(!whole.contains("not run"), "nothing is missing, nothing is said of it");
    assert!(!svg.contains(">0</text>") || svg.contains("linear from 0"), "no cell says 0");
}

#[test]
fn percentiles_of_too_few_ios_are_dashed_with_a_note() {
    let dashed = "fewer than ten I/Os took longer";
    let page = |run: RunResult| svg_file(&RunChart::Percentiles.draw(&NamedRun::all(&[run])), Theme::Light);
    assert!(page(runs_sample::oltp()).contains(dashed));
    let empty = RunChart::Percentiles
        .draw(&NamedRun::all(&[RunResult::empty(Shape::random_read(8192).into(), String::new())]));
    assert!(empty.is_empty());
    assert_eq!(empty.notes, ["No I/O completed: there are no latencies."]);
}

#[test]
fn the_chart_of_an_open_loop_has_the_waits_of_its_users() {
    let svg =
        svg_file(&RunChart::Percentiles.draw(&NamedRun::all(&[runs_sample::open_loop()])), Theme::Light);
    assert!(svg.contains("reads, from their intended start"));
    assert!(svg.contains("queueing included"));
}

#[test]
fn compared_runs_are_named_after_their_groups() {
    let (before, after) = ([runs_sample::oltp()], [runs_sample::oltp()]);
    let mut runs = NamedRun::group("before", &before);
    runs.extend(NamedRun::group("after", &after));
    for kind in [RunChart::Percentiles, RunChart::OverTime, RunChart::Histogram] {
        let svg = svg_file(&kind.draw(&runs), Theme::Dark);
        assert!(svg.contains(">before</text>") && svg.contains(">after</text>"), "{kind}");
    }
}

#[test]
fn a_matrix_of_more_lines_than_colours_has_a_panel_for_each_setting() {
    let chart = RunChart::LoadCurve.draw(&NamedRun::all(&runs_sample::matrix()));
    let svg = svg_file(&chart, Theme::Light);
    assert!(
        svg.contains("Throughput: random, 0 % writes") && svg.contains("Latency: sequential, 30 % writes")
    );
    assert!(!chart.notes.iter().any(|note| note.contains("Not drawn")));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_result_stops_a_chart(
        runs in prop::collection::vec(prop::collection::vec(odd_runs::large(), 0..9), 0..5),
        float in prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(0.0), Just(-1.0), 0.0..1e9_f64],
    ) {
        let results: Vec<RunResult> = runs.iter().map(|whole| odd_run(whole, &[float])).collect();
        let shown = NamedRun::all(&results);
        for kind in all_charts() {
            check_file(&kind.draw(&shown));
        }
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
    let svg = svg_file(&RunChart::Percentiles.draw(&named), Theme::Light);
    assert!(svg.contains("&lt;script&gt;"), "the name is shown");
    assert!(!svg.contains("<script") && !svg.contains("<img"));
    assert!(!svg.contains('\u{202e}') && !svg.contains('\x1b'));
}

#[test]
fn the_chart_of_two_layouts_is_drawn_from_runs_too() {
    let layouts = runs_sample::layouts();
    let knees = layouts.each_ref().map(|sweep| sweep.saturation.knee.as_ref().unwrap().outstanding);
    assert!((15.5..16.5).contains(&knees[0]) && (47.0..49.0).contains(&knees[1]), "{knees:?}");
    let steps = layouts.into_iter().flat_map(|sweep| sweep.steps);
    let runs: Vec<RunResult> = steps.map(|step| step.result).collect();
    let chart = RunChart::Sweep.draw(&NamedRun::all(&runs));
    check_file(&chart);
    let svg = svg_file(&chart, Theme::Light);
    let texts = ["3.00 x throughput", "3.00 x outstanding", "critical 20 ms"];
    for knee in knees {
        assert!(svg.contains(&format!("knee {knee:.1}")), "no knee at {knee}");
    }
    // Three panels on one time axis.
    let panels = [">IOPS</text>", "mean latency", "outstanding I/Os (N)", "since the sweep began"];
    for text in texts.into_iter().chain(panels) {
        assert!(svg.contains(text), "no {text}");
    }
    let said = "stripe:64K against span: 3.00 x the throughput, saturates at 3.00 x the outstanding";
    assert!(chart.notes.iter().any(|note| note.starts_with(said)), "{:?}", chart.notes);
}

#[test]
fn a_title_is_the_configuration_and_not_a_number_of_runs() {
    let one = [runs_sample::oltp()];
    let words = charts::workload_words(&one[0]);
    assert_eq!(charts::title(&NamedRun::all(&one)).to_lowercase(), words.to_lowercase());
    let sweep = runs_sample::sweep(&[8192], 1.0);
    assert_eq!(charts::title(&NamedRun::all(&sweep)), "Random read 8 KiB by outstanding I/Os");
    let sizes = runs_sample::sweep(&[4096, 8192], 1.0);
    let expected = "Random read by block size and outstanding I/Os";
    assert_eq!(charts::title(&NamedRun::all(&sizes)), expected);
    assert_eq!(charts::title(&[]), "No runs");
}
