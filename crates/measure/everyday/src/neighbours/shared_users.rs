//! One program that counts the I/Os of each process on each disk, for all databases that are observed: each that is loaded is run
//! for every I/O of this host.

use crate::recent::Recent;
use collect::process::{DeviceUsers, Queued, UserOfDevice};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// The I/Os since this was opened.
pub struct SharedUsers {
    users: Arc<Mutex<DeviceUsers>>,
    /// What was counted before.
    base: HashMap<UserOfDevice, Queued>,
}

static CURRENT: Mutex<Weak<Mutex<DeviceUsers>>> = Mutex::new(Weak::new());

/// Three quarters of the table of bpf/users.bpf.c.
const USERS_MANY: usize = 3_072;

impl SharedUsers {
    /// Begins to count. `None` where the kernel does not let this user, or cannot.
    pub fn open() -> Option<SharedUsers> {
        let mut current = lock(&CURRENT);
        let known =
            current.upgrade().filter(|users| lock(users).read().is_ok_and(|all| all.len() < USERS_MANY));
        let users = match known {
            Some(users) => users,
            // The kernel counts no new process once the table is full: those that use the full one change to this one.
            None => {
                let users = Arc::new(Mutex::new(DeviceUsers::open().ok()?));
                *current = Arc::downgrade(&users);
                users
            }
        };
        let base = lock(&users).read().unwrap_or_default();
        Some(SharedUsers { users, base })
    }

    /// I/Os of each process on each disk, as of at most `age` ago, and whether the table will soon be full: then it is to be
    /// opened again.
    pub fn read(&self, age: Duration) -> (HashMap<UserOfDevice, Queued>, bool) {
        static LAST: Recent<usize, HashMap<UserOfDevice, Queued>> = Recent::new();
        let table = Arc::as_ptr(&self.users).addr();
        let read = || lock(&self.users).read().unwrap_or_default();
        let mut all = Arc::unwrap_or_clone(LAST.get(table, age, read));
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
