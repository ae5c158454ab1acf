//! The volumes of a fleet: a line each, the worst first.

use super::style::{Ink, Style};
use super::table::{Cell, Table};
use super::wrap::clean;
use crate::wording::fleet as wording;
use crate::{Tone, number};
use fleet::{Fleet, Host, Latency, Volume, VolumeIncidents};

/// Entries that each list beside the ranking names, at most.
const NAMED_MAX: usize = 10;

/// The worst `shown` volumes, and those that are not ranked.
pub fn fleet(fleet: &Fleet, shown: usize, style: &Style) -> String {
    let mut lines = headline(fleet, style);
    if !fleet.volumes.is_empty() {
        lines.push(String::new());
        lines.extend(ranking(fleet, shown).lines(style));
        let left = fleet.volumes.len().saturating_sub(shown);
        if left > 0 {
            lines.extend(
                style.note(&format!(
                    "{} more have more headroom; --top shows more",
                    number::count(left as u64)
                )),
            );
        }
    }
    lines.extend(growing(fleet, style));
    lines.extend(beside(fleet, style));
    lines.join("\n") + "\n"
}

/// The volumes of a host, each with all that is known of it.
pub fn fleet_host(fleet: &Fleet, style: &Style) -> String {
    let mut lines = headline(fleet, style);
    for volume in &fleet.volumes {
        lines.push(String::new());
        lines.push(style.paint(Ink::Tone(wording::tone(volume)), &wording::verdict(volume).to_uppercase()));
        lines.push(format!("{} on {}", clean(&volume.database), clean(&wording::place(volume))));
        let rows = wording::details(volume, fleet);
        lines.extend(
            Table::from_items(&rows).left("", |row| row.0).left("", |row| row.1.clone()).lines(style),
        );
    }
    lines.extend(beside(fleet, style));
    lines.join("\n") + "\n"
}

/// Where incidents were open, and for how long.
pub fn fleet_incidents(rows: &[VolumeIncidents], within_s: u64, fleet: &Fleet, style: &Style) -> String {
    let mut lines = incomplete(fleet, style);
    let within = number::duration(within_s as f64);
    if rows.is_empty() {
        let known = if fleet.hides_incidents() {
            "no incident is known to have been open"
        } else {
            "no incident was open"
        };
        lines.push(format!("{known} within {within}"));
    } else {
        let table = Table::from_items(rows)
            .left("now", |row| match row.is_open {
                Some(true) => Cell::inked("open", Ink::Tone(Tone::Bad)),
                Some(false) => "closed".into(),
                None => "unknown".into(),
            })
            .right("open for", |row| number::duration(row.open_s))
            .left("verdict now", |row| {
                Cell::inked(wording::verdict(&row.volume), Ink::Tone(wording::tone(&row.volume)))
            })
            .left("volume", |row| wording::place(&row.volume))
            .left("database", |row| row.volume.database.clone());
        lines.push(style.heading(&format!("Incidents within {within}")));
        lines.extend(table.lines(style));
        lines.extend(style.note("headroom history incidents on the host shows one with its evidence"));
    }
    lines.extend(lists(&[stale(fleet), silent_sources(fleet)], style));
    lines.join("\n") + "\n"
}

fn headline(fleet: &Fleet, style: &Style) -> Vec<String> {
    let (text, tone) = wording::headline(fleet);
    let text = wording::unknown(fleet).map_or(text.clone(), |unknown| format!("{text}; {unknown}"));
    let mut lines = style.paragraph(Ink::Tone(tone), &text, 0, 6);
    lines.extend(incomplete(fleet, style));
    lines
}

fn incomplete(fleet: &Fleet, style: &Style) -> Vec<String> {
    if !fleet.incomplete {
        return Vec::new();
    }
    let mark = style.paint(Ink::Tone(Tone::Bad), "answer incomplete: ");
    let mut lines = style.marked(&mark, &wording::incomplete(fleet), "answer incomplete: ".len(), 4);
    lines.extend(style.note("hosts may be missing; that none of them is listed says nothing about them"));
    lines
}

