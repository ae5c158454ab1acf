use super::error::OpenError;
use super::kernel_types::KERNEL_BTF;
use super::refused::open_error;
use aya::EbpfError;
use aya::programs::ProgramType;
use aya::sys::is_program_supported;
use host::privileges::{Privilege, with};
use std::fs::File;

/// Whether this kernel has its types, and lets this user load a program on a tracepoint: what [`super::Process::open`]
/// needs first. Loads an empty program for that, in under a millisecond, and attaches nothing; that the kernel accepts
/// every program is known only after an open.
///
/// # Errors
/// The error that an open would end with.
pub fn check_permission() -> Result<(), OpenError> {
    File::open(KERNEL_BTF).map_err(|error| OpenError::NoBtf(error.to_string()))?;
    let refused = |why: &str| OpenError::Refused { program: "(empty)".into(), why: why.into() };
    match with(Privilege::Programs, || is_program_supported(ProgramType::RawTracePoint)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(refused("it knows no programs on tracepoints")),
        Err(error) => Err(open_error("(empty)", &EbpfError::from(error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Process, Selection};

    #[test]
    fn what_may_be_opened_is_permitted() {
        let opened = Process::open(&Selection::default());
        match check_permission() {
            Ok(()) => {}
            Err(error) => assert!(opened.is_err(), "{error}"),
        }
    }
}
