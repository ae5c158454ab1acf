use serde::{Deserialize, Serialize};
use std::fmt;

/// State that a device reports of itself and that makes its I/Os slow, or fail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DeviceTrouble {
    /// An md array copies to its members, or checks them.
    Rebuilding {
        /// "md0".
        device: String,
        /// As md calls it: "recover", "resync", "check", "repair", "reshape".
        action: String,
        /// The part that is done, 0 to 1.
        done: Option<f64>,
    },
    /// An md array lacks members.
    MembersMissing {
        /// "md0".
        device: String,
        /// Number of missing members.
        missing: u64,
    },
    /// A thin pool has no free block: what writes to new blocks waits for space, or fails.
    PoolFull {
        /// "dm-2".
        device: String,
        /// Its blocks.
        blocks: u64,
    },
}

impl DeviceTrouble {
    /// The device.
    pub fn device(&self) -> &str {
        match self {
            DeviceTrouble::Rebuilding { device, .. }
            | DeviceTrouble::MembersMissing { device, .. }
            | DeviceTrouble::PoolFull { device, .. } => device,
        }
    }
}

impl fmt::Display for DeviceTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceTrouble::Rebuilding { device, action, done: Some(done) } => {
                write!(f, "{device} rebuilds or checks its members ({action}, {:.0} % done)", done * 100.0)
            }
            DeviceTrouble::Rebuilding { device, action, done: None } => {
                write!(f, "{device} rebuilds or checks its members ({action})")
            }
            DeviceTrouble::MembersMissing { device, missing: 1 } => write!(f, "{device} lacks a member"),
            DeviceTrouble::MembersMissing { device, missing } => {
                write!(f, "{device} lacks {missing} members")
            }
            DeviceTrouble::PoolFull { device, blocks } => {
                write!(f, "the thin pool {device} is full: none of its {blocks} blocks is free")
            }
        }
    }
}
