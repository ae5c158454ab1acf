//! The everyday workload against a real, small shop.

use lab::everyday::{EverydayPlan, prepare, rebuild_indexes, run};
use lab::{Error, database};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn small() -> EverydayPlan {
    EverydayPlan {
        customers: 500,
        clients: 4,
        transactions_per_s: 200.0,
        duration: Duration::from_secs(1),
        ..EverydayPlan::default()
    }
}

fn number(path: &Path, query: &str) -> i64 {
    database::open(path, None).unwrap().query_row(query, [], |row| row.get(0)).unwrap()
}

#[test]
fn clients_keep_the_pace_and_every_commit_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shop.db");
    let mut last = (0, 0);
    prepare(&path, &small(), &mut |done, of| last = (done, of)).unwrap();
    assert_eq!(last, (500, 500));
    let outcome = run(&path, &small(), &AtomicBool::new(false)).unwrap();
    let due = 200;
    assert!(outcome.transactions + outcome.left_out <= due + 4, "{outcome:?} is more than was asked for");
    assert!(outcome.transactions > 0 && outcome.transactions == outcome.reads() + outcome.commits());
    let inserted = number(&path, "SELECT count(*) FROM orders") - 2_500;
    let updated = number(&path, "SELECT sum(status) FROM orders");
    let balance = number(&path, "SELECT sum(balance_cents) FROM customers");
    assert_eq!((inserted, updated), (outcome.inserts as i64, outcome.updates as i64));
    assert_eq!(balance, outcome.updates as i64 - 100 * outcome.inserts as i64);
}

#[test]
fn it_stops_when_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shop.db");
    prepare(&path, &small(), &mut |_, _| {}).unwrap();
    let stop = AtomicBool::new(false);
    let hour = EverydayPlan { duration: Duration::from_secs(3_600), transactions_per_s: 0.01, ..small() };
    let started = Instant::now();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&path, &hour, &stop).unwrap());
        stop.store(true, Ordering::Relaxed);
        running.join().unwrap();
    });
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[test]
fn indexes_are_rebuilt_beside_the_clients() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shop.db");
    prepare(&path, &small(), &mut |_, _| {}).unwrap();
    let stop = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&path, &small(), &stop).unwrap());
        rebuild_indexes(&path, None).unwrap();
        running.join().unwrap()
    });
    assert!(outcome.transactions > 0);
    let connection = database::open(&path, None).unwrap();
    let check: String = connection.pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}

#[test]
fn a_plan_that_cannot_be_run_names_the_field() {
    let wrong = [
        (EverydayPlan { clients: 0, ..small() }, "clients 0"),
        (EverydayPlan { customers: 0, ..small() }, "customers 0"),
        (EverydayPlan { transactions_per_s: f64::NAN, ..small() }, "transactions a second NaN"),
    ];
    for (plan, text) in wrong {
        let error = run(Path::new("/nowhere.db"), &plan, &AtomicBool::new(false)).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
    }
    let error = run(Path::new("/nowhere.db"), &small(), &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, Error::NotOurs { .. }));
}

#[test]
fn a_vfs_is_used_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shop.db");
    prepare(&path, &small(), &mut |_, _| {}).unwrap();
    let through = |vfs: &str| {
        let plan = EverydayPlan { vfs: Some(vfs.into()), duration: Duration::from_millis(50), ..small() };
        run(&path, &plan, &AtomicBool::new(false))
    };
    assert!(through("unix").is_ok());
    let error = through("no-such-vfs").unwrap_err().to_string();
    assert!(error.contains("no such vfs"), "{error}");
}
