//! A real MariaDB server that works, restarts, crashes, hangs and is misconfigured. Without `mariadbd` (Debian:
//! mariadb-server) these tests print that they are skipped.

#[path = "mysql_server/client.rs"]
mod client;
#[path = "mysql_server/epochs.rs"]
mod epochs;
#[path = "mysql_server/figures.rs"]
mod figures;
#[path = "mysql_server/login.rs"]
mod login;
#[path = "mysql_server/settings.rs"]
mod settings;

use collect::Source;
use collect::mysql::Mysql;
use filestats::{FileInterval, Interval, Reason, Rules, Sample, Snapshot};
use testbed::MariadbServer;

/// A server with the Performance Schema on, and these settings.
fn server(lines: &[&str]) -> Option<MariadbServer> {
    let mut all = vec!["performance_schema=ON"];
    all.extend(lines);
    MariadbServer::start(None, &all)
}

fn open(server: &MariadbServer) -> Mysql {
    Mysql::open(&server.url()).expect("a server that runs")
}

fn take_snapshot(source: &mut Mysql) -> Snapshot {
    let snapshot = source.snapshot().expect("a server that answers");
    let mut names: Vec<_> = snapshot.samples.iter().map(|sample| sample.file.key()).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "a file is sampled once");
    snapshot
}

fn find<'a>(snapshot: &'a Snapshot, end: &str) -> Option<&'a Sample> {
    snapshot.samples.iter().find(|sample| sample.file.path.ends_with(end))
}

fn sample<'a>(snapshot: &'a Snapshot, end: &str) -> &'a Sample {
    find(snapshot, end).unwrap_or_else(|| panic!("no {end} in {:#?}", snapshot.samples))
}

fn between(earlier: &Snapshot, later: &Snapshot) -> Vec<FileInterval> {
    filestats::intervals(earlier, later, Rules::default())
}

/// The interval of the file whose path ends so.
fn interval(earlier: &Snapshot, later: &Snapshot, end: &str) -> Interval {
    let rows = between(earlier, later);
    let row = rows.iter().find(|row| row.file.path.ends_with(end));
    row.unwrap_or_else(|| panic!("no {end} in {rows:#?}")).interval.clone()
}

fn reason(earlier: &Snapshot, later: &Snapshot, end: &str) -> Option<Reason> {
    match interval(earlier, later, end) {
        Interval::Unknown(reason) => Some(reason),
        Interval::Known(_) => None,
    }
}
