//! The XML profile (`-X`, `-Rpxml`), by the element names of diskspd.xsd.
//!
//! Reading is strict: an element that the schema does not know, or twice where it stands once, is an error with
//! its line. The profile inside a result (`<Results><Profile>`) is read too, so that a result can be run
//! again. Writing produces the output of diskspd, plus `<RandomWriteData>` (`-Zr`), which diskspd reads but does not
//! write.

mod elements;
mod read;
mod write;

use crate::profile::Profile;
use crate::usage::UsageError;

pub use write::write;
pub(crate) use write::write_into;

/// A profile that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileRead {
    /// The profile.
    pub profile: Profile,
    /// Settings without a field in [`Profile`]: event tracing.
    pub unsupported: Vec<UsageError>,
}

/// Why XML is refused as a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, <{element}>: {why}")]
pub struct ProfileError {
    /// From 1.
    pub line: usize,
    /// The element, or what stands in its place.
    pub element: String,
    /// The error, and the expected content.
    pub why: String,
}

/// Reads a profile. `targets` stand for `*1`, `*2` ... in it; without any, the templates stay, which is enough
/// to show the profile and not to run it ([`crate::rules::check_no_templates`]).
///
/// # Errors
/// The first thing that is not as the schema has it, or a target that stands for no template.
pub fn read(xml: &str, targets: &[String]) -> Result<ProfileRead, ProfileError> {
    let root = elements::parse(xml)?;
    read::profile(&root, targets)
}

#[cfg(test)]
mod tests;
