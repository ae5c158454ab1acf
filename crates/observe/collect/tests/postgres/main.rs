//! The PostgreSQL source against real servers of each installed version.

mod connections;
mod counts;
mod epochs;
mod names;
mod passwords;
mod timing;
mod tls;
mod truth;
mod waits;

use collect::Source;
use collect::postgres::Postgres;
use filestats::{FileInterval, Interval, Reason, Rules, Snapshot, intervals};
use std::time::{Duration, Instant};
use testbed::PostgresServer;

/// Versions that count differently.
const VERSIONS: [u32; 4] = [15, 16, 17, 18];

/// Longer than a session delays its counts (a second), and enough for a busy machine.
const SOON: Duration = Duration::from_secs(20);

/// Runs a test on a server of each installed version.
fn on_each(test: impl Fn(u32, &mut PostgresServer)) {
    on(&VERSIONS, test);
}

/// Runs a test on servers of some versions, for slow tests.
fn on(versions: &[u32], test: impl Fn(u32, &mut PostgresServer)) {
    for version in versions {
        if let Some(mut server) = PostgresServer::start(*version) {
            eprintln!("PostgreSQL {version}");
            test(*version, &mut server);
        }
    }
}

fn open(server: &PostgresServer) -> Postgres {
    Postgres::open(&server.connection()).expect("a running server")
}

fn take_snapshot(source: &mut impl Source) -> Snapshot {
    source.snapshot().expect("a running server")
}

fn between(earlier: &Snapshot, later: &Snapshot) -> Vec<FileInterval> {
    intervals(earlier, later, Rules::default())
}

/// The interval of one sample.
fn interval<'a>(rows: &'a [FileInterval], path: &str) -> &'a Interval {
    let row = rows.iter().find(|row| row.file.path == path);
    &row.unwrap_or_else(|| {
        panic!("no {path} in {:?}", rows.iter().map(|row| &row.file.path).collect::<Vec<_>>())
    })
    .interval
}

/// Why an interval is unknown.
fn reason(interval: &Interval) -> Reason {
    match interval {
        Interval::Unknown(reason) => *reason,
        Interval::Known(delta) => panic!("known: {delta:?}"),
    }
}

/// Runs statements, and waits until their session has reported its counts.
fn run(server: &PostgresServer, statements: &str) {
    server.sql(statements);
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'psql'";
    soon("the session has ended", || (server.sql(sessions) == "1").then_some(()));
}

/// Waits until a condition holds.
fn soon<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(began.elapsed() < SOON, "not within {SOON:?}: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
