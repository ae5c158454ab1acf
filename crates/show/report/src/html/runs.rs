use super::page::{Tile, page, run_chart, tiles};
use super::sentence::sentence;
use super::table::Table;
use crate::{Tone, number, wording::members::MemberRow};
use charts::{Factor, Measure, NamedRun, RunChart, escape, labels, workload_words};
use findings::{Finding, Weight};
use workload::{LatencyFigures, LatencyHistogram, Response, RunResult};

/// The contents of a page of runs.
#[derive(Clone, Copy, Debug)]
pub struct RunsPage<'a> {
    /// The heading.
    pub title: &'a str,
    /// The runs to show.
    pub runs: &'a [NamedRun<'a>],
    /// The charts in their order; without any, those that suit the runs.
    pub charts: &'a [RunChart],
    /// The meaning of the results, one sentence each.
    pub sentences: &'a [String],
    /// Whether the figures may be used.
    pub validity: Validity<'a>,
    /// The command that repeats the runs; empty where it is not known.
    pub command: &'a str,
    /// Version of Headroom.
    pub version: &'a str,
}

/// Whether the figures of runs may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validity<'a> {
    /// It was not judged.
    #[default]
    Unknown,
    /// They may.
    Valid,
    /// They may with care: a warning, in a few words.
    WithCare(&'a str),
    /// They may not, for this reason.
    Invalid(&'a str),
}

impl<'a> Validity<'a> {
    /// The validity by findings, the worst of them first.
    pub fn of_findings(findings: &'a [Finding]) -> Validity<'a> {
        let warning = || findings.iter().find(|finding| finding.weight == Weight::Warning);
        match findings.iter().find(|finding| finding.invalidates()) {
            Some(finding) => Validity::Invalid(&finding.text),
            None => warning().map_or(Validity::Valid, |finding| Validity::WithCare(finding.kind.warning())),
        }
    }
}

/// More rows than this come after the charts.
const ROWS_FIRST: usize = 12;
/// No run began in the first year of the clock.
const YEAR_NS: u64 = 365 * 86_400 * 1_000_000_000;
/// Rows of a table; JSON has all.
const ROWS_MAX: usize = 1_000;

/// Runs as a page: results in words and numbers, charts, how to read them, and the command that repeats them.
pub fn runs(shown: &RunsPage) -> String {
    let chosen: Vec<RunChart> =
        if shown.charts.is_empty() { RunChart::fitting(shown.runs) } else { shown.charts.to_vec() };
    let mut body = opening(shown.title, &summary(shown.runs), shown.sentences);
    body.push_str(&tiles(&answer(shown)));
    let table = format!("<h2>Results</h2>\n{}", results(shown.runs));
    let charts: String = chosen.iter().map(|chart| run_chart(&chart.draw(shown.runs))).collect();
    let table = table + &members(shown.runs);
    let parts = if shown.runs.len() <= ROWS_FIRST { [table, charts] } else { [charts, table] };
    parts.iter().for_each(|part| body.push_str(part));
    body.push_str(&how_to_read(&chosen));
    body.push_str(&repeat(shown.command));
    page(shown.title, &body, &format!("Headroom {}", escape(shown.version)))
}

/// The runs of a matrix over two of its axes: IOPS, MiB/s, mean and p99 latency as heat maps, and the load
/// curves where the outstanding I/Os differ.
pub fn matrix(shown: &RunsPage, x: Factor, y: Factor) -> String {
    let values = [Measure::Iops, Measure::MibPerS, Measure::MeanLatency, Measure::P99Latency];
    let mut charts: Vec<RunChart> = values.map(|value| RunChart::HeatMap { x, y, value }).to_vec();
    if RunChart::fitting(shown.runs).contains(&RunChart::LoadCurve) {
        charts.push(RunChart::LoadCurve);
    }
    runs(&RunsPage { charts: &charts, ..*shown })
}

/// The heading, the answer in a sentence, and its meaning.
pub fn opening(title: &str, summary: &str, sentences: &[String]) -> String {
    let list: String = sentences.iter().map(|each| format!("<li>{}</li>\n", sentence(each))).collect();
    let list = if list.is_empty() { list } else { format!("<ul class=\"plain\">\n{list}</ul>\n") };
    format!(
        "<header class=\"card\">\n<h1>{}</h1>\n<p class=\"sentence\">{}</p>\n{list}</header>\n",
        escape(title),
        sentence(summary)
    )
}

/// The run with the highest rate, and whether it counts.
fn answer(shown: &RunsPage) -> Vec<Tile> {
    let rate = |run: &&NamedRun| run.result.iops();
    let best = shown.runs.iter().filter(|run| run.result.ios() > 0);
    let Some(best) = best.max_by(|a, b| rate(a).total_cmp(&rate(b))) else { return Vec::new() };
    let is_single = shown.runs.len() == 1;
    let latency = best.result.total_latency();
    let mean = latency.mean_ns().map(|ns| format!("{} mean", number::time(ns)));
    let mib_per_s = format!("{} MiB/s", number::rate(best.result.mib_per_s()));
    let of_best =
        if is_single { mib_per_s } else { format!("{mib_per_s}, {}", workload_words(&best.result)) };
    let title = if is_single { "IOPS" } else { "highest IOPS" };
    let mut all = vec![
        Tile::new(title, Some(number::rate(best.result.iops())), of_best),
        match from_intended_start(&best.result) {
            Some(waited) => {
                let service = known(&latency, 99.0)
                    .map_or("too few I/Os for p99".into(), |ns| format!("p99 of the service time is {ns}"));
                Tile::new("p99 from intended start", known(&LatencyFigures::from(&waited), 99.0), service)
            }
            None => {
                let note = mean.unwrap_or_else(|| "latency not reported".into());
                Tile::new("p99 latency", known(&latency, 99.0), note)
            }
        },
    ];
    match shown.validity {
        Validity::Unknown => {}
        Validity::Valid => {
            let note = "no finding contradicts the figures";
            all.push(Tile { tone: Tone::Good, ..Tile::new("validity", Some("valid".into()), note) });
        }
        Validity::WithCare(warning) => {
            let tile = Tile::new("validity", Some("with care".into()), warning);
            all.push(Tile { tone: Tone::Warning, ..tile });
        }
        Validity::Invalid(reason) => {
            all.push(Tile { tone: Tone::Bad, ..Tile::new("validity", Some("not valid".into()), reason) });
        }
    }
    all
}

fn summary(runs: &[NamedRun]) -> String {
    let Some(first) = runs.first() else { return "There is no run to show.".into() };
    let mut targets: Vec<&str> = runs.iter().map(|run| run.result.target.as_str()).collect();
    targets.sort_unstable();
    targets.dedup();
    let on = match targets[..] {
        [one] => one.to_owned(),
        ref several => format!("{} targets", several.len()),
    };
    let when = number::instant(first.result.started_unix_ns);
    // A simulation's clock begins at 1970.
    let is_simulated = first.result.started_unix_ns < YEAR_NS;
    let from = if when == number::NONE || is_simulated { String::new() } else { format!(", from {when}") };
    if let [run] = runs {
        let result = &run.result;
        let latency = result.total_latency();
        let mean = match latency.mean_ns() {
            Some(ns) => format!("{} mean", number::time(ns)),
            None if result.ios() == 0 => "no I/O completed".into(),
            None => "latency not reported".into(),
        };
        let p99 = known(&latency, 99.0).map_or(String::new(), |ns| format!(", {ns} at p99"));
        let waited =
            from_intended_start(result).and_then(|waited| known(&LatencyFigures::from(&waited), 99.0));
        let (of_service, p99) = match waited {
            Some(ns) => (" of service time", format!("{p99}, {ns} at p99 from the intended start")),
            None => ("", p99),
        };
        return format!(
            "{}: {} IOPS, {} MiB/s, {mean}{of_service}{p99}, over {} on {on}{from}",
            workload_words(result),
            number::rate(result.iops()),
            number::rate(result.mib_per_s()),
            number::duration(result.elapsed_s()),
        );
    }
    let seconds: f64 = runs.iter().map(|run| run.result.elapsed_s()).sum();
    let (count, time) = (number::count(runs.len() as u64), number::duration(seconds));
    format!("{count} runs, {time} of load on {on}{from}")
}

/// Reads and writes of an open loop from their intended start; `None` of closed loops.
fn from_intended_start(result: &RunResult) -> Option<LatencyHistogram> {
    result.response.as_ref().map(Response::total).filter(|both| both.count() > 0)
}

/// A percentile with enough I/Os above it, written.
fn known(latency: &LatencyFigures, percent: f64) -> Option<String> {
    latency.supported_percentile_ns(percent).map(|ns| number::time(ns as f64))
}

/// One row a run.
pub(super) fn results(runs: &[NamedRun]) -> String {
    let latency = |percent: f64| {
        move |(run, _): &(&NamedRun, String)| {
            known(&run.result.total_latency(), percent).unwrap_or(number::NONE.into())
        }
    };
    let time = |ns: Option<f64>| ns.map_or(number::NONE.into(), number::time);
    let table = Table::from_items(runs.iter().zip(labels(runs)).take(ROWS_MAX))
        .long("run", |(run, label)| {
            let ended = if run.result.interrupted { " <span class=\"why\">ended early</span>" } else { "" };
            name(&run.result, label) + ended
        })
        .value("IOPS", |(run, _)| number::rate(run.result.iops()))
        .number("mean", |(run, _)| time(run.result.mean_latency_ns()))
        .number("p50", latency(50.0))
        .number("p99", latency(99.0))
        .number("p99.9", latency(99.9))
        .number("longest", |(run, _)| time(run.result.total_latency().max_ns().map(|ns| ns as f64)))
        .number("MiB/s", |(run, _)| number::rate(run.result.mib_per_s()))
        .number("failed", |(run, _)| number::count(run.result.failed()));
    let left_out = match runs.len().saturating_sub(ROWS_MAX) {
        0 => String::new(),
        more => format!("<p class=\"small\">{} more runs are not listed.</p>\n", number::count(more as u64)),
    };
    table.html() + &left_out
}

/// The members of a layout and their work; a row for each member of each run.
fn members(runs: &[NamedRun]) -> String {
    if runs.iter().all(|run| run.result.members.is_empty()) {
        return String::new();
    }
    let rows = runs.iter().zip(labels(runs)).flat_map(|(run, label)| {
        let name = name(&run.result, &label);
        MemberRow::all(&run.result).map(move |member| (name.clone(), member))
    });
    let table = Table::from_items(rows.take(ROWS_MAX))
        .long("run", |(name, _)| name.clone())
        .text("member", |(_, member)| escape(member.path))
        .value("IOPS", |(_, member)| number::rate(member.iops))
        .number("share", |(_, member)| number::share(member.share))
        .number("MiB/s", |(_, member)| number::rate(member.mib_per_s))
        .number("outstanding", |(_, member)| number::rate(member.outstanding))
        .number("mean", |(_, member)| member.mean())
        .number("failed", |(_, member)| number::count(member.failed));
    format!("<h2>Members</h2>\n{}", table.html())
}

/// A run's label, or its workload in short.
fn name(result: &RunResult, label: &str) -> String {
    escape(&if label.is_empty() { workload_words(result) } else { label.to_owned() })
}

/// The exact command.
pub fn repeat(command: &str) -> String {
    if command.is_empty() {
        return String::new();
    }
    format!("<h2>Run it again</h2>\n<div class=\"card\"><pre>{}</pre></div>\n", escape(command))
}

/// How to read the charts of the page.
pub(super) fn how_to_read(charts: &[RunChart]) -> String {
    let texts = [
        (LOAD_CURVE, charts.contains(&RunChart::LoadCurve)),
        (HEAT_MAP, charts.iter().any(|chart| matches!(chart, RunChart::HeatMap { .. }))),
        (PERCENTILES, charts.contains(&RunChart::Percentiles)),
        (OVER_TIME, charts.contains(&RunChart::OverTime) || charts.contains(&RunChart::LatencyOverTime)),
        (HISTOGRAM, charts.contains(&RunChart::Histogram)),
    ];
    let texts: String = texts.into_iter().filter(|(_, shown)| *shown).map(|(text, _)| text).collect();
    format!("<h2>How to read this</h2>\n<div class=\"card\">\n{FIGURES}{texts}</div>\n")
}

const FIGURES: &str = "<p><b>A dash</b> stands for what is not known: a percentile needs ten I/Os that took longer, and of runs of other \
    tools it must have been reported. \
    <b>Mean</b>, <b>p99</b> and the others are latencies of reads and writes together, from the submission of an I/O to \
    its completion (the service time). From the <b>intended start</b>, the wait before the submission counts as well.</p>\n";
const LOAD_CURVE: &str = "<p><b>The load curve</b> is read from left to right: while IOPS rise and latency does not, the \
    storage takes more at once. Where IOPS stay level, this is the highest rate: \
    more outstanding I/Os add latency and hardly any throughput.</p>\n";
const HEAT_MAP: &str = "<p><b>The heat map</b> has a cell for each combination; on a narrow screen its numbers may be \
    missing, the table has them. A hatched cell was not run: it is not zero.</p>\n";
const PERCENTILES: &str = "<p><b>Percentiles</b> have an equal step for each nine, so that the slow few are as wide as \
    the many. A step upwards is a second way that I/Os take: a cache missed, a queue, a cap.</p>\n";
const OVER_TIME: &str = "<p><b>Over time</b>, look for a fall that stays (a cache or a credit is used up) and for teeth \
    (something else runs at times). Nothing completed in a slice: its rate is 0, its latency is not known.</p>\n";
const HISTOGRAM: &str = "<p><b>The histogram</b> shows humps: two humps are two kinds of I/O, such as hits and misses of \
    a cache, and their mean is neither.</p>\n";
