use serde::{Deserialize, Serialize};
use std::fmt;

/// Source of the known figures of a storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A load ran on it until it saturated.
    #[default]
    Measured,
    /// A load of reads ran on it beside what used it, as fast as that allowed.
    Gentle,
    /// Other programs were seen to use it.
    Seen,
    /// Its owner or provider states it.
    Declared,
    /// Measured on another host, on storage with the same facts.
    Borrowed,
}

impl Origin {
    /// Whether it was measured here: the only origin that results of earlier versions have.
    pub fn is_measured(&self) -> bool {
        *self == Origin::Measured
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
