//! The known figures of a storage.

use super::plain::plain;
use crate::{KnownStorage, number};
use capability::{Binding, Bound, Origin, ResourceName};
use serde::Serialize;
use serde_json::Value;
use workload::{Cap, Unit};

/// Output of `headroom storage --json`, its `declare` and its `import`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "KnownStorage"))]
pub(super) struct Output<'a> {
    /// The directory that was named.
    target_path: &'a str,
    /// Its figures; of one name the best known comes first.
    resources: Vec<ResourceOutput>,
    /// Figures that an agent observed; null where none ever did.
    seen: Option<SeenOutput>,
    /// Burst credits of declared limits.
    credits: Vec<CreditOutput>,
    /// Limits that control groups of this host set on its devices, each for its own processes: operations or bytes a second.
    /// Left out in the page's API, which does not read them.
    #[serde(skip_serializing_if = "Option::is_none")]
    caps: Option<&'a [Cap]>,
    /// Observed figures that contradict another figure, sentences.
    contradictions: Vec<String>,
}

/// One figure of a storage.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Resource"))]
struct ResourceOutput {
    /// Name of the resource.
    name: ResourceName,
    /// The figure, in `unit`.
    value: f64,
    /// `1/s`, `B/s` or `ns`.
    unit: Unit,
    /// Whether the storage may give more.
    bound: Bound,
    /// Low end of its interval; null where there is none.
    low: Option<f64>,
    /// High end of its interval.
    high: Option<f64>,
    /// Mean bytes of the I/Os that it was found with; null where they were mixed.
    io_bytes: Option<f64>,
    /// Share of writes among them, percent.
    write_percent: Option<u8>,
    /// Where it comes from.
    from: Origin,
    /// When it was measured, declared or last seen, nanoseconds since 1970.
    at: u64,
    /// `at` as RFC 3339.
    at_time: Option<String>,
    /// Seconds since then.
    age_s: f64,
}

/// How long an agent watched a storage.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SeenPeriod"))]
struct SeenOutput {
    /// From when on the agent learned, nanoseconds since 1970.
    since: u64,
    /// Until when, nanoseconds since 1970.
    until: u64,
    /// Seconds of it that were observed.
    observed_s: f64,
    /// When the storage had changed and what was seen before was forgotten, nanoseconds since 1970; null where it never
    /// did.
    forgotten: Option<u64>,
}

/// The burst credits of a declared limit.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Credit"))]
struct CreditOutput {
    /// The limit: `operations` or `bandwidth`.
    of: Binding,
    /// I/Os or bytes a second while any credit is left.
    burst_per_s: f64,
    /// I/Os or bytes that are saved, at least: credits from before an agent watched are not known.
    saved: f64,
    /// The most that can be saved.
    saved_max: f64,
    /// How long `saved` lasts at the full rate, seconds.
    lasts_s: f64,
}

/// The known figures of a storage, and how long it was watched.
pub fn known_storage(known: &KnownStorage) -> Value {
    let resources = known.resources().into_iter().map(|one| {
        let (low, high) = one.interval.unzip();
        ResourceOutput {
            name: one.name,
            value: one.value,
            unit: one.unit,
            bound: one.bound,
            low,
            high,
            io_bytes: one.io_bytes,
            write_percent: one.write_percent,
            from: one.from,
            at: one.at_unix_ns,
            at_time: number::rfc3339(one.at_unix_ns),
            age_s: known.now_unix_ns.saturating_sub(one.at_unix_ns) as f64 / 1e9,
        }
    });
    let seen = known.seen.as_ref().map(|seen| SeenOutput {
        since: seen.since_unix_ns,
        until: seen.until_unix_ns,
        observed_s: seen.observed_s,
        forgotten: seen.forgotten_unix_ns,
    });
    let credits = known.credits().into_iter().map(|one| CreditOutput {
        of: one.of,
        burst_per_s: one.burst.per_second,
        saved: one.saved,
        saved_max: one.burst.saved_max,
        lasts_s: one.lasts_s,
    });
    plain(&Output {
        target_path: &known.target,
        resources: resources.collect(),
        seen,
        credits: credits.collect(),
        caps: known.caps.as_deref(),
        contradictions: known.contradictions(),
    })
}
