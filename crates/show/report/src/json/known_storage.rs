use crate::known_storage::KnownCredit;
use crate::{KnownStorage, number};
use capability::Resource;
use serde_json::{Value, json};

/// What is known of a storage: the figures, and how long it was watched.
pub fn known_storage(known: &KnownStorage) -> Value {
    let resource = |one: &Resource| {
        let (low, high) = one.interval.unzip();
        json!({
            "name": one.name, "value": one.value, "unit": one.unit, "bound": one.bound,
            "low": low, "high": high, "io_bytes": one.io_bytes, "write_percent": one.write_percent,
            "from": one.from, "at": one.at_unix_ns, "at_time": number::rfc3339(one.at_unix_ns),
            "age_s": known.now_unix_ns.saturating_sub(one.at_unix_ns) as f64 / 1e9,
        })
    };
    let seen = known.seen.as_ref().map(|seen| {
        json!({
            "since": seen.since_unix_ns, "until": seen.until_unix_ns, "observed_s": seen.observed_s,
            "forgotten": seen.forgotten_unix_ns,
        })
    });
    let credit = |one: &KnownCredit| {
        json!({
            "of": one.of, "burst_per_s": one.burst.per_second, "saved": one.saved,
            "saved_max": one.burst.saved_max, "lasts_s": one.lasts_s,
        })
    };
    json!({
        "target_path": known.target,
        "resources": known.resources().iter().map(resource).collect::<Vec<Value>>(),
        "seen": seen,
        "credits": known.credits().iter().map(credit).collect::<Vec<Value>>(),
        "contradictions": known.contradictions(),
    })
}
