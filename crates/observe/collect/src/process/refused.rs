//! Why programs are not let in, or their tables cannot be read: the case that a person can act on.

use super::error::OpenError;
use crate::error::SourceError;
use aya::maps::MapError;
use aya::programs::ProgramError;
use aya::{BtfError, EbpfError};
use std::io;

pub(super) const NO_TRACEPOINT: &str = "this kernel does not have its tracepoint";

pub(super) fn not_filled(error: MapError) -> OpenError {
    open_error("maps", &error.into())
}

/// The case that a person can act on: not permitted, or refused for another reason.
pub(super) fn open_error(program: &str, error: &EbpfError) -> OpenError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut why = error.to_string();
    while let Some(one) = cause {
        why = one.to_string();
        if let Some(system) = one.downcast_ref::<io::Error>()
            && matches!(system.raw_os_error(), Some(libc::EPERM | libc::EACCES))
            && !why_is_the_verifier(error)
        {
            return OpenError::NotPermitted(io::Error::from_raw_os_error(
                system.raw_os_error().unwrap_or(libc::EPERM),
            ));
        }
        if let Some(BtfError::UnknownBtfTypeName { .. }) = one.downcast_ref::<BtfError>() {
            why = NO_TRACEPOINT.into();
        }
        cause = one.source();
    }
    OpenError::Refused { program: program.into(), why }
}

/// The verifier refuses with EACCES too; then it gives its reasons.
fn why_is_the_verifier(error: &EbpfError) -> bool {
    matches!(error, EbpfError::ProgramError(ProgramError::LoadError { verifier_log, .. })
        if !verifier_log.to_string().trim().is_empty())
}

pub(super) fn no_table(name: &str) -> SourceError {
    table_error(MapError::InvalidName { name: name.into() })
}

pub(super) fn table_error(error: MapError) -> SourceError {
    SourceError::System { path: "the tables of the BPF programs".into(), error: io::Error::other(error) }
}
