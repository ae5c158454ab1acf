//! Concurrent commits: an acknowledged commit is durable with all before it, and every waiter is woken.

use super::{Coverage, commit, store};
use crate::sync::scheduled::check;
use crate::{Durability, Error};
use crashlab::{Fault, SimDisk};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

#[test]
fn what_is_acknowledged_is_on_the_medium_and_what_is_durable_never_becomes_less() {
    let coverage = Arc::new(Coverage::default());
    let own_coverage = coverage.clone();
    check(1, 160, move || {
        let (disk, store) = store(SimDisk::new(), 1, &own_coverage);
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                let (disk, store) = (disk.clone(), store.clone());
                shuttle::thread::spawn(move || {
                    for number in 0..3 {
                        let full = (thread + number) % 3 != 0;
                        let durability = if full { Durability::Full } else { Durability::Delayed };
                        let committed =
                            commit(&store, &[0, 10 + thread], durability).expect("the disk works");
                        if full {
                            let (committed, there) = (committed.sequence, disk.recovered(&[0]));
                            assert!(
                                committed <= there,
                                "commit {committed} was acknowledged, and {there} is the last"
                            );
                        }
                    }
                })
            })
            .collect();
        let mut durable = 0;
        for _ in 0..6 {
            let stats = store.stats();
            let now = stats.durable_sequence;
            assert!(durable <= now, "{durable} was durable, now {now}");
            durable = now;
            let there = disk.recovered(&[0]);
            assert!(durable <= there, "{durable} is said to be durable, and {there} is the last");
            shuttle::thread::yield_now();
        }
        threads.into_iter().for_each(|thread| thread.join().expect("it holds"));
        store.flush().expect("the disk works");
        assert_eq!(disk.recovered(&[0]), store.stats().last_sequence);
    });
    Coverage::assert(&coverage.overtaken, "a log write overtakes another");
}

#[test]
fn every_commit_of_a_group_is_acknowledged_and_no_thread_waits_forever() {
    let coverage = Arc::new(Coverage::default());
    let own_coverage = coverage.clone();
    check(4, 80, move || {
        let (disk, store) = store(SimDisk::new(), 1, &own_coverage);
        let commits = Arc::new(Mutex::new(HashMap::new()));
        let threads: Vec<_> = (0..6)
            .map(|_| {
                let (disk, store, commits) = (disk.clone(), store.clone(), commits.clone());
                shuttle::thread::spawn(move || {
                    for _ in 0..2 {
                        let committed = commit(&store, &[0], Durability::Full).expect("the disk works");
                        let block = (committed.lsn.vlf(), committed.lsn.unit());
                        *commits.lock().expect("nothing panics with it").entry(block).or_insert(0) += 1;
                        if committed.sequence.is_multiple_of(4) {
                            assert!(committed.sequence <= disk.recovered(&[0]), "{committed:?} is not there");
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it holds"));
        let commits = commits.lock().expect("nothing panics with it");
        Coverage::count(&own_coverage.grouped, commits.values().any(|commits| *commits >= 4));
    });
    Coverage::assert(&coverage.grouped, "a group of four commits");
}

/// As above, without a later commit that would wake a forgotten waiter.
#[test]
fn the_last_commits_of_a_burst_are_acknowledged() {
    let coverage = Arc::new(Coverage::default());
    check(7, 4000, move || {
        let (disk, store) = store(SimDisk::new(), 1, &coverage);
        let threads: Vec<_> = (0..7)
            .map(|_| {
                let store = store.clone();
                shuttle::thread::spawn(move || {
                    commit(&store, &[0], Durability::Full).expect("the disk works");
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it holds"));
        assert_eq!(disk.recovered(&[0]), store.stats().last_sequence);
    });
}

/// The failure may be that of a page write or a sync on another thread; threads that wait for the log get an error
/// too.
#[test]
fn waiters_get_an_error_when_another_thread_makes_the_store_read_only() {
    let coverage = Arc::new(Coverage::default());
    check(6, 800, move || {
        let (_, store) = store(SimDisk::new(), 1, &coverage);
        let threads: Vec<_> = (0..5)
            .map(|thread| {
                let store = store.clone();
                shuttle::thread::spawn(move || {
                    if thread == 4 {
                        store
                            .inner
                            .journal
                            .set_read_only(&Error::ReadOnly { cause: "a page's write failed".into() });
                    } else if let Err(error) = commit(&store, &[0], Durability::Full) {
                        assert!(matches!(error, Error::ReadOnly { .. }), "{error}");
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it holds"));
    });
}

#[test]
fn after_a_failed_write_nothing_is_acknowledged_and_every_waiter_gets_an_error() {
    let coverage = Arc::new(Coverage::default());
    let before = store(SimDisk::new(), 1, &coverage).0.disk.ops();
    for fault_after in 0..4 {
        let coverage = coverage.clone();
        check(2, 40, move || {
            let faulty = SimDisk::new().with_fault(before + fault_after, Fault::Io);
            let (disk, store) = store(faulty, 1, &coverage);
            let failed = Arc::new(AtomicBool::new(false));
            let acknowledged = Arc::new(AtomicU64::new(0));
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let (failed, acknowledged) = (failed.clone(), acknowledged.clone());
                    let store = store.clone();
                    shuttle::thread::spawn(move || {
                        for _ in 0..3 {
                            let too_late = failed.load(Ordering::Acquire);
                            match commit(&store, &[0], Durability::Full) {
                                Ok(committed) => {
                                    assert!(!too_late, "a commit begun after the failure was acknowledged");
                                    acknowledged.fetch_max(committed.sequence, Ordering::AcqRel);
                                }
                                Err(error) => {
                                    assert!(
                                        matches!(error, Error::Io { .. } | Error::ReadOnly { .. }),
                                        "{error}"
                                    );
                                    failed.store(true, Ordering::Release);
                                }
                            }
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("it holds"));
            assert!(failed.load(Ordering::Acquire), "the fault has come");
            let (acknowledged, there) = (acknowledged.load(Ordering::Acquire), disk.recovered(&[0]));
            assert!(acknowledged <= there, "commit {acknowledged} was acknowledged, and {there} is the last");
        });
    }
    Coverage::assert(&coverage.failed_beside_another, "a log write fails while another is on its way");
}
