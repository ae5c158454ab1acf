use super::style::{Ink, Style};
use super::table::{Cell, Table};
use super::wrap::{clean, clip};
use crate::known_storage::KnownCredit;
use crate::{KnownStorage, number};
use capability::{Binding, Bound, Capability, Resource};
use seen::Seen;
use workload::{Cap, Unit};

/// A line for each figure, with where it comes from and how old it is.
pub fn known_storage(known: &KnownStorage, style: &Style) -> String {
    let target = clean(&known.target);
    let resources = known.resources();
    if resources.is_empty() {
        return format!(
            "nothing is known of the storage of {target}\n  measure it: headroom measure {target}\n  without load: headroom \
             agent, or headroom storage declare {target}\n{}",
            caps(known, style).iter().map(|line| format!("{line}\n")).collect::<String>()
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
    lines.extend(known.credits().iter().map(|credit| style.paint(Ink::Dim, &credit_line(credit))));
    lines.extend(caps(known, style).iter().map(|line| style.paint(Ink::Dim, line)));
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

/// A line on the burst credits of a declared volume.
fn credit_line(credit: &KnownCredit) -> String {
    let in_bytes = matches!(credit.of, Binding::Bandwidth | Binding::ReadBandwidth | Binding::WriteBandwidth);
    let figure = |value: f64| if in_bytes { number::bytes(value) } else { number::rate(value) };
    let (saved, most, rate) =
        (figure(credit.saved), figure(credit.burst.saved_max), figure(credit.burst.per_second));
    let lasts = number::duration(credit.lasts_s);
    format!("  burst credits of {}: at least {saved} of {most}; at {rate}/s that lasts {lasts}", credit.of)
}

/// A line for each cap, of each kind the lowest first.
fn caps(known: &KnownStorage, style: &Style) -> Vec<String> {
    const SHOWN_MAX: usize = 8;
    let mut caps: Vec<&Cap> = known.caps.iter().flatten().collect();
    caps.sort_by_key(|cap| (cap.kind, cap.per_second));
    let line =
        |cap: &&Cap| format!("  cap: {cap} on {}, for the processes of {}", cap.device, clean(&cap.origin));
    let mut lines: Vec<String> = caps.iter().take(SHOWN_MAX).map(line).collect();
    if caps.len() > SHOWN_MAX {
        lines.push(format!("  and {} more caps: --json has all", caps.len() - SHOWN_MAX));
    }
    lines.iter().map(|line| clip(line, style.columns())).collect()
}

/// Since when and how long it was watched.
fn seen_line(seen: &Seen) -> String {
    let watched = number::duration(seen.observed_s);
    let since = number::instant(seen.since_unix_ns);
    let forgotten = if seen.forgotten_unix_ns.is_some() { ", when the storage had changed" } else { "" };
    format!("  seen: {watched} since {since}{forgotten}")
}
