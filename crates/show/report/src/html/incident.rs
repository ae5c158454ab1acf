use super::page::{Banner, Tile, chart, legend, page, tiles};
use super::sentence::sentence;
use super::table::Table;
use crate::incident::{kinds, lasted, recurrence, utilisation};
use crate::{NumberedIncident, Tone, number, wording};
use charts::{IncidentMinute, IncidentSeries, Ink, Mark, Size, escape};
use incidents::{Detail, Incident, Readings};

/// An incident as a page: what happened, the minutes around it, and the evidence of its worst moment. `minutes` are kept readings
/// with when they ended, nanoseconds since 1970.
pub fn incident(numbered: &NumberedIncident, minutes: &[(u64, Readings)], version: &str) -> String {
    let NumberedIncident { id, incident } = numbered;
    let until = incident.ended_unix_ns.unwrap_or(incident.last_bad_unix_ns);
    let worst = incident.worst();
    let banner = Banner {
        tone: Tone::from_verdict(incident.verdict),
        subject: format!("{} on {}", escape(&incident.subject.database), escape(&incident.subject.mount)),
        beside: format!("incident <b>{id}</b>"),
        title: &incident.verdict.to_string(),
        sentence: worst.map_or(String::new(), |worst| sentence(&worst.summary)),
        more: String::new(),
    };
    let mut body = banner.html() + &tiles(&answer(incident, minutes));
    if let Some(worst) = worst {
        let step = sentence(&worst.next_step);
        body.push_str(&format!("<section class=\"card next\"><b>Next step</b><p>{step}</p></section>\n"));
    }
    body.push_str(&facts(numbered));
    body.push_str(&over_time(minutes, (incident.started_unix_ns, until)));
    body.push_str(&worst.map_or(String::new(), worst_moment));
    let title = format!("incident {id}: {} on {}", incident.verdict, incident.subject.mount);
    page(&title, &body, &format!("headroom {}", escape(version)))
}

/// How long it lasted, how much of the storage was in use, and how slow it became.
fn answer(incident: &Incident, minutes: &[(u64, Readings)]) -> Vec<Tile> {
    let began = format!("began {}", number::instant(incident.started_unix_ns));
    let mean = format!("{} on average; 100 % is the operating limit", utilisation(incident.utilisation_mean));
    let mut all = vec![
        Tile::new("lasted", Some(lasted(incident)), began),
        Tile::new("highest utilisation", incident.utilisation_max.map(number::share), mean),
    ];
    let slowest =
        minutes.iter().filter_map(|(_, readings)| Some((readings.latency_ns?, readings.expected_ns)));
    if let Some((latency_ns, expected_ns)) = slowest.max_by(|a, b| a.0.total_cmp(&b.0)) {
        let note = expected_ns.map_or("what is expected is unknown".to_owned(), |expected_ns| {
            format!("in its slowest minute, {} expected", number::time(expected_ns))
        });
        all.push(Tile::new("longest mean latency", Some(number::time(latency_ns)), note));
    }
    if let Some(recurrence) = recurrence(incident) {
        let times = number::count(incident.recurrence.repeated.saturating_add(1));
        all.push(Tile::new("times", Some(times), format!("the same burst again: {recurrence}")));
    }
    all
}

fn facts(numbered: &NumberedIncident) -> String {
    let incident = &numbered.incident;
    let mut rows = vec![
        ("began", number::instant(incident.started_unix_ns)),
        ("lasted", lasted(incident)),
        ("highest utilisation", utilisation(incident.utilisation_max)),
        ("mean utilisation", utilisation(incident.utilisation_mean)),
        ("verdicts that held", kinds(incident)),
    ];
    let also = incident.also_affected();
    if !also.is_empty() {
        rows.push(("also affects", also.join(", ")));
    }
    if let Some(recurrence) = recurrence(incident) {
        rows.push(("occurred", recurrence));
    }
    let table = Table::from_items(rows);
    let table = table.text("what", |(name, _)| (*name).to_owned()).long("value", |(_, value)| escape(value));
    format!("<h2>What happened</h2>\n{}", table.html())
}

fn over_time(minutes: &[(u64, Readings)], incident: (u64, u64)) -> String {
    let minute = |(ended_unix_ns, readings): &(u64, Readings)| IncidentMinute {
        ended_unix_ns: *ended_unix_ns,
        utilisation: readings.utilisation,
        latency_ns: readings.latency_ns,
        expected_ns: readings.expected_ns,
    };
    let series = IncidentSeries::new(minutes.iter().map(minute).collect(), incident);
    if series.is_empty() {
        return "<p class=\"small\">No minutes around it are kept: the history keeps a month of them.</p>\n"
            .into();
    }
    let utilisation_keys = [
        (Mark::Line, Ink::Demand, "share of the storage in use"),
        (Mark::Dashed, Ink::Knee, "the operating limit"),
    ];
    let latency_keys = [
        (Mark::Line, Ink::Read, "what sessions wait for longest"),
        (Mark::Dashed, Ink::Curve, "expected at this load"),
    ];
    let utilisation =
        chart("Utilisation", "", &legend(&utilisation_keys), Size::WIDE, |size| series.utilisation(size));
    let latency = chart("Latency", "", &legend(&latency_keys), Size::WIDE, |size| series.latency(size));
    format!("<h2>Over time</h2>\n<div class=\"charts wide\">\n{utilisation}{latency}</div>\n")
}

fn worst_moment(worst: &Detail) -> String {
    let at = number::instant(worst.at_unix_ns);
    let evidence = Table::from_items(&worst.evidence)
        .long("what", |fact| escape(&fact.what))
        .value("observed", |fact| escape(&wording::evidence::observed(fact)))
        .number("expected", |fact| escape(&wording::evidence::expected(fact)))
        .value("ratio", |fact| wording::evidence::ratio(fact))
        .source("from", |fact| escape(&wording::evidence::sources(fact)));
    let mut html = format!("<h2>The worst moment, until {at}</h2>\n{}", evidence.html());
    if !worst.files.is_empty() {
        let table = Table::from_items(&worst.files)
            .path("file", |file| file.path.clone())
            .number("I/Os a second", |file| number::rate(file.operations_per_s))
            .number("bytes a second", |file| number::bytes(file.bytes_per_s))
            .number("outstanding", |file| {
                file.outstanding.map_or_else(|| number::NONE.into(), |n| format!("{n:.2}"))
            });
        html.push_str(&format!("<h2>Files with the longest I/O time then</h2>\n{}", table.html()));
    }
    if !worst.processes.is_empty() {
        let table = Table::from_items(&worst.processes)
            .long("program", |one| escape(&format!("{} (pid {})", one.command, one.pid)))
            .text("device", |one| escape(one.device.as_deref().unwrap_or("the database's")))
            .number("part of its I/O", |one| number::share(one.share));
        html.push_str(&format!("<h2>Other programs then</h2>\n{}", table.html()));
    }
    if !worst.waits.is_empty() {
        let table = Table::from_items(&worst.waits)
            .long("wait", |wait| escape(&wait.event))
            .number("sessions", |wait| format!("{:.2}", wait.sessions));
        html.push_str(&format!("<h2>What sessions waited for then</h2>\n{}", table.html()));
    }
    html
}
