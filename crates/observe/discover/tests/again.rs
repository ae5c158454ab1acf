//! Scans again and again, as an agent does.

use collect::discovery::Engine;
use discover::{Database, Options, Scan, Scanner};
use testbed::PostgresServer;

fn of_server<'a>(databases: &'a [Database], server: &PostgresServer) -> Option<&'a Database> {
    let pid = server.processes().first().copied();
    databases.iter().find(|one| Some(one.pid) == pid)
}

#[test]
fn a_server_appears_restarts_and_is_gone() {
    let mut scanner = Scanner::new(Options::default()).unwrap();
    let before = scanner.scan().unwrap();
    let Some(mut server) = PostgresServer::start(15) else { return };
    let first = scanner.scan().unwrap();
    let appeared = first.changes_since(&before).appeared;
    let one = of_server(&appeared, &server).unwrap_or_else(|| panic!("{appeared:#?}"));
    assert_eq!(one.engine, Engine::Postgres);
    let source = one.source.clone().unwrap();
    assert!(source.starts_with("postgres:"), "{one:#?}");
    let former = one.identity();
    let is_former = |one: &&Database| one.identity() == former;

    // A working source is not tried again at once: a hanging server would delay each scan.
    server.pause();
    let hanging = scanner.scan().unwrap();
    server.resume();
    let same = hanging.databases.iter().find(is_former).unwrap();
    assert_eq!(same.source.as_ref(), Some(&source));
    assert!(!hanging.changes_since(&first).changed.iter().any(|one| is_former(&one)));

    server.restart();
    let restarted = scanner.scan().unwrap();
    let changes = restarted.changes_since(&first);
    assert!(changes.gone.iter().any(|one| is_former(&one)), "{changes:#?}");
    assert!(of_server(&changes.appeared, &server).is_some(), "{changes:#?}");

    let last = of_server(&restarted.databases, &server).unwrap().identity();
    drop(server);
    let gone = scanner.scan().unwrap().changes_since(&restarted).gone;
    assert!(gone.iter().any(|one| one.identity() == last), "{gone:#?}");
    assert!(Scan::default().changes_since(&restarted).gone.len() >= gone.len());
}

/// Prints what a scan costs while nothing is new: `cargo test -p discover --test again -- --nocapture costs_little`.
#[test]
fn a_scan_of_what_is_known_costs_little() {
    const SCANS: u32 = 20;
    let _server = PostgresServer::start(15);
    let mut scanner = Scanner::new(Options::default()).unwrap();
    let first = scanner.scan().unwrap();
    let began = std::time::Instant::now();
    for _ in 0..SCANS {
        let again = scanner.scan().unwrap();
        assert_eq!(again.notes, first.notes);
    }
    let processes = collect::discovery::Programs::read().unwrap().iter().count();
    eprintln!("{:?} for a scan of {processes} processes", began.elapsed() / SCANS);
    // Trying the sources again would take longer than that alone.
    assert!(began.elapsed() / SCANS < Options::default().attempt_limit);
}
