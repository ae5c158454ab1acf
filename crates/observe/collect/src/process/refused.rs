//! Errors of loading programs and reading their tables, converted to the case that a user can act on.

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

/// Distinguishes missing permission from other refusals.
pub(super) fn open_error(program: &str, error: &EbpfError) -> OpenError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut why = error.to_string();
    while let Some(current) = cause {
        why = current.to_string();
        if let Some(system) = current.downcast_ref::<io::Error>()
            && matches!(system.raw_os_error(), Some(libc::EPERM | libc::EACCES))
            && !is_verifier_error(error)
        {
            return OpenError::NotPermitted(io::Error::from_raw_os_error(
                system.raw_os_error().unwrap_or(libc::EPERM),
            ));
        }
        if let Some(BtfError::UnknownBtfTypeName { .. }) = current.downcast_ref::<BtfError>() {
            why = NO_TRACEPOINT.into();
        }
        cause = current.source();
    }
    OpenError::Refused { program: program.into(), why }
}

/// The verifier rejects programs with EACCES too, but then it writes a log.
fn is_verifier_error(error: &EbpfError) -> bool {
    matches!(error, EbpfError::ProgramError(ProgramError::LoadError { verifier_log, .. })
        if !verifier_log.to_string().trim().is_empty())
}

pub(super) fn no_table(name: &str) -> SourceError {
    table_error(MapError::InvalidName { name: name.into() })
}

pub(super) fn table_error(error: MapError) -> SourceError {
    SourceError::System { path: "the tables of the BPF programs".into(), error: io::Error::other(error) }
}
