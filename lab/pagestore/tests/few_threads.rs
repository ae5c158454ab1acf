//! A system that refuses to start more threads.

use crashlab::{Files, SimDisk};
use pagestore::{Durability, Layout, Options, Recovery, Store, Tables};
use std::sync::Arc;

const ROWS: u32 = 4_000;

/// From now on this thread cannot start others.
fn forbid_threads() {
    let code = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let is = |call: libc::c_long, jt: u8| libc::sock_filter {
        jt,
        ..code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call as u32)
    };
    let mut filter = [
        code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        is(libc::SYS_clone3, 2),
        is(libc::SYS_clone, 1),
        code(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
        code(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EAGAIN as u32),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the filter outlives the call, which copies it.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            + libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    assert_eq!(done, 0);
    assert!(std::thread::Builder::new().spawn(|| ()).is_err());
}

/// A store whose rows are only in the log, as after a crash.
fn crashed() -> (Files, Options) {
    let disk = Arc::new(SimDisk::new());
    let layout = Layout { vlf_bytes: 1 << 20, vlfs: 16, ..Layout::default() };
    let options = Options { background: false, publish: false, ..Options::default() };
    let store = Store::create_on(disk.clone(), layout, options, 1).unwrap();
    let put = |tx: &mut pagestore::WriteTx<'_>| {
        let table = tx.create_table("t")?;
        (0..ROWS).try_for_each(|row| tx.put(table, &row.to_be_bytes(), &[row as u8; 900]))
    };
    store.transact(Durability::Full, put).unwrap();
    (disk.files(), options)
}

// With every strategy of recovery. The store's own background threads are required.
#[test]
fn a_store_opens_with_the_threads_available_or_reports_that_there_are_too_few() {
    let (crashed, options) = crashed();
    let open = move || {
        forbid_threads();
        for recovery in [Recovery::Serial, Recovery::Prefetch, Recovery::Wide, Recovery::Instant] {
            let disk = || Arc::new(SimDisk::holding(crashed.clone()));
            let own = Options { recovery, ..options };
            for store in [Store::open_on(disk(), own), Store::open_on_with(disk(), own, |_| ())] {
                let store = store.unwrap();
                let reader = store.read().unwrap();
                let table = reader.table("t").unwrap();
                assert_eq!(reader.range(table, b"", None).unwrap().count(), ROWS as usize);
            }
            let refused =
                Store::open_on(disk(), Options { background: true, ..own }).map(|_| ()).unwrap_err();
            assert!(refused.to_string().starts_with("start a thread of the store: "), "{refused}");
        }
    };
    std::thread::spawn(open).join().unwrap();
}

// More pages than the buffer of a checkpoint holds.
#[test]
fn a_checkpoint_is_written_by_the_threads_available() {
    let (crashed, options) = crashed();
    let disk = Arc::new(SimDisk::holding(crashed));
    let store = Store::open_on(disk.clone(), Options { cache_bytes: 1 << 20, ..options }).unwrap();
    std::thread::scope(|scope| {
        let checkpoint = || {
            forbid_threads();
            store.checkpoint().map(|certificate| certificate.pages)
        };
        assert!(scope.spawn(checkpoint).join().unwrap().unwrap() > 512);
    });
    store.close().unwrap();
    let store = Store::open_on(disk, options).unwrap();
    assert!(store.recovery_report().clean);
    let reader = store.read().unwrap();
    assert_eq!(reader.range(reader.table("t").unwrap(), b"", None).unwrap().count(), ROWS as usize);
}
