//! Keeping the processor from idling for a thread that commits alone.

use pagestore::{Durability, KeepAwake, Layout, Options, Store, Table, Tables};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Threads are identified by name, so only one store may be open at a time.
static ONE: Mutex<()> = Mutex::new(());

fn with_table(store: &Store) -> Table {
    store.transact(Durability::Full, |tx| tx.create_table("t")).unwrap()
}

/// The scheduling policy of the thread of that name in this process, if there is one.
fn thread_called(name: &str) -> Option<String> {
    std::fs::read_dir("/proc/self/task").unwrap().find_map(|task| {
        let stat = std::fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
        let (head, rest) = stat.rsplit_once(')')?;
        // Field 41 of proc_pid_stat(5); `rest` begins with field 3.
        let fields: Vec<&str> = rest.split_whitespace().collect();
        head.ends_with(&format!("({name}")).then(|| fields[41 - 3].into())
    })
}

#[test]
fn a_thread_that_commits_alone_gets_a_trial_of_the_idle_guard() {
    let _one = ONE.lock().unwrap();
    let place = tempfile::tempdir().unwrap();
    let store = Store::create(&place.path().join("store"), Layout::default(), Options::default()).unwrap();
    let table = with_table(&store);
    let mut took: Vec<_> = (0..1000_u32)
        .map(|row| {
            let begun = Instant::now();
            store.transact(Durability::Full, |tx| tx.put(table, &row.to_be_bytes(), b"tried")).unwrap();
            begun.elapsed()
        })
        .collect();
    took.sort_unstable();
    match store.awake_trial() {
        Some(found) => {
            assert!(found.asleep_ns > 0 && found.awake_ns > 0);
        }
        // There is no trial with slow storage, or if processor time is limited.
        None => {
            let is_quick = took[took.len() * 3 / 4] < Duration::from_micros(400);
            assert!(!is_quick || processor_time_is_limited(), "{:?}", took[took.len() / 2]);
            eprintln!("skipped: this storage is too slow, or processor time is limited");
        }
    }
}

/// Whether there is a quota, only one processor, or a battery.
fn processor_time_is_limited() -> bool {
    let processors = std::thread::available_parallelism().unwrap().get();
    let all = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = all.lines().find_map(|line| line.strip_prefix("Cpus_allowed:")).unwrap();
    let own: u32 =
        allowed.trim().split(',').map(|part| u32::from_str_radix(part, 16).unwrap().count_ones()).sum();
    let has_battery = std::fs::read_dir("/sys/class/power_supply").is_ok_and(|mut all| all.next().is_some());
    own == 1 || processors < own as usize || has_battery
}

#[test]
fn the_idle_guard_has_the_lowest_policy_and_ends_with_the_store() {
    let _one = ONE.lock().unwrap();
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("store");
    let options = |keep_awake| Options { keep_awake, ..Options::default() };
    let store = Store::create(&directory, Layout::default(), options(KeepAwake::Always)).unwrap();
    let table = with_table(&store);
    for row in 0..300_u32 {
        store.transact(Durability::Full, |tx| tx.put(table, &row.to_be_bytes(), b"awake")).unwrap();
    }
    // A thread sets its own name and policy, and disappears from the list a little after it has ended.
    let becomes = |expected: Option<String>| {
        let begun = Instant::now();
        while thread_called("keep awake") != expected {
            assert!(begun.elapsed() < Duration::from_secs(60), "it is {:?}", thread_called("keep awake"));
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    becomes(Some(libc::SCHED_IDLE.to_string()));
    assert_eq!(store.awake_trial(), None, "nothing is to be found out");
    store.close().unwrap();
    becomes(None);
    let store = Store::open(&directory, options(KeepAwake::Never)).unwrap();
    assert_eq!(thread_called("keep awake"), None);
    let reader = store.read().unwrap();
    let table = reader.table("t").unwrap();
    assert_eq!(reader.range(table, &[], None).unwrap().count(), 300);
}
