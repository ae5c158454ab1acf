mod moment;

use analyze::{Analysis, Analyzer, Gap, Settings, limits};
use filestats::{FileSeries, Profile, Rules, ServiceLevel};
use history::{History, Series, SourceInfo};
use moment::Moment;
use report::{AnalysisReport, ChartSubject, HistoryChart};
use std::path::{Path, PathBuf};
use terminal::{Done, FINE, Failure, Output, interrupt, kept, no_answer, page, problem_found};

/// Arguments of `headroom history analyze`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom history analyze                          the last 7 days of what was recorded
  headroom history analyze --from -2h               the last two hours
  headroom history analyze --from 2026-11-20 --to '2026-11-20 06:00' --html night.html
  headroom history analyze --source postgres --service-level 5/5/2 --bands nvme

Exit codes: 0 no problems, 1 problems, 2 wrong usage, 3 nothing can be said.")]
pub struct AnalyzeArgs {
    /// Only this source, as the history names it, or sources with this in their name; several may be given
    #[arg(long, value_name = "SOURCE")]
    source: Vec<String>,
    /// Begin: -2h, -7d, 2026-11-20, '2026-11-20 14:00' (UTC) or RFC 3339 [default: 7 days before --to, or the first capture]
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    from: Option<Moment>,
    /// End, in the same forms, or now [default: the newest capture]
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    to: Option<Moment>,
    /// Latency objective: oltp, warehouse, or read/write/log milliseconds
    #[arg(long, value_name = "LEVEL", default_value = "oltp")]
    service_level: ServiceLevel,
    /// Scale of latency bands
    #[arg(long, value_name = "NAME", default_value = "randal", value_parser = Profile::named)]
    bands: Profile,
    /// Print the findings as comma-separated values
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write a page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Files of findings that a page draws.
const CHARTS_MAX: usize = 16;

/// `headroom history analyze`: what a stored stretch shows, and what to examine next.
pub fn run(args: &AnalyzeArgs, history: Option<&Path>, out: &mut Output) -> Done {
    page::check(args.html.as_deref())?;
    let history = kept::open(history)?;
    let sources = chosen(&history, &args.source)?;
    let settings = stretch(args, &sources)?;
    interrupt::install();
    let mut analysed = AnalysisReport {
        from_unix_ns: settings.from_unix_ns,
        until_unix_ns: settings.until_unix_ns,
        service_level: settings.service_level,
        profile: settings.profile,
        sources: Vec::new(),
        gaps: Vec::new(),
        version: env!("CARGO_PKG_VERSION").into(),
    };
    let (own, other) = gaps(&history, &sources, &settings)?;
    if args.source.is_empty() {
        analysed.gaps = other;
    }
    let mut charts = args.html.is_some().then(Vec::new);
    for source in &sources {
        let gaps = own.iter().filter(|gap| gap.source == source.source).cloned().collect();
        let number = analysed.sources.len();
        let kinds = charts.as_mut().map(|charts| (number, charts));
        if let Some(analysis) = analyze_source(&history, (&source.source, gaps), &settings, kinds, out)? {
            analysed.sources.push(analysis);
        }
    }
    if analysed.sources.is_empty() {
        return Err(nothing_there(&sources, &settings));
    }
    if let Some(mut charts) = charts {
        charts.extend(file_charts(&history, &analysed, &settings)?);
        let made = || report::html::analysis(&analysed, &charts, &page::command_line());
        page::write(args.html.as_deref(), made, out)?;
    }
    out.answer(
        |style| {
            if args.csv { report::csv::analysis(&analysed) } else { report::text::analysis(&analysed, style) }
        },
        || report::json::analysis(&analysed),
    );
    Ok(match (analysed.says_anything(), analysed.is_bad()) {
        (false, _) => no_answer(),
        (true, true) => problem_found(),
        (true, false) => FINE,
    })
}

/// The requested sources; all where none was requested.
fn chosen(history: &History, wanted: &[String]) -> Result<Vec<SourceInfo>, Failure> {
    let all = history.sources()?;
    if all.is_empty() {
        return Err(Failure::new(format_args!("the history {} holds no captures", history.path().display()))
            .with_remedy("headroom agent --record-only --source SOURCE, for some hours"));
    }
    let mut chosen: Vec<SourceInfo> = Vec::new();
    for name in wanted {
        let exact = |source: &&SourceInfo| source.source == *name;
        let part = |source: &&SourceInfo| source.source.contains(name.trim_end_matches(':'));
        let mut found: Vec<SourceInfo> = all.iter().filter(exact).cloned().collect();
        if found.is_empty() {
            found = all.iter().filter(part).cloned().collect();
        }
        if found.is_empty() {
            let names: Vec<&str> = all.iter().map(|source| source.source.as_str()).collect();
            return Err(Failure::new(format_args!("no captures of a source '{name}' are kept"))
                .with_fact(format_args!("kept: {}", names.join(", ")))
                .with_remedy("one of these names, or a part of one"));
        }
        chosen.extend(found);
    }
    if wanted.is_empty() {
        chosen = all;
    }
    chosen.sort_by(|a, b| a.source.cmp(&b.source));
    chosen.dedup();
    Ok(chosen)
}

fn stretch(args: &AnalyzeArgs, sources: &[SourceInfo]) -> Result<Settings, Failure> {
    let now = jiff::Timestamp::now();
    let newest = sources.iter().map(|source| source.last_unix_ns).max().unwrap_or(0);
    let until_unix_ns = args.to.map_or(newest, |to| to.unix_ns(now));
    let oldest = sources.iter().map(|source| source.first_unix_ns).min().unwrap_or(0);
    let week = until_unix_ns.saturating_sub(7 * limits::DAY).max(oldest);
    let from_unix_ns = args.from.map_or(week, |from| from.unix_ns(now));
    if from_unix_ns >= until_unix_ns {
        let at = kept::format_time;
        return Err(Failure::usage(format_args!(
            "--from {} is not before --to {}",
            at(from_unix_ns),
            at(until_unix_ns)
        )));
    }
    Ok(Settings {
        from_unix_ns,
        until_unix_ns,
        service_level: args.service_level,
        profile: args.bands,
        rules: Rules::default(),
    })
}

/// Analyses one source with its gaps, file by file; `None` where it has fewer than two captures in the period. Adds charts of
/// its files by kind to `charts`, under the given number of the source.
fn analyze_source(
    history: &History,
    (source, gaps): (&str, Vec<Gap>),
    settings: &Settings,
    charts: Option<(usize, &mut Vec<HistoryChart>)>,
    out: &mut Output,
) -> Result<Option<Analysis>, Failure> {
    let series = history.series(source, settings.from_unix_ns, settings.until_unix_ns)?;
    if series.course.ticks.len() < 2 {
        return Ok(None);
    }
    let hours = hours_of(&series);
    let before = settings.from_unix_ns.saturating_sub(limits::DAYS_BEFORE * limits::DAY);
    let last = settings.from_unix_ns.saturating_sub(1);
    let earlier = history.hourly(source, before, last, |hour| hours[hour as usize % 24])?;
    let mut analyzer = Analyzer::new(&series.course, Some(&earlier.course), settings);
    for file in 0..series.files() {
        if interrupt::requested() {
            return Err(Failure::new("ended before everything was read"));
        }
        out.progress(format_args!("{source}: file {} of {}", file + 1, series.files()), None);
        for course in history.file_course(&series, file, settings.rules)? {
            let before = before_it(history, &earlier, &course, settings.rules)?;
            analyzer.add_file(&course, before.as_ref());
        }
    }
    analyzer.add_waits(&history.wait_courses(&series, settings.rules)?);
    analyzer.set_gaps(gaps);
    if let Some((number, charts)) = charts {
        for (kind, steps) in analyzer.kinds() {
            charts.push(HistoryChart::new(number, ChartSubject::Kind(kind), &series.course, kind, &steps));
        }
    }
    let mut analysis = analyzer.finish();
    for at in 0..analysis.busiest.len() {
        let busy = &analysis.busiest[at];
        let Some(file) = series.find(&busy.file.instance, &busy.file.path) else { continue };
        if let Some(latencies) = history.file_latencies(&series, file, busy.meaning)? {
            analysis.add_latencies(at, &latencies);
        }
    }
    Ok(Some(analysis))
}

/// The hours of the day (UTC) that the stretch has.
fn hours_of(series: &Series) -> [bool; 24] {
    let mut hours = [false; 24];
    for tick in &series.course.ticks {
        hours[(tick.taken_unix_ns / limits::HOUR % 24) as usize] = true;
    }
    hours
}

/// The file's series before the stretch, where that can be compared.
fn before_it(
    history: &History,
    earlier: &Series,
    course: &FileSeries,
    rules: Rules,
) -> Result<Option<FileSeries>, Failure> {
    if !Analyzer::wants_earlier(course) {
        return Ok(None);
    }
    let Some(file) = earlier.find(&course.file.instance, &course.file.path) else { return Ok(None) };
    let found = history.file_course(earlier, file, rules)?;
    Ok(found.into_iter().find(|before| before.meaning == course.meaning))
}

/// The recorder's gaps in the stretch: those of these sources, and those of names that no capture has.
fn gaps(
    history: &History,
    sources: &[SourceInfo],
    settings: &Settings,
) -> Result<(Vec<Gap>, Vec<Gap>), Failure> {
    let in_stretch = |gap: &history::Gap| {
        gap.from_unix_ns < settings.until_unix_ns
            && gap.until_unix_ns.is_none_or(|until| until > settings.from_unix_ns)
    };
    let gaps = history.gaps()?.into_iter().filter(in_stretch).map(|gap| Gap {
        source: gap.source,
        from_unix_ns: gap.from_unix_ns,
        until_unix_ns: gap.until_unix_ns,
        reason: gap.reason,
    });
    Ok(gaps.partition(|gap| sources.iter().any(|source| source.source == gap.source)))
}

fn nothing_there(sources: &[SourceInfo], settings: &Settings) -> Failure {
    let at = kept::format_time;
    let failure = Failure::new(format_args!(
        "no source has two captures from {} to {}",
        at(settings.from_unix_ns),
        at(settings.until_unix_ns)
    ));
    let fact = |failure: Failure, source: &SourceInfo| {
        failure.with_fact(format_args!(
            "{}: {} captures, {} to {}",
            source.source,
            source.captures,
            at(source.first_unix_ns),
            at(source.last_unix_ns)
        ))
    };
    let failure = sources.iter().take(10).fold(failure, fact);
    failure.with_remedy("another --from and --to, or headroom agent --record-only for a while")
}

/// The files of the worst findings and the busiest ones once more, for their charts.
fn file_charts(
    history: &History,
    analysed: &AnalysisReport,
    settings: &Settings,
) -> Result<Vec<HistoryChart>, Failure> {
    let mut charts = Vec::new();
    let mut last: Option<(usize, Series)> = None;
    let mut wanted = report::html::files_worth_a_chart(&analysed.sources, CHARTS_MAX);
    wanted.sort_by_key(|(source, _)| *source);
    for (source, of) in wanted {
        let analysis = &analysed.sources[source];
        let name = match of {
            ChartSubject::Finding(number) => {
                let finding = &analysis.findings[number];
                finding.instance.as_deref().zip(finding.path.as_deref())
            }
            ChartSubject::Busy(number) => Some(analysis.busiest[number].file.key()),
            ChartSubject::Kind(_) => None,
        };
        if last.as_ref().is_none_or(|(at, _)| *at != source) {
            let series = history.series(&analysis.source, settings.from_unix_ns, settings.until_unix_ns)?;
            last = Some((source, series));
        }
        let (Some((instance, path)), Some((_, series))) = (name, &last) else { continue };
        let Some(file) = series.find(instance, path) else { continue };
        let mut files = history.file_course(series, file, settings.rules)?;
        if let Some(file) = files.pop() {
            charts.push(HistoryChart::new(source, of, &series.course, file.file.kind, &file.steps));
        }
    }
    Ok(charts)
}
