//! Words about a fleet.

use crate::{Tone, number};
use fleet::{Fleet, HeadroomOrigin, Latency, Trend, Unknown, Volume};

/// A volume that reaches its limit later is not listed.
const SOON_DAYS: u32 = 90;

/// "3 of 15 judged volumes of 3 hosts need action", and how bad that is.
pub(crate) fn headline(fleet: &Fleet) -> (String, Tone) {
    let (judged, bad) = (fleet.judged(), fleet.needing_action());
    let volume = if fleet.unknown() == Unknown::default() { "volume" } else { "judged volume" };
    let of = format!("{} of {}", number_of(judged, volume), number_of(fleet.hosts, "host"));
    match bad {
        _ if judged == 0 => ("no volume is judged".into(), Tone::Neutral),
        0 if fleet.is_whole() => (format!("none of {of} needs action"), Tone::Good),
        0 => (format!("none of {of} needs action"), Tone::Neutral),
        1 => (format!("1 of {of} needs action"), Tone::Bad),
        _ => (format!("{} of {of} need action", number::count(bad as u64)), Tone::Bad),
    }
}

/// "unknown: 999 volumes never measured, 1 volume not judged any more"; `None` where all is judged.
pub(crate) fn unknown(fleet: &Fleet) -> Option<String> {
    let Unknown { cannot_say, never_measured, stale, silent_sources } = fleet.unknown();
    let all = [
        (never_measured, "volume", "never measured"),
        (stale, "volume", "not judged any more"),
        (cannot_say, "volume", "with the verdict cannot say"),
        (silent_sources, "source", "without an answer"),
    ];
    let all = all.into_iter().filter(|(number, ..)| *number > 0);
    let all: Vec<String> =
        all.map(|(number, what, why)| format!("{} {why}", number_of(number, what))).collect();
    (!all.is_empty()).then(|| format!("unknown: {}", all.join(", ")))
}

/// "1 volume", "3 volumes".
fn number_of(number: usize, what: &str) -> String {
    format!("{} {what}{}", number::count(number as u64), if number == 1 { "" } else { "s" })
}

/// Why the answer is incomplete.
pub(crate) fn incomplete(fleet: &Fleet) -> String {
    if fleet.warnings.is_empty() {
        "the server says that some of its parts gave nothing".into()
    } else {
        fleet.warnings.join("; ")
    }
}

/// The verdict in words.
pub(crate) fn verdict(volume: &Volume) -> String {
    volume.verdict.map_or_else(|| "unknown".into(), |kind| kind.to_string())
}

pub(crate) fn tone(volume: &Volume) -> Tone {
    volume.verdict.map_or(Tone::Neutral, Tone::from_verdict)
}

/// "db1:9187 /data", with what was added to the host's labels.
pub(crate) fn place(volume: &Volume) -> String {
    let added: Vec<String> = volume.host.added().map(|(name, value)| format!("{name}={value}")).collect();
    let added = if added.is_empty() { String::new() } else { format!(" ({})", added.join(", ")) };
    format!("{} {}{added}", volume.host.instance(), volume.mount)
}

/// "3.50 x"; "~ 3.50 x" where it is only 1 / U.
pub(crate) fn headroom(volume: &Volume) -> String {
    volume.headroom.map_or_else(
        || number::NONE.into(),
        |headroom| {
            let times = super::headroom(volume.verdict, headroom.plan);
            match headroom.origin {
                HeadroomOrigin::Agent => times,
                HeadroomOrigin::Utilisation => format!("~ {times}"),
            }
        },
    )
}

/// How long ago.
pub(crate) fn age(at_unix_s: f64, then_unix_s: Option<f64>) -> String {
    then_unix_s.map_or_else(
        || number::NONE.into(),
        |then| match (at_unix_s - then).max(0.0) {
            seconds if seconds < 172_800.0 => number::duration(seconds.round()),
            seconds => format!("{} days", number::count((seconds / 86_400.0) as u64)),
        },
    )
}

/// "in 25 days (14 to 60)".
pub(crate) fn trend(trend: &Trend) -> String {
    let Some(reach) = trend.reach else { return "not within a year".into() };
    let latest = reach.latest.map_or_else(|| "perhaps never".into(), |latest| latest.to_string());
    format!("in {} days ({} to {latest}, 95 %)", reach.days, reach.earliest)
}

/// The volumes that run out soon, the first one first. Volumes that are exhausted now are in the ranking.
pub(crate) fn running_out(fleet: &Fleet) -> Vec<&Volume> {
    let days = |volume: &Volume| volume.trend.as_ref().and_then(|trend| trend.reach).map(|reach| reach.days);
    let soon = fleet.volumes.iter().filter(|volume| days(volume).is_some_and(|days| days <= SOON_DAYS));
    let mut soon: Vec<&Volume> = soon.collect();
    soon.sort_by_key(|volume| days(volume));
    soon
}

/// "9 days ago", "declared 9 days ago".
fn known(volume: &Volume, fleet: &Fleet) -> String {
    let age = age(fleet.at_unix_s, volume.measured_unix_s);
    match volume.known_from.as_deref() {
        None | Some("measured") => format!("{age} ago"),
        Some("gentle") => format!("gently, {age} ago"),
        Some(other) => format!("not: {other} {age} ago"),
    }
}

/// All figures of a volume, each with its name.
pub(crate) fn details(volume: &Volume, fleet: &Fleet) -> Vec<(&'static str, String)> {
    let share = |value: Option<f64>| value.map(number::share);
    let range = volume.headroom.and_then(|headroom| Some((headroom.low?, headroom.high?)));
    let range = range.map_or_else(String::new, |(low, high)| {
        format!(" ({} to {})", number::rate(low), number::times(high))
    });
    let latency = |latency: Latency| {
        let value = number::time(latency.latency_s? * 1e9);
        let expected =
            latency.expected_s.map(|expected| format!(", expected {}", number::time(expected * 1e9)));
        Some(format!("{value}{}", expected.unwrap_or_default()))
    };
    let confidence =
        volume.confidence.map(|level| ["low", "medium", "high"][usize::from(level.clamp(1, 3)) - 1]);
    let rows = [
        ("headroom", Some(format!("{}{range}", headroom(volume)))),
        ("utilisation", share(volume.utilisation)),
        ("binds", volume.binding.as_ref().map(|word| word.replace('-', " "))),
        ("outstanding I/Os", volume.outstanding.map(number::rate)),
        ("reads", latency(volume.read)),
        ("commits", latency(volume.commit)),
        ("the same verdict for", Some(age(fleet.at_unix_s, volume.since_unix_s))),
        ("confidence", confidence.map(str::to_owned)),
        ("incident", volume.incident_open.then(|| "open".to_owned())),
        ("measured", Some(known(volume, fleet))),
        (
            "contradicted",
            volume.contradicted.map(|times| {
                format!("the storage gives {times:.2} x that, seen for a day or longer: headroom measure --refresh")
            }),
        ),
        (
            "daily p95 of U",
            volume.trend.as_ref().map(|known| {
                let growth = number::share(known.per_day * 30.0);
                let width = number::share(known.per_day_half_width * 30.0);
                format!(
                    "{} today, {growth} +- {width} a month; 100 % {}",
                    number::share(known.today),
                    trend(known)
                )
            }),
        ),
    ];
    rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
