//! Errors of loading programs and reading their tables, converted to the case that a user can act on.

use super::error::OpenError;
use crate::error::SourceError;
use aya::maps::MapError;
use aya::programs::ProgramError;
use aya::{BtfError, EbpfError};
use std::io;

const NO_EVENT: &str = "this kernel has no event for it";

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
            why = NO_EVENT.into();
        }
        cause = current.source();
    }
    if let EbpfError::ProgramError(ProgramError::LoadError { verifier_log, .. }) = error
        && let Some(line) = last_reason(&verifier_log.to_string())
    {
        why = line.to_owned();
    }
    OpenError::Refused { program: program.into(), why }
}

/// The error of a program that the kernel has no event for.
pub(super) fn absent(program: &str) -> OpenError {
    OpenError::Refused { program: program.into(), why: NO_EVENT.into() }
}

/// Whether a program was refused since the kernel lacks what it is attached to.
pub(super) fn is_absent(error: &OpenError) -> bool {
    matches!(error, OpenError::Refused { why, .. } if why == NO_EVENT)
}

/// Why a program is not used, for a note that says what is missing because of it.
pub(super) fn reason(error: &OpenError) -> String {
    match error {
        OpenError::Refused { why, .. } if why == NO_EVENT => why.clone(),
        OpenError::Refused { program, why } => format!("the kernel refused the BPF program {program}: {why}"),
        error => error.to_string(),
    }
}

/// The line of the verifier's log that says why: the last one that is no statistic. `None` where there is none.
fn last_reason(log: &str) -> Option<&str> {
    const STATISTICS: [&str; 6] =
        ["processed ", "verification time ", "stack depth ", "peak_states ", "mark_precise", "max_states"];
    let is_reason = |line: &&str| !line.is_empty() && !STATISTICS.iter().any(|start| line.starts_with(start));
    log.lines().map(str::trim).rfind(is_reason)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.1 and 6.18 write it.
    #[test]
    fn the_reason_of_the_verifier_is_its_last_line_without_the_statistics() {
        let log = "0: R1=ctx(off=0,imm=0)\n; entry->res\n4: (61) r2 = *(u32 *)(r1 +8)\nR1 invalid mem access 'scalar'\n\
                   verification time 211 usec\nstack depth 0\nprocessed 4 insns (limit 1000000) max_states_per_insn 0\n";
        assert_eq!(last_reason(log), Some("R1 invalid mem access 'scalar'"));
        assert_eq!(last_reason("processed 4 insns (limit 1000000)\n\n"), None);
        assert_eq!(last_reason(""), None);
    }
}
