//! The system calls that are counted: by their numbers, for the tracepoints of all calls, or at the entry and exit of their
//! functions, where the kernel permits it. Functions cost the counted calls alone; the tracepoints make every call of every
//! process take the kernel's slow path. The figures are the same.

use super::error::OpenError;
use super::refused::open_error;
use super::tables::by_number;
use aya::programs::{Program, ProgramError};
use aya::{Btf, Ebpf};

/// A system call.
pub(super) struct Call {
    number: libc::c_long,
    /// `enum call` of thread.h.
    meaning: u8,
    /// Its function, and its programs in entries.h, without what comes before it in each.
    name: &'static str,
}

const READ: u8 = 1;
const WRITE: u8 = 2;
const SYNC: u8 = 3;
const MSYNC: u8 = 4;
const COPY: u8 = 5;
const SENDFILE: u8 = 6;
const IO_SUBMIT: u8 = 7;
const IO_GETEVENTS: u8 = 8;

const CALLS: [Call; 20] = [
    call(libc::SYS_read, READ, "read"),
    call(libc::SYS_pread64, READ, "pread64"),
    call(libc::SYS_readv, READ, "readv"),
    call(libc::SYS_preadv, READ, "preadv"),
    call(libc::SYS_preadv2, READ, "preadv2"),
    call(libc::SYS_write, WRITE, "write"),
    call(libc::SYS_pwrite64, WRITE, "pwrite64"),
    call(libc::SYS_writev, WRITE, "writev"),
    call(libc::SYS_pwritev, WRITE, "pwritev"),
    call(libc::SYS_pwritev2, WRITE, "pwritev2"),
    call(libc::SYS_fsync, SYNC, "fsync"),
    call(libc::SYS_fdatasync, SYNC, "fdatasync"),
    call(libc::SYS_sync_file_range, SYNC, "sync_file_range"),
    call(libc::SYS_msync, MSYNC, "msync"),
    call(libc::SYS_copy_file_range, COPY, "copy_file_range"),
    call(libc::SYS_splice, COPY, "splice"),
    call(libc::SYS_sendfile, SENDFILE, "sendfile64"),
    call(libc::SYS_io_submit, IO_SUBMIT, "io_submit"),
    call(libc::SYS_io_getevents, IO_GETEVENTS, "io_getevents"),
    call(SYS_IO_PGETEVENTS, IO_GETEVENTS, "io_pgetevents"),
];
/// libc does not define it.
const SYS_IO_PGETEVENTS: libc::c_long = if cfg!(target_arch = "x86_64") { 333 } else { 292 };

/// Prefix that the kernel puts before the name of a system call's function.
const PREFIX: &str = if cfg!(target_arch = "x86_64") { "__x64_sys_" } else { "__arm64_sys_" };

const fn call(number: libc::c_long, meaning: u8, name: &'static str) -> Call {
    Call { number, meaning, name }
}

/// The meaning of each number.
pub(super) fn meanings() -> [u8; super::tables::SYSCALLS] {
    by_number(&CALLS.each_ref().map(|call| (call.number, call.meaning)))
}

/// System calls to attach to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calls {
    All,
    /// fsync and similar.
    Syncs,
}

impl Calls {
    fn programs(self) -> impl Iterator<Item = (String, String)> {
        let calls =
            CALLS.iter().filter(move |call| self == Calls::All || [SYNC, MSYNC].contains(&call.meaning));
        calls.flat_map(|call| {
            let function = format!("{PREFIX}{}", call.name);
            // The exit first: a call that is entered in between is not counted.
            [(format!("exit_{}", call.name), function.clone()), (format!("enter_{}", call.name), function)]
        })
    }
}

/// Attaches programs to the functions of all these calls, or to none.
///
/// # Errors
/// Why the kernel does not permit it.
pub(super) fn attach_to_functions(ebpf: &mut Ebpf, calls: Calls, btf: &Btf) -> Result<(), OpenError> {
    // One by one: a kernel that permits none refuses the first.
    let attached = calls.programs().try_for_each(|(program, function)| {
        load(ebpf, &program, &function, btf)?;
        attach(ebpf, &program)
    });
    if attached.is_err() {
        calls.programs().for_each(|(program, _)| unload(ebpf, &program));
    }
    attached
}

/// Whether it is a program at a call's function.
pub(super) fn is_at_function(program: &str) -> bool {
    program.starts_with("enter_") || program.starts_with("exit_")
}

fn load(ebpf: &mut Ebpf, name: &str, function: &str, btf: &Btf) -> Result<(), OpenError> {
    let loaded = match ebpf.program_mut(name) {
        Some(Program::FEntry(program)) => program.load(function, btf),
        Some(Program::FExit(program)) => program.load(function, btf),
        _ => return Err(OpenError::Refused { program: name.into(), why: "it is not in the object".into() }),
    };
    loaded.map_err(|error| open_error(name, &error.into()))
}

fn attach(ebpf: &mut Ebpf, name: &str) -> Result<(), OpenError> {
    let attached: Result<(), ProgramError> = match ebpf.program_mut(name) {
        Some(Program::FEntry(program)) => program.attach().map(drop),
        Some(Program::FExit(program)) => program.attach().map(drop),
        _ => Ok(()),
    };
    attached.map_err(|error| open_error(name, &error.into()))
}

/// It may not have been loaded.
fn unload(ebpf: &mut Ebpf, name: &str) {
    let _ = match ebpf.program_mut(name) {
        Some(Program::FEntry(program)) => program.unload(),
        Some(Program::FExit(program)) => program.unload(),
        _ => Ok(()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_has_a_number_of_its_own_and_two_programs_in_the_object() {
        let meanings = meanings();
        assert_eq!(meanings.iter().filter(|meaning| **meaning != 0).count(), CALLS.len());
        assert_eq!(meanings[libc::SYS_pread64 as usize], READ);
        let object = super::super::object::OBJECT;
        let has = |name: &str| object.windows(name.len()).any(|bytes| bytes == name.as_bytes());
        for (program, _) in Calls::All.programs() {
            assert!(has(&program), "{program}");
        }
        assert_eq!(Calls::Syncs.programs().count(), 8);
    }
}
