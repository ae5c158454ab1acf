use std::sync::atomic::{AtomicU64, Ordering};

/// Identifies an object that remembers earlier snapshots: another one, in any process, may have seen other resets.
pub(crate) fn identify() -> String {
    static OBSERVERS: AtomicU64 = AtomicU64::new(0);
    let number = OBSERVERS.fetch_add(1, Ordering::Relaxed);
    format!("{}.{}.{number}", std::process::id(), host::unix_ns())
}
