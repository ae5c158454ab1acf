//! JSON for programs. Keys are stable; a figure that is not known is `{"unknown": "<reason>"}` or null, never 0.
//!
//! Each output is a type that borrows from the shown results. The comments on its fields are the descriptions
//! in docs/reference/json.md, which the `manual` crate writes from their schemas.

mod analysis;
mod capability;
mod check;
mod fleet;
mod incidents;
mod known_storage;
mod plain;
mod runs;
mod traced;
mod watched;

pub use self::fleet::{fleet, fleet_incidents};
pub use analysis::analysis;
pub use capability::{capability, sweeps};
pub use check::check;
pub use incidents::{incident, incidents};
pub use known_storage::known_storage;
pub use plain::{add, plain};
pub use runs::{estimate, matrix, phases, run, session, simulation};
pub use traced::{trace, traced_io};
pub use watched::{WaitsOutput, waits, watch};

/// The schema of each output, by the name of its command.
#[cfg(feature = "schema")]
pub fn schemas(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema)> {
    vec![
        ("check", generator.subschema_for::<check::Output>()),
        ("measure", generator.subschema_for::<capability::Output>()),
        ("storage", generator.subschema_for::<known_storage::Output>()),
        ("run", generator.subschema_for::<runs::SessionOutput>()),
        ("run, a matrix", generator.subschema_for::<runs::MatrixOutput>()),
        ("run --sweep", generator.subschema_for::<capability::Sweeps>()),
        ("simulate", generator.subschema_for::<runs::SimulationOutput>()),
        ("simulate --fit", generator.subschema_for::<runs::EstimateOutput>()),
        ("watch", generator.subschema_for::<watched::Output>()),
        ("trace", generator.subschema_for::<traced::IoOutput>()),
        ("trace, last line", generator.subschema_for::<traced::TraceOutput>()),
        ("history analyze", generator.subschema_for::<analysis::Output>()),
        ("history incidents", generator.subschema_for::<incidents::Incidents>()),
        ("fleet", generator.subschema_for::<fleet::FleetOutput>()),
        ("fleet incidents", generator.subschema_for::<fleet::IncidentsOutput>()),
    ]
}
