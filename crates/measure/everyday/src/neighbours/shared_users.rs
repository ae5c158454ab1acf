//! One program that counts the I/Os of each process on each disk, for all databases that are observed: each that is loaded is run
//! for every I/O of this host.

use crate::recent::Recent;
use collect::SourceError;
use collect::process::{DeviceUsers, Queued, UserOfDevice};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// The I/Os since this was opened.
pub struct SharedUsers {
    users: Arc<Users>,
    /// Counts when this was opened.
    base: HashMap<UserOfDevice, Queued>,
}

struct Users {
    program: Mutex<DeviceUsers>,
    last: Recent<(), HashMap<UserOfDevice, Queued>>,
}

impl Users {
    fn read(&self) -> Result<HashMap<UserOfDevice, Queued>, SourceError> {
        lock(&self.program).read()
    }
}

static CURRENT: Mutex<Weak<Users>> = Mutex::new(Weak::new());

/// Three quarters of the table of bpf/users.bpf.c.
const USERS_MANY: usize = 3_072;

impl SharedUsers {
    /// Begins to count. `None` where the kernel does not let this user, or cannot.
    pub fn open() -> Option<SharedUsers> {
        let mut current = lock(&CURRENT);
        let has_space = |users: &Arc<Users>| users.read().is_ok_and(|all| all.len() < USERS_MANY);
        let known = current.upgrade().filter(has_space);
        let users = match known {
            Some(users) => users,
            // The kernel counts no new process once the table is full: those that use the full one change to this one.
            None => {
                let program = Mutex::new(DeviceUsers::open().ok()?);
                let users = Arc::new(Users { program, last: Recent::new() });
                *current = Arc::downgrade(&users);
                users
            }
        };
        let base = users.read().unwrap_or_default();
        Some(SharedUsers { users, base })
    }

    /// I/Os of each process on each disk, as of at most `age` ago, and whether the table will soon be full: then it is to be
    /// opened again.
    pub fn read(&self, age: Duration) -> (HashMap<UserOfDevice, Queued>, bool) {
        let read = || self.users.read().unwrap_or_default();
        let mut all = Arc::unwrap_or_clone(self.users.last.get((), age, read));
        let is_full = all.len() >= USERS_MANY;
        all.retain(|user, queued| {
            *queued = queued.minus(self.base.get(user).copied().unwrap_or_default());
            *queued != Queued::default()
        });
        (all, is_full)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
