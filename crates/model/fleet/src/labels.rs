//! Labels of a series: those of the host, and those of the family.

use crate::Host;
use std::collections::BTreeMap;

/// Labels of the families of the agent. All others are the host's: `instance`, `job`, and what was added to them.
const OF_FAMILIES: [&str; 12] = [
    "__name__", "mount", "source", "verdict", "resource", "op", "curve", "device", "pattern", "part",
    "version", "from",
];

/// A database on a volume of a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub host: Host,
    pub mount: String,
    pub source: String,
}

fn labels_of_host(labels: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    labels.iter().filter(|(name, _)| !OF_FAMILIES.contains(&name.as_str()))
}

/// The host of a series.
pub fn host(labels: &BTreeMap<String, String>) -> Host {
    let own = labels_of_host(labels);
    Host { labels: own.map(|(name, value)| (name.clone(), value.clone())).collect() }
}

/// Whether a series is of that host.
pub fn is_of_host(labels: &BTreeMap<String, String>, host: &Host) -> bool {
    labels_of_host(labels).eq(&host.labels)
}

/// The place of a series; `None` where it is of no database on a volume.
pub fn place(labels: &BTreeMap<String, String>) -> Option<Place> {
    Some(Place {
        host: host(labels),
        mount: labels.get("mount")?.clone(),
        source: labels.get("source")?.clone(),
    })
}