fn ranking(fleet: &Fleet, shown: usize) -> Table<(usize, &Volume)> {
    let at = fleet.at_unix_s;
    Table::from_items(fleet.volumes.iter().take(shown).enumerate())
        .right("", |(rank, _)| (rank + 1).to_string())
        .right("headroom", |(_, volume)| wording::headroom(volume))
        .left("verdict", |(_, volume)| {
            Cell::inked(wording::verdict(volume), Ink::Tone(wording::tone(volume)))
        })
        .left("volume", |(_, volume)| wording::place(volume))
        .right("U", |(_, volume)| volume.utilisation.map_or_else(|| number::NONE.into(), number::share))
        .left("latency", |(_, volume)| latency(volume))
        .right("since", move |(_, volume)| wording::age(at, volume.since_unix_s))
        .left("binds", |(_, volume)| {
            volume.binding.clone().map_or_else(|| number::NONE.into(), |word| word.replace('-', " "))
        })
        .right("measured", move |(_, volume)| wording::age(at, volume.measured_unix_s))
        .left("database", |(_, volume)| volume.database.clone())
        .naming_left_out()
}

fn latency(volume: &Volume) -> String {
    let Some((what, latency)) = volume.worst_latency() else { return number::NONE.into() };
    let Latency { latency_s: Some(latency_s), .. } = latency else { return number::NONE.into() };
    let times = latency.times().map_or_else(String::new, |times| format!(" ({})", number::times(times)));
    format!("{what} {}{times}", number::time(latency_s * 1e9))
}

/// Volumes that reach their limit within 90 days.
fn growing(fleet: &Fleet, style: &Style) -> Vec<String> {
    let soon: Vec<&Volume> = wording::running_out(fleet);
    if !fleet.has_trends && !fleet.volumes.is_empty() {
        return style.note("no trend: no daily percentiles are kept; headroom fleet rules writes the rule");
    }
    if soon.is_empty() {
        return Vec::new();
    }
    let table = Table::from_items(soon.iter().take(NAMED_MAX))
        .left("volume", |volume| wording::place(volume))
        .right("U, daily p95", |volume| {
            volume.trend.as_ref().map_or_else(String::new, |trend| number::share(trend.today))
        })
        .left("reaches 100 %", |volume| volume.trend.as_ref().map_or_else(String::new, wording::trend))
        .left("database", |volume| volume.database.clone());
    let mut lines = vec![String::new(), style.heading("At today's growth, exhausted within 90 days")];
    lines.extend(table.lines(style));
    lines
}

/// A heading, and the lines below it.
type List = (&'static str, Vec<String>);

fn beside(fleet: &Fleet, style: &Style) -> Vec<String> {
    let never = fleet.never_measured.iter();
    let never = never.map(|one| format!("{} {} ({})", one.host.instance(), one.mount, one.database));
    let without = fleet.without_database.iter().map(Host::instance).map(str::to_owned);
    let all = [
        stale(fleet),
        ("Never measured: headroom measure DIRECTORY on the host", never.collect()),
        silent_sources(fleet),
        ("Agents that judge no database", without.collect()),
    ];
    lists(&all, style)
}

fn stale(fleet: &Fleet) -> List {
    let stale = fleet.stale.iter().map(|one| {
        let age = wording::age(fleet.at_unix_s, Some(one.judged_unix_s));
        format!("{} {} ({}), judged {age} ago", one.host.instance(), one.mount, one.database)
    });
    ("Not judged any more", stale.collect())
}

fn silent_sources(fleet: &Fleet) -> List {
    let silent = fleet.silent_sources.iter();
    (
        "Sources that give nothing",
        silent.map(|one| format!("{} ({})", one.host.instance(), one.source)).collect(),
    )
}

fn lists(lists: &[List], style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    for (title, all) in lists.iter().filter(|(_, all)| !all.is_empty()) {
        let count = |number: usize| number::count(number as u64);
        lines.push(String::new());
        lines.push(style.heading(&format!("{title} ({})", count(all.len()))));
        lines.extend(all.iter().take(NAMED_MAX).map(|one| format!("  {}", clean(one))));
        if all.len() > NAMED_MAX {
            lines.push(format!("  and {} more; --json lists all", count(all.len() - NAMED_MAX)));
        }
    }
    lines
}
