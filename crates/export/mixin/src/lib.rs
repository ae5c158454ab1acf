//! Files that a Prometheus and a Grafana need beside the agents: recording rules, alerts, dashboards and a mixin of jsonnet.
//!
//! They lie in `packaging/prometheus`, are embedded here, and `headroom fleet` writes them. The names of metrics are those of the
//! agent (`metrics::FAMILIES`); a test compares them. This crate does no I/O.

/// A file: its name, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: String,
}

/// The first line of each YAML and jsonnet file has it.
pub const MARK: &str = "Written by headroom fleet; changes are lost when it is written again.";

/// The page with the runbooks, a heading for each alert, as the alerts name it.
pub const RUNBOOKS: &str = "docs/reference/fleet.md";

macro_rules! file {
    ($name:literal) => {
        File { name: $name, text: include_str!(concat!("../../../../packaging/prometheus/", $name)).into() }
    };
}

/// Recording rules.
pub fn rules() -> File {
    file!("headroom-rules.yml")
}

/// Alerts whose runbooks are on the page `runbooks`.
pub fn alerts(runbooks: &str) -> File {
    let mut file = file!("headroom-alerts.yml");
    // A string of YAML in quotes is that of JSON.
    let quoted = serde_json::Value::from(runbooks).to_string();
    file.text = file.text.replace(&format!("\"{RUNBOOKS}#"), &format!("{}#", quoted.trim_end_matches('"')));
    file
}

/// Dashboards of Grafana.
pub fn dashboards() -> Vec<File> {
    vec![
        file!("headroom-fleet.json"),
        file!("headroom-host.json"),
        file!("headroom-volume.json"),
        file!("headroom-database.json"),
        file!("headroom-incident.json"),
    ]
}

/// A mixin of jsonnet, which imports all the other files.
pub fn jsonnet() -> File {
    file!("mixin.libsonnet")
}
