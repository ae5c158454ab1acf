//! Linux capabilities of this program's threads (capabilities(7)), for a program that runs for weeks and loads BPF programs
//! whenever it finds a database.
//!
//! ```text
//! start of the agent     give_up_unneeded()   permitted, bounding: what is in this file; ambient, inheritable: nothing
//!                                             effective: HELD
//! a thread of its own    (inherits that)      effective: more while with(privilege, work) runs
//! a thread that reads what other machines send
//!                        give_up_in_thread()  effective: nothing; permitted: what it names
//! ```
//!
//! The kernel keeps these sets for each thread, and a new thread has those of the one that starts it. So the first call comes
//! before all other threads. A program that never calls it is not changed: [`with`] then only runs its work.

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};
use std::io;

/// Privileges that a piece of work needs beyond those of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// Loads BPF programs, reads their tables (needed for that before Linux 5.19), and sees the addresses of the kernel's functions.
    Programs,
    /// Takes on another user to connect as that user. Root only: the service has none of these.
    OtherUsers,
    /// Asks for the tables of device mapper. Root only.
    DeviceMapper,
    /// Listens on a port below 1024. Root only.
    LowPorts,
    /// Reads files of other users; as root, writes to a history of another user.
    Files,
}

/// In effect all the time: processes and files of other users are read every second, in many places; root keeps a history
/// that another user owns, and gives what SQLite puts beside it the same owner.
const HELD: CapabilitySet = CapabilitySet::SYS_PTRACE.union(Privilege::Files.capabilities());

/// Numbers of capabilities that the kernel may have.
const NUMBERS: u32 = 64;

impl Privilege {
    const ALL: [Privilege; 5] = [
        Privilege::Programs,
        Privilege::OtherUsers,
        Privilege::DeviceMapper,
        Privilege::LowPorts,
        Privilege::Files,
    ];

    const fn capabilities(self) -> CapabilitySet {
        match self {
            Privilege::Programs => {
                CapabilitySet::BPF.union(CapabilitySet::PERFMON).union(CapabilitySet::SYSLOG)
            }
            Privilege::OtherUsers => CapabilitySet::SETUID.union(CapabilitySet::SETGID),
            Privilege::DeviceMapper => CapabilitySet::SYS_ADMIN,
            Privilege::LowPorts => CapabilitySet::NET_BIND_SERVICE,
            Privilege::Files => {
                CapabilitySet::DAC_READ_SEARCH.union(CapabilitySet::DAC_OVERRIDE).union(CapabilitySet::CHOWN)
            }
        }
    }
}

fn needed() -> CapabilitySet {
    Privilege::ALL.into_iter().fold(HELD, |all, privilege| all | privilege.capabilities())
}

/// Gives up what no [`Privilege`] needs, permanently, for this thread and those that it starts, and lowers the rest. Programs
/// that it starts get nothing by inheritance; those of root have at most the bounding set, which shrinks where the user may
/// change it.
///
/// # Errors
/// The kernel, or a filter of system calls, refuses it.
pub fn give_up_unneeded() -> io::Result<()> {
    let needed = needed();
    for number in 0..NUMBERS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        if !needed.contains(one) {
            // Refused to all but root, whose service sets the bounding set, and for numbers that the kernel does not have.
            let _ = remove_capability_from_bounding_set(one);
        }
    }
    clear_ambient_capability_set()?;
    let permitted = capabilities(None)?.permitted & needed;
    set(permitted, permitted & HELD)
}

/// Gives up all but `kept` for this thread, permanently, and lowers that too: for a thread that reads what other machines send.
///
/// # Errors
/// The kernel, or a filter of system calls, refuses it.
pub fn give_up_in_thread(kept: &[Privilege]) -> io::Result<()> {
    let kept = kept.iter().fold(CapabilitySet::empty(), |all, privilege| all | privilege.capabilities());
    clear_ambient_capability_set()?;
    set(capabilities(None)?.permitted & kept, CapabilitySet::empty())
}

/// Runs `work` with a privilege in effect, as far as this thread may have it.
pub fn with<T>(privilege: Privilege, work: impl FnOnce() -> T) -> T {
    let _raised = Raised::begin(privilege);
    work()
}

/// Lowered when dropped, in a panic too.
struct Raised(Option<CapabilitySets>);

impl Raised {
    fn begin(privilege: Privilege) -> Raised {
        let Ok(before) = capabilities(None) else { return Raised(None) };
        let effective = before.effective | (before.permitted & privilege.capabilities());
        if effective == before.effective {
            return Raised(None);
        }
        // Where that is refused, the work fails as for a user without the privilege.
        Raised(set_capabilities(None, CapabilitySets { effective, ..before }).is_ok().then_some(before))
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            // A thread that took on another user and came back has more of them in effect than before.
            let _ = set_capabilities(None, before);
        }
    }
}

fn set(permitted: CapabilitySet, effective: CapabilitySet) -> io::Result<()> {
    let inheritable = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective, permitted, inheritable })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a thread of its own, whose sets end with it.
    fn in_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(work).join().unwrap()
    }

    fn sets() -> CapabilitySets {
        capabilities(None).unwrap()
    }

    /// Capabilities of this user; says that nothing is tested where there are none.
    fn permitted() -> CapabilitySet {
        let permitted = sets().permitted;
        if permitted.is_empty() {
            println!("skipped: this user has no capability to give up");
        }
        permitted
    }

    #[test]
    fn a_privilege_is_in_effect_while_its_work_runs_and_not_after_a_panic() {
        in_thread(|| {
            let may = permitted();
            give_up_unneeded().unwrap();
            assert_eq!((sets().permitted, sets().effective), (may & needed(), may & HELD));
            let programs = Privilege::Programs.capabilities();
            let raised = with(Privilege::Programs, || sets().effective);
            assert_eq!(raised, may & (HELD | programs));
            assert_eq!(sets().effective, may & HELD);
            let panicked = std::panic::catch_unwind(|| with(Privilege::Programs, || panic!("of the test")));
            assert!(panicked.is_err());
            assert_eq!(sets().effective, may & HELD);
        });
    }

    #[test]
    fn what_a_thread_gave_up_does_not_come_back() {
        in_thread(|| {
            let may = permitted();
            give_up_in_thread(&[Privilege::Files]).unwrap();
            let files = Privilege::Files.capabilities();
            assert_eq!((sets().permitted, sets().effective), (may & files, CapabilitySet::empty()));
            assert_eq!(with(Privilege::Programs, || sets().effective), CapabilitySet::empty());
            assert_eq!(with(Privilege::Files, || sets().effective), may & files);
            assert!(set(may, may).is_err() || may & files == may);
        });
    }

    #[test]
    fn where_nothing_was_given_up_nothing_changes() {
        let before = sets();
        assert_eq!(with(Privilege::DeviceMapper, sets), before);
        assert_eq!(sets(), before);
    }
}
