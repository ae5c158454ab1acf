//! `/api/v1/capabilities`: the known capabilities of each storage, their origin and their age.

use crate::about::measure_command;
use crate::answer::Refused;

use capability::{Capability, Curve};
use history::History;
use report::KnownStorage;
use serde_json::{Value, json};
use workload::{Durability, Shape};

/// Storages that are listed, the newest.
const LISTED_MAX: usize = 200;

/// The document.
pub(crate) fn capabilities(history: &History, now_ns: u64) -> Result<Value, Refused> {
    let found = history.newest_capabilities(LISTED_MAX)?;
    let seen = history.newest_seen(LISTED_MAX)?.into_iter().filter(|(_, seen)| !seen.is_empty()).map(
        |(target, seen)| {
            let known = KnownStorage {
                target,
                now_unix_ns: now_ns,
                capabilities: Vec::new(),
                seen: Some(seen),
                caps: None,
            };
            report::json::known_storage(&known)
        },
    );
    Ok(json!({
        "capabilities": found.iter().map(|one| capability(one, now_ns)).collect::<Vec<_>>(),
        "seen": seen.collect::<Vec<_>>(),
    }))
}

fn capability(capability: &Capability, now_ns: u64) -> Value {
    let of = |writes: u8| {
        let is_of_it =
            move |curve: &&Curve| curve.workload.write_percent == writes && is_cached(&curve.workload);
        capability.curves.iter().filter(is_of_it)
    };
    let rate = |writes: u8| of(writes).filter_map(Curve::iops_max).max_by(f64::total_cmp);
    let bandwidth = |writes: u8| {
        let bytes = |curve: &Curve| Some(curve.iops_max()? * f64::from(curve.workload.block_bytes));
        of(writes).filter_map(bytes).max_by(f64::total_cmp)
    };
    json!({
        "directory": capability.target.path,
        "mount": capability.target.mount,
        "from": capability.origin,
        "measured_unix_ns": capability.measured_unix_ns,
        "age_ns": now_ns.saturating_sub(capability.measured_unix_ns),
        "reads_per_second": rate(0),
        "writes_per_second": rate(100),
        "read_bandwidth": bandwidth(0),
        "write_bandwidth": bandwidth(100),
        "latency_ns": of(0).filter_map(Curve::latency_ns_min).min_by(f64::total_cmp),
        "refresh_command": measure_command(capability.target.mount.as_deref().unwrap_or(&capability.target.path)),
    })
}

/// Whether a write of the shape waits for nothing but the device.
fn is_cached(shape: &Shape) -> bool {
    shape.durability == Durability::Cached
}
