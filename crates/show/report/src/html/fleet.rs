//! A fleet as a page.

use super::page::{Banner, Tile, page, tiles};
use super::table::{Table, tag};
use crate::wording::fleet as wording;
use crate::{Tone, number};
use charts::escape;
use charts::words::capitalised;
use fleet::{Fleet, Host, Volume};

/// The ranking, and the volumes that are not ranked. `command` is the one that made it.
pub fn fleet(fleet: &Fleet, command: &str, version: &str) -> String {
    let (headline, tone) = wording::headline(fleet);
    let sentence = match fleet.incomplete {
        true => format!("Answer incomplete: {}. Hosts may be missing.", escape(&wording::incomplete(fleet))),
        false => format!("{} queries, all at one time; the least headroom first.", fleet.queries),
    };
    let at = (fleet.at_unix_s * 1e9) as u64;
    let banner = Banner {
        tone,
        subject: format!("fleet, {}", escape(&number::instant(at))),
        beside: String::new(),
        title: &escape(&headline),
        sentence,
        more: wording::unknown(fleet).map_or(String::new(), |unknown| {
            format!("<p class=\"small\">{}.</p>", escape(&capitalised(&unknown)))
        }),
    };
    let mut body = banner.html() + &tiles(&answer(fleet));
    if !fleet.volumes.is_empty() {
        body.push_str(&format!("<h2>Volumes</h2>\n{}", ranking(fleet).html()));
    }
    let soon = wording::running_out(fleet);
    if !soon.is_empty() {
        let table = Table::from_items(&soon)
            .text("volume", |volume| escape(&wording::place(volume)))
            .number("U, daily p95", |volume| {
                volume.trend.as_ref().map_or_else(String::new, |trend| number::share(trend.today))
            })
            .text("reaches 100 %", |volume| {
                volume.trend.as_ref().map_or_else(String::new, |trend| escape(&wording::trend(trend)))
            });
        body.push_str(&format!("<h2>At today's growth, exhausted within 90 days</h2>\n{}", table.html()));
    }
    body.push_str(&beside(fleet));
    page(&format!("Fleet: {headline}"), &body, &format!("Headroom {}: {}", escape(version), escape(command)))
}

/// The number of volumes that need action, the volume with the least headroom, and the volumes that are not judged.
fn answer(fleet: &Fleet) -> Vec<Tile> {
    let count = |value: usize| number::count(value as u64);
    let bad = fleet.needing_action();
    let tone = if bad == 0 { Tone::Neutral } else { Tone::Bad };
    let of = format!("of {} judged volumes of {} hosts", count(fleet.judged()), count(fleet.hosts));
    let mut all = vec![Tile { tone, ..Tile::new("need action", Some(count(bad)), of) }];
    let known = fleet.volumes.iter().filter_map(|volume| Some((volume.headroom?.plan, volume)));
    if let Some((_, volume)) = known.min_by(|a, b| a.0.total_cmp(&b.0)) {
        let note = format!("{}: {}", wording::place(volume), wording::verdict(volume));
        all.push(Tile::new("least headroom", Some(wording::headroom(volume)), note));
    }
    let unjudged = fleet.stale.len() + fleet.never_measured.len();
    let note = format!(
        "{} no longer, {} never measured",
        count(fleet.stale.len()),
        count(fleet.never_measured.len())
    );
    all.push(Tile::new("volumes not judged", Some(count(unjudged)), note));
    all
}

fn ranking(fleet: &Fleet) -> Table<(usize, &Volume)> {
    let at = fleet.at_unix_s;
    let time = |seconds: Option<f64>| {
        seconds.map_or_else(|| number::NONE.into(), |seconds| number::time(seconds * 1e9))
    };
    Table::from_items(fleet.volumes.iter().enumerate())
        .long("volume", |(rank, volume)| {
            over(&format!("{}. {}", rank + 1, wording::place(volume)), &volume.database)
        })
        .value("headroom", |(_, volume)| wording::headroom(volume))
        .number("U, and what binds", |(_, volume)| {
            let used = volume.utilisation.map_or_else(|| number::NONE.into(), number::share);
            over(&used, volume.binding.as_deref().unwrap_or(number::NONE))
        })
        .number("read, expected", move |(_, volume)| {
            over(&time(volume.read.latency_s), &time(volume.read.expected_s))
        })
        .number("commit, expected", move |(_, volume)| {
            over(&time(volume.commit.latency_s), &time(volume.commit.expected_s))
        })
        .text("verdict", |(_, volume)| tag(&wording::verdict(volume), wording::tone(volume)))
        .number("since", move |(_, volume)| wording::age(at, volume.since_unix_s))
        .number("measured", move |(_, volume)| wording::age(at, volume.measured_unix_s))
}

/// A figure or name, and below it a second one, smaller.
fn over(first: &str, second: &str) -> String {
    format!("{}<br><span class=\"small\">{}</span>", escape(first), escape(second))
}

fn beside(fleet: &Fleet) -> String {
    let mut html = String::new();
    let mut list = |title: &str, rows: Vec<(String, String)>| {
        if !rows.is_empty() {
            let table = Table::from_items(&rows)
                .text("host", |row| escape(&row.0))
                .long("volume, source", |row| escape(&row.1));
            html.push_str(&format!("<h2>{title}</h2>\n{}", table.html()));
        }
    };
    let host = |host: &Host| host.instance().to_owned();
    let stale = fleet.stale.iter().map(|one| {
        let age = wording::age(fleet.at_unix_s, Some(one.judged_unix_s));
        (host(&one.host), format!("{}, {}, judged {age} ago", one.mount, one.database))
    });
    list("Not judged any more", stale.collect());
    let never = fleet.never_measured.iter();
    list(
        "Never measured",
        never.map(|one| (host(&one.host), format!("{}, {}", one.mount, one.database))).collect(),
    );
    let silent = fleet.silent_sources.iter();
    list("Sources without data", silent.map(|one| (host(&one.host), one.source.clone())).collect());
    let without = fleet.without_database.iter();
    list("Agents that judge no database", without.map(|one| (host(one), String::new())).collect());
    html
}
