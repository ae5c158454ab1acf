//! JSON for programs. Keys are stable and documented in docs/reference/json.md; a figure that is not known is
//! `{"unknown": "<reason>"}` or null, never 0.

mod analysis;
mod capability;
mod check;
mod fleet;
mod incidents;
mod known_storage;
mod lab;
mod runs;
mod traced;
mod watched;

pub use self::fleet::{fleet, fleet_incidents};
pub use analysis::analysis;
pub use capability::{capability, sweeps};
pub use check::check;
pub use incidents::{incident, incidents};
pub use known_storage::known_storage;
pub use lab::{commits, footprint, recoveries};
pub use runs::{estimate, matrix, phases, run, simulation};
pub use traced::{trace, traced_io};
pub use watched::{waits, watch};

use serde::Serialize;
use serde_json::Value;

/// With the fields of both.
fn add(value: &mut Value, more: Value) {
    if let (Value::Object(fields), Value::Object(more)) = (value, more) {
        fields.extend(more);
    }
}

/// The value as it serialises; none of the types here can fail to.
fn plain(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}
