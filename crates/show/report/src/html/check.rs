use super::capability::{cost_model, curve_charts, facts};
use super::page::{Banner, chart, judged_by, legend, page};
use super::sentence::sentence;
use super::table::{Table, class, figure, tag};
use crate::estimate::{advice_note, remedy_rows};
use crate::files::{FileRow, worst_first};
use crate::headline::headlines;
use crate::volumes::{VolumeRow, volumes};
use crate::{Check, Tone, number, wording};
use charts::{CheckSeries, Ink, Mark, Size, escape, iops_over_time, latency_over_time};
use filestats::{Delta, Figure, IoClass};
use std::collections::BTreeSet;
use verdict::{Figures, Place};

/// The verdict as a page: the answer first, then its reasons.
pub fn check(check: &Check) -> String {
    let figures = Figures::from_moments(&check.observation.moments, check.capability.as_ref());
    let mut body = banner(check);
    body.push_str(&three_figures(check, &figures));
    body.push_str(&format!(
        "<section class=\"card next\"><b>Next step</b><p>{}</p></section>\n",
        sentence(&check.verdict.next_step)
    ));
    body.push_str(&other_volumes(check));
    body.push_str(&advice(check));
    body.push_str(&demand_on_curve(check, &figures));
    body.push_str(&over_time(check));
    body.push_str(&files(check));
    body.push_str(&evidence(check));
    if let Some(capability) = &check.capability {
        body.push_str("<h2>The storage</h2>\n");
        body.push_str(&facts(capability));
        body.push_str(&cost_model(capability));
    }
    body.push_str(HOW_TO_READ);
    let title = format!("{}: {}", check.verdict_title(), check.source);
    let footer = judged_by(&check.version, &check.service_level, &check.profile);
    page(&title, &body, &footer)
}

fn banner(check: &Check) -> String {
    let verdict = &check.verdict;
    let doubts: String = verdict.doubts.iter().map(|doubt| format!("<li>{}</li>", sentence(doubt))).collect();
    let doubts = if doubts.is_empty() { doubts } else { format!("<ul class=\"doubts\">{doubts}</ul>") };
    let banner = Banner {
        tone: Tone::from_verdict(verdict.verdict),
        subject: format!(
            "{} on {}, until {}",
            escape(&check.source),
            escape(&check.target),
            number::instant(check.observation.ended_unix_ns())
        ),
        beside: format!("confidence: <b>{}</b>", verdict.confidence),
        title: &check.verdict_title(),
        sentence: sentence(&verdict.summary),
        more: doubts,
    };
    banner.html()
}

fn three_figures(check: &Check, figures: &Figures) -> String {
    let one = |headline: &crate::headline::Headline| {
        let meter = headline.share.map_or(String::new(), |share| {
            let tone = match share {
                share if share >= 0.9 => Tone::Bad,
                share if share >= 0.7 => Tone::Warning,
                _ => Tone::Good,
            };
            let percent = (share * 100.0).clamp(0.0, 100.0);
            format!("<div class=\"meter {}\"><i style=\"width:{percent:.1}%\"></i></div>", class(tone))
        });
        format!(
            "<div class=\"card figure\"><div class=\"title\">{}</div><div class=\"value\">{}</div>{meter}\
             <div class=\"note\">{}</div></div>\n",
            headline.title,
            escape(headline.value.as_deref().unwrap_or("–")),
            sentence(&headline.note)
        )
    };
    let figures: String = headlines(check, figures).iter().map(one).collect();
    format!("<section class=\"figures\">\n{figures}</section>\n")
}

fn other_volumes(check: &Check) -> String {
    let others = &volumes(check)[1..];
    if others.is_empty() {
        return String::new();
    }
    let table = Table::from_items(others)
        .path("volume", |row| row.check.target.clone())
        .number("utilisation", |row| row.utilisation())
        .value("headroom", |row| row.headroom())
        .number("time waited", |row| row.waited())
        .text("verdict", |row| tag(&row.verdict_text(), row.tone()))
        .text("holds", |row| row.roles());
    let why = |row: &VolumeRow| {
        format!(
            "<p class=\"small\"><b>{}</b>: {}</p>\n",
            escape(&row.check.target),
            sentence(&row.verdict.summary)
        )
    };
    let why: String = others.iter().map(why).collect();
    format!(
        "<h2>The other volumes</h2>\n<p class=\"small\">The database\u{2019}s files lie on these as well. Each is judged \
         alone; the answer above is the one that binds.</p>\n{why}{}",
        table.html()
    )
}

