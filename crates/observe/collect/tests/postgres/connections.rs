//! Logins, their errors, and limits on time.

use super::{on, on_each, open, soon, take_snapshot};
use collect::postgres::{Postgres, PostgresError, SNAPSHOT_LIMIT};
use collect::{FileNames, Source, SourceError};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};
use testbed::PostgresServer;

fn refusal(connection: &str) -> SourceError {
    Postgres::open(connection).expect_err("it must be refused")
}

#[test]
fn a_server_that_hangs_times_out_and_is_tried_again_later() {
    on(&[15, 18], |_, server| {
        let mut source = open(server);
        take_snapshot(&mut source);
        server.pause();
        for _ in 0..2 {
            let began = Instant::now();
            let error = source.snapshot().expect_err("it hangs");
            let took = began.elapsed();
            assert!(matches!(error.downcast_ref(), Some(PostgresError::TooSlow { .. })), "{error}");
            assert!(took < SNAPSHOT_LIMIT + Duration::from_millis(1500), "{took:?}");
        }
        server.resume();
        take_snapshot(&mut source);
    });
}

#[test]
fn a_table_that_is_locked_is_not_waited_for() {
    on_each(|_, server| {
        server.sql("CREATE TABLE t AS SELECT 1");
        let names = FileNames::default();
        let mut source = open(server).publishing_names(&names);
        let file = server.data_directory().join(server.sql("SELECT pg_relation_filepath('t')"));
        let statements = "BEGIN; LOCK TABLE t; SELECT pg_sleep(60)";
        let mut session = server.session(statements).spawn().unwrap();
        soon("the lock", || {
            (server.sql("SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass AND mode = 'AccessExclusiveLock'") == "1").then_some(())
        });
        let began = Instant::now();
        take_snapshot(&mut source);
        assert_eq!(names.object(&file).as_deref(), Some("postgres.public.t"));
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
        session.kill().unwrap();
        session.wait().unwrap();
    });
}

#[test]
fn a_password_is_used_and_never_printed() {
    on_each(|_, server| {
        server.sql("CREATE ROLE ann LOGIN PASSWORD 'hunter2'; GRANT pg_monitor TO ann");
        let place = format!("127.0.0.1:{}", server.port());
        let url = format!("postgres://ann:hunter2@{place}/postgres");
        let mut source = Postgres::open(&url).unwrap();
        let snapshot = take_snapshot(&mut source);
        assert_eq!(source.name(), format!("postgres {place}"));
        let shown =
            format!("{source:?} {} {snapshot:?}", collect::parse_source(&format!("postgres:{url}")).unwrap());
        assert!(!shown.contains("hunter2"), "{shown}");

        let wrong = refusal(&format!("postgres://ann:hunter3@{place}/postgres"));
        let missing = refusal(&format!(
            "host=127.0.0.1 port={} user=ann dbname=postgres passfile=/nowhere",
            server.port()
        ));
        for error in [&wrong, &missing] {
            assert!(matches!(error.downcast_ref(), Some(PostgresError::Refused { .. })), "{error}");
            let shown = format!("{error} {error:?} {:?} {:?}", error.facts(), error.remedy());
            assert!(!shown.contains("hunter") && shown.contains("PGPASSWORD"), "{shown}");
        }
    });
}

#[test]
fn a_password_file_is_used_only_while_it_is_private() {
    let Some(server) = PostgresServer::start(15) else { return };
    server.sql("CREATE ROLE ann LOGIN PASSWORD 'hunter2'; GRANT pg_monitor TO ann");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pass");
    fs::write(&file, format!("127.0.0.1:{}:*:ann:hunter2\n", server.port())).unwrap();
    let connection =
        format!("host=127.0.0.1 port={} user=ann dbname=postgres passfile={}", server.port(), file.display());
    let mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o600);
    take_snapshot(&mut Postgres::open(&connection).unwrap());
    mode(0o644);
    let facts = refusal(&connection).facts().join("\n");
    assert!(facts.contains("0600") && facts.contains(file.to_str().unwrap()), "{facts}");
}

#[test]
fn a_role_without_pg_monitor_gets_a_note_with_the_grant() {
    on_each(|version, server| {
        server.sql("CREATE ROLE plain LOGIN");
        let connection = server.connection().replace("user=postgres", "user=plain");
        let mut source = Postgres::open(&connection).unwrap();
        let grant = "GRANT pg_monitor TO \"plain\";";
        let snapshot = take_snapshot(&mut source);
        assert!(snapshot.notes.iter().any(|note| note.contains(grant)), "{version}: {:?}", snapshot.notes);
        assert!(!snapshot.samples.is_empty() && snapshot.waits.is_empty());
        assert_eq!(source.directory(), None);
        server.sql(grant);
        let snapshot = take_snapshot(&mut Postgres::open(&connection).unwrap());
        assert!(!snapshot.notes.iter().any(|note| note.contains("GRANT")), "{version}: {:?}", snapshot.notes);
    });
}

#[test]
fn a_server_on_this_machine_is_found_with_its_processes() {
    on_each(|_, server| {
        let mut source = open(server);
        assert_eq!(source.directory(), Some(server.data_directory()));
        soon("the same processes", || {
            let snapshot = take_snapshot(&mut source);
            assert!(snapshot.samples.iter().all(|sample| sample.file.drive.is_some()));
            let mut theirs = server.processes();
            let mut ours = source.processes().to_vec();
            theirs.sort_unstable();
            ours.sort_unstable();
            (ours == theirs && ours.len() > 5).then_some(())
        });
    });
}

#[test]
fn the_error_of_a_closed_port_names_the_place() {
    let directory = tempfile::tempdir().unwrap();
    let error = refusal(&format!("host={} user=ann password=hunter2", directory.path().display()));
    assert!(matches!(error.downcast_ref(), Some(PostgresError::Unreachable { .. })), "{error}");
    assert!(error.to_string().contains(directory.path().to_str().unwrap()), "{error}");
    assert!(!format!("{error:?}").contains("hunter2"));
}

/// The commands in the error are run unchanged, except for the user that runs psql.
#[test]
fn the_error_of_a_missing_role_has_the_command_that_creates_it() {
    let Some(server) = PostgresServer::start(15) else { return };
    for name in ["nobody", "o'hara \"x\""] {
        let quoted = name.replace('\'', "\\'");
        let connection = |more: &str| {
            let place = server.connection();
            let place = place.split(" user=").next().unwrap();
            format!("{place} user='{quoted}' {more}")
        };
        let error = refusal(&connection("dbname=postgres"));
        let facts = error.facts();
        let command = facts[0].strip_prefix("a role that is enough: sudo -u postgres psql ").unwrap();
        let psql = format!("psql -Xq -d '{}' {command}", server.connection());
        let done = std::process::Command::new("sh").args(["-c", &psql]).output().unwrap();
        assert!(done.status.success(), "{psql}: {}", String::from_utf8_lossy(&done.stderr));
        let snapshot = take_snapshot(&mut Postgres::open(&connection("dbname=postgres")).unwrap());
        assert!(!snapshot.notes.iter().any(|note| note.contains("GRANT")), "{:?}", snapshot.notes);

        // Without a database, the role's name is the database's.
        let error = refusal(&connection(""));
        assert!(error.facts()[0].contains("dbname=postgres"), "{error} {:?}", error.facts());
    }
}
