//! The everyday workload against a real, small shop.

use everyday::{
    Error, Listener, Observer, Plan, Scope, counted_sqlite, database, experiment, prepare, rebuild_indexes,
    run,
};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use storage::Target;

fn small() -> Plan {
    Plan {
        customers: 500,
        clients: 4,
        transactions_per_s: 200.0,
        duration: Duration::from_secs(1),
        ..Plan::default()
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
    let counts = run(&path, &small(), &AtomicBool::new(false)).unwrap();
    let due = 200;
    assert!(counts.transactions + counts.left_out <= due + 4, "{counts:?} is more than the plan has");
    assert!(counts.inserts > 0 && counts.transactions > counts.updates + counts.inserts);
    let inserted = number(&path, "SELECT count(*) FROM orders") - 2_500;
    let updated = number(&path, "SELECT sum(status) FROM orders");
    let balance = number(&path, "SELECT sum(balance_cents) FROM customers");
    assert_eq!((inserted, updated), (counts.inserts as i64, counts.updates as i64));
    assert_eq!(balance, counts.updates as i64 - 100 * counts.inserts as i64);
}

#[test]
fn the_clients_stop_when_the_flag_is_set() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shop.db");
    prepare(&path, &small(), &mut |_, _| {}).unwrap();
    let stop = AtomicBool::new(false);
    let hour = Plan { duration: Duration::from_secs(3_600), transactions_per_s: 0.01, ..small() };
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
    let counts = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&path, &small(), &stop).unwrap());
        rebuild_indexes(&path, None).unwrap();
        running.join().unwrap()
    });
    assert!(counts.transactions > 0);
    let connection = database::open(&path, None).unwrap();
    let check: String = connection.pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}

#[test]
fn a_plan_that_cannot_be_run_names_the_field() {
    let wrong = [
        (Plan { clients: 0, ..small() }, "clients 0"),
        (Plan { customers: 0, ..small() }, "customers 0"),
        (Plan { transactions_per_s: f64::NAN, ..small() }, "transactions a second NaN"),
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
        let plan = Plan { vfs: Some(vfs.into()), duration: Duration::from_millis(50), ..small() };
        run(&path, &plan, &AtomicBool::new(false))
    };
    assert!(through("unix").is_ok());
    let error = through("no-such-vfs").unwrap_err().to_string();
    assert!(error.contains("no such vfs"), "{error}");
}

struct Silent;

impl Listener for Silent {
    fn progress(&mut self, _: &'static str, _: Duration) {}
}

#[test]
fn the_experiment_observes_the_workload_and_then_the_rebuild() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shop.db");
    let source = collect::sqlite::InProcess::new(counted_sqlite().unwrap());
    let plan = Plan { vfs: Some("headroom".into()), ..small() };
    prepare(&path, &plan, &mut |_, _| {}).unwrap();
    let mut observer = Observer::new(Box::new(source), Target::open(dir.path()).unwrap(), Scope::One);
    let phases = experiment(&path, &plan, &mut observer, &AtomicBool::new(false), &mut Silent).unwrap();
    assert_eq!(
        phases.iter().map(|phase| phase.name).collect::<Vec<_>>(),
        ["everyday workload", "index rebuild"]
    );
    assert!(phases[0].to_unix_ns <= phases[1].from_unix_ns);
    let (_, observation) = observer.observations().remove(0);
    let syncs = observation.moments.iter().filter_map(verdict::Moment::database);
    assert!(syncs.filter_map(|delta| delta.counters.sync.known().map(|sync| sync.count)).sum::<u64>() > 0);
    assert!(observation.data_bytes.is_some_and(|bytes| bytes > 1 << 20), "{observation:?}");
}

#[test]
fn a_stopped_experiment_rebuilds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shop.db");
    prepare(&path, &small(), &mut |_, _| {}).unwrap();
    let source = collect::sqlite::InProcess::new(counted_sqlite().unwrap());
    let mut observer = Observer::new(Box::new(source), Target::open(dir.path()).unwrap(), Scope::One);
    let phases = experiment(&path, &small(), &mut observer, &AtomicBool::new(true), &mut Silent).unwrap();
    assert_eq!(phases.len(), 1);
}
