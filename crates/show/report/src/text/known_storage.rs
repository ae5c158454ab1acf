use super::style::{Ink, Style};
use super::table::{Cell, Table};
use super::wrap::{clean, clip};
use crate::{KnownStorage, number};
use capability::{Bound, Capability, Resource};
use seen::Seen;
use workload::Unit;

/// A line for each figure, with where it comes from and how old it is.
pub fn known_storage(known: &KnownStorage, style: &Style) -> String {
    let target = clean(&known.target);
    let resources = known.resources();
    if resources.is_empty() {
        return format!(
            "nothing is known of the storage of {target}\n  measure it: headroom measure {target}\n  without load: headroom \
             agent, or headroom capability declare {target}\n"
        );
    }
    let mut lines = vec![style.heading(&clip(&format!("Capability of {target}"), style.columns()))];
    let table = Table::from_items(&resources)
        .left("", |one| one.name.to_string())
        .right("", |one| Cell::inked(value(one), Ink::Bold))
        .right("size", |one| one.io_bytes.map_or(String::new(), number::bytes))
        .right("writes", |one| one.write_percent.map_or(String::new(), |percent| format!("{percent} %")))
        .left("from", |one| one.from.to_string())
        .right("age", |one| age(known.now_unix_ns.saturating_sub(one.at_unix_ns)));
    lines.extend(table.lines(style));
    lines.extend(known.seen.iter().map(|seen| style.paint(Ink::Dim, &seen_line(seen))));
    if known.capabilities.iter().any(Capability::is_preliminary) {
        lines.push(style.paint(Ink::Dim, &clip(PRELIMINARY, style.columns())));
    }
    let contradictions = known.contradictions();
    lines.extend(
        contradictions.iter().flat_map(|text| style.paragraph(Ink::Tone(crate::Tone::Warning), text, 2, 2)),
    );
    lines.join("\n") + "\n"
}

/// Where a measurement was ended early.
const PRELIMINARY: &str = "  measured: preliminary, only the points that decide a first verdict";

fn value(one: &Resource) -> String {
    let figure = match one.unit {
        Unit::Ns => number::time(one.value),
        Unit::BytesPerSecond => format!("{}/s", number::bytes(one.value)),
        _ => format!("{}/s", number::rate(one.value)),
    };
    match one.bound {
        Bound::Exact => figure,
        Bound::AtLeast => format!("at least {figure}"),
    }
}

fn age(ns: u64) -> String {
    let minutes = ns / 60_000_000_000;
    match minutes {
        0..=119 => format!("{minutes} min"),
        120..=2_879 => format!("{} h", minutes / 60),
        _ => format!("{} d", minutes / 1_440),
    }
}

/// Since when and how long it was watched.
fn seen_line(seen: &Seen) -> String {
    let watched = number::duration(seen.observed_s);
    let since = number::instant(seen.since_unix_ns);
    let forgotten = if seen.forgotten_unix_ns.is_some() { ", when the storage had changed" } else { "" };
    format!("  seen: {watched} since {since}{forgotten}")
}