fn advice(check: &Check) -> String {
    let Some(advice) = &check.advice else { return String::new() };
    let table = Table::from_items(remedy_rows(check))
        .text("", |remedy| escape(&remedy.what))
        .value("times today's demand", |remedy| remedy.carries.clone())
        .number("mean latency at today's demand", |remedy| escape(&remedy.latency))
        .text("", |remedy| if remedy.enough { "enough, with room".into() } else { String::new() });
    let note = escape(&advice_note(advice));
    format!("<h2>How far each remedy would carry</h2>\n<p class=\"small\">{note}</p>\n{}", table.html())
}

fn demand_on_curve(check: &Check, figures: &Figures) -> String {
    let Some(curve) = check.curve() else { return String::new() };
    let place = check.verdict.place.as_ref().filter(|place| place.curve == curve.workload);
    // The rate of a place is that of the reads; a curve with writes has the rate of both.
    let iops = figures.device_iops().filter(|_| curve.workload.write_percent > 0);
    let place =
        place.map(|place| Place { iops: iops.unwrap_or(place.iops).max(place.iops), ..place.clone() });
    let place = place.as_ref();
    let intro = if place.is_some() {
        "Where the demand lies on what this storage gave when it was measured."
    } else {
        "What this storage gave when it was measured. The demand cannot be placed on it."
    };
    format!(
        "<h2>Demand on the curve</h2>\n<p class=\"small\">{intro}</p>\n<div class=\"charts\">\n{}</div>\n",
        curve_charts(curve, place)
    )
}

fn over_time(check: &Check) -> String {
    let phases = check.phases.iter().map(|phase| (phase.name.as_str(), phase.from_unix_ns, phase.to_unix_ns));
    let series = CheckSeries::new(&check.observation, check.capability.as_ref(), phases);
    if series.instants.is_empty() {
        return String::new();
    }
    let reasons: BTreeSet<String> =
        series.instants.iter().filter_map(|instant| instant.gap).map(|reason| reason.to_string()).collect();
    let gap = format!("no figures: {}", reasons.into_iter().collect::<Vec<_>>().join(", "));
    let has_gap = series.instants.iter().any(|instant| instant.gap.is_some());
    let gap_entry = has_gap.then_some((Mark::Area, Ink::Gap, gap.as_str()));

    let has_reads = series.instants.iter().any(|instant| instant.read_ns.is_some());
    let class = if has_reads { IoClass::Read } else { IoClass::LogWrite };
    let each = if series.moments_each > 1 {
        format!("; each point stands for {} moments", series.moments_each)
    } else {
        String::new()
    };
    let bands_of = if has_reads { "reads" } else { "log writes" };
    let note = format!("Background: the bands of the profile “{}” for {bands_of}{each}.", check.profile.name);
    let mut latency_legend = vec![
        (Mark::Line, Ink::Read, "reads from storage"),
        (Mark::Line, Ink::Commit, "commits (write and sync)"),
    ];
    latency_legend.extend(gap_entry);
    let mut iops_legend = vec![
        (Mark::Line, Ink::Database, "the database's files"),
        (Mark::Line, Ink::Device, "the device, everybody's I/O"),
    ];
    iops_legend.extend(gap_entry);
    let latency = chart("Latency", &note, &legend(&latency_legend), Size::WIDE, |size| {
        latency_over_time(&series, &check.profile, class, size)
    });
    let iops =
        chart("I/Os a second", "", &legend(&iops_legend), Size::WIDE, |size| iops_over_time(&series, size));
    format!("<h2>Over time</h2>\n<div class=\"charts wide\">\n{latency}{iops}</div>\n")
}

fn files(check: &Check) -> String {
    let files = worst_first(check);
    if files.is_empty() {
        return String::new();
    }
    let or_dash = |text: Option<String>| text.unwrap_or(number::NONE.into());
    let per_second = |file: &FileRow, of: fn(&Delta) -> u64| {
        or_dash(file.delta().map(|delta| number::rate(of(delta) as f64 / delta.elapsed_s())))
    };
    let latency = |file: &FileRow, of: fn(&Delta) -> Figure<f64>| {
        or_dash(file.delta().map(|delta| figure(of(delta), number::millis)))
    };
    let table = Table::from_items(files)
        .text("database", |file| or_dash(file.row.file.database.as_deref().map(escape)))
        .path("file", |file| file.row.file.path.clone())
        .text("kind", |file| file.row.file.kind.to_string())
        .number("time waited", |file| or_dash(file.stall_share.map(number::share)))
        .number("reads/s", |file| per_second(file, |delta| delta.counters.read.count))
        .number("writes/s", |file| per_second(file, |delta| delta.counters.write.count))
        .number("read ms", |file| latency(file, Delta::read_latency_ns))
        .number("write ms", |file| latency(file, Delta::write_latency_ns))
        .number("sync ms", |file| latency(file, Delta::sync_latency_ns))
        .number("average KiB", |file| {
            number::or_dash(file.average_bytes(), |bytes| number::rate(bytes / 1024.0))
        })
        .text("band", band);
    format!(
        "<h2>Files</h2>\n<p class=\"small\">Over the whole observation, the file most waited for first. The band \
         grades what the file is waited for most.</p>\n{}",
        table.html()
    )
}

fn band(file: &FileRow) -> String {
    match (file.grade, file.row.interval.reason()) {
        (Some(grade), _) => {
            format!("{} {}s", tag(grade.band.name, Tone::from_rank(grade.band.rank, grade.bands)), grade.of)
        }
        (None, Some(reason)) => format!("<span class=\"why\">no figures: {reason}</span>"),
        (None, None) => number::NONE.into(),
    }
}

fn evidence(check: &Check) -> String {
    if check.verdict.evidence.is_empty() {
        return String::new();
    }
    let table = Table::from_items(&check.verdict.evidence)
        .long("what", |fact| escape(&fact.what))
        .value("observed", |fact| escape(&wording::evidence::observed(fact)))
        .number("expected", |fact| escape(&wording::evidence::expected(fact)))
        .value("ratio", |fact| wording::evidence::ratio(fact))
        .source("from", |fact| escape(&wording::evidence::sources(fact)))
        .text("as of", |fact| number::instant(fact.at));
    format!("<h2>Evidence</h2>\n{}", table.html())
}

const HOW_TO_READ: &str = "<h2>How to read this</h2>\n<div class=\"card\">\n\
<p><b>Outstanding I/Os (N)</b> is how many I/Os are in flight on average. It is the time waited divided by the \
time that passed (Little’s law), so it needs no sampling.</p>\n\
<p><b>The knee</b> is where latency begins to pay for throughput: the two dashed bounds cross there. Left of it, I/Os \
hardly wait for each other. Right of it, the rate still grows, but latency grows faster.</p>\n\
<p><b>The operating limit</b> is the highest rate by the cost model, of I/Os as these are: what utilisation calls \
100 %. <b>The highest rate</b> in a chart is the mean of the plateau of that curve alone.</p>\n\
<p><b>Utilisation</b> is how much of the storage the demand takes, counted in the resource that runs out first. \
<b>Headroom</b> is one divided by it.</p>\n\
<p><b>Compare the latency with the curve, not with a rule of thumb.</b> Close to the curve, the storage does what \
it can: ask for less or buy more. Far above the curve, something is wrong with the storage or a limit is in \
force.</p>\n\
<p><b>The large circle is the demand, the small one what the curve expects of it</b>, each moment by its own \
concurrency. A mean over quiet and busy moments need not lie on the curve itself.</p>\n\
<p><b>random 70/30 8 KiB</b> is 70 % reads and 30 % writes of 8 KiB at random places.</p>\n\
<p><b>A gap in a chart</b> is time that was not counted, as across a restart. It is not zero.</p>\n</div>\n";
