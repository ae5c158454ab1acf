//! Relations by their files.

use super::{on, open, soon, take_snapshot};
use collect::FileNames;
use collect::postgres::Postgres;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use testbed::PostgresServer;

fn file(server: &PostgresServer, relation: &str) -> PathBuf {
    let file = server.sql(&format!("SELECT pg_relation_filepath('{relation}')"));
    server.data_directory().join(file)
}

fn with(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[test]
fn a_file_has_the_name_of_its_relation_even_after_it_is_rewritten_or_dropped() {
    on(&[15, 18], |_, server| {
        server.sql("CREATE TABLE \"Orders\" (id int PRIMARY KEY, note text)");
        let names = FileNames::default();
        let _source = open(server).publishing_names(&names);
        let object = |path: &Path| names.object(path).unwrap_or_default();
        let orders = file(server, "\"Orders\"");
        assert_eq!(object(&orders), "postgres.public.\"Orders\"");
        assert_eq!(object(&with(&orders, ".3")), "postgres.public.\"Orders\"");
        assert_eq!(object(&with(&orders, "_fsm")), "postgres.public.\"Orders\" (free space map)");
        assert_eq!(object(&with(&orders, "_vm.1 (deleted)")), "postgres.public.\"Orders\" (visibility map)");
        let toast = "SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 'Orders'";
        assert_eq!(object(&file(server, &server.sql(toast))), "postgres.public.\"Orders\" (toast)");
        // Mapped relations, of this database and shared.
        for (catalog, name) in
            [("pg_class", "postgres.pg_catalog.pg_class"), ("pg_database", "pg_catalog.pg_database")]
        {
            assert_eq!(object(&file(server, catalog)), name);
            server.sql(&format!("VACUUM FULL {catalog}"));
            assert_eq!(object(&file(server, catalog)), name, "in a new file");
        }
        // After a rewrite both files have the name; after a drop the old one keeps it.
        let index = file(server, "\"Orders_pkey\"");
        assert_eq!(object(&index), "postgres.public.\"Orders_pkey\"");
        server.sql("REINDEX INDEX \"Orders_pkey\"");
        let rebuilt = file(server, "\"Orders_pkey\"");
        assert_ne!(index, rebuilt);
        assert_eq!(
            (object(&index), object(&rebuilt)),
            (object(&rebuilt), "postgres.public.\"Orders_pkey\"".into())
        );
        server.sql("VACUUM FULL \"Orders\"");
        let rewritten = file(server, "\"Orders\"");
        server.sql("DROP TABLE \"Orders\"");
        assert_eq!(object(&orders), "postgres.public.\"Orders\"");
        assert!(object(&rewritten).starts_with("postgres, relfilenode "), "it was not looked up in time");
        // A file of another cluster, and one of no relation.
        assert_eq!(names.object(Path::new("/elsewhere/base/5/16384")), None);
        assert_eq!(names.object(&server.data_directory().join("postgresql.conf")), None);
        let log = server.data_directory().join("pg_wal/000000010000000000000001");
        assert_eq!(object(&log), "write-ahead log");
    });
}

#[test]
fn an_uncommitted_relation_has_a_number_and_later_its_name() {
    on(&[15], |_, server| {
        let names = FileNames::default();
        let _source = open(server).publishing_names(&names);
        let mut session = server.session("");
        // psql runs the statements of a pipe.
        session.args(["-f", "-"]).stdin(Stdio::piped());
        let mut session = session.spawn().unwrap();
        let mut statements = session.stdin.take().unwrap();
        let directory = server.data_directory().join("base/5");
        let files = || -> Vec<PathBuf> {
            std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect()
        };
        let before = files();
        statements.write_all(b"BEGIN;\nCREATE TABLE later (id int);\n").unwrap();
        let new = soon("a file", || files().into_iter().find(|path| !before.contains(path)));
        let node = new.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(names.object(&new).unwrap(), format!("postgres, relfilenode {node}"));
        statements.write_all(b"COMMIT;\n").unwrap();
        soon("its name", || (names.object(&new).unwrap() == "postgres.public.later").then_some(()));
        drop(statements);
        assert!(session.wait().unwrap().success());
    });
}

#[test]
fn relations_of_other_databases_and_tablespaces_are_named_as_far_as_possible() {
    on(&[15], |_, server| {
        let place = server.data_directory().parent().unwrap().join("run/fast");
        server.sql(&format!("COPY (SELECT 1) TO PROGRAM 'mkdir {}'", place.display()));
        server.sql(&format!("CREATE TABLESPACE fast LOCATION '{}'", place.display()));
        server.sql("CREATE DATABASE shop");
        server.sql("CREATE TABLE t (id int) TABLESPACE fast");
        let names = FileNames::default();
        let _source = open(server).publishing_names(&names);
        let below = server.sql("SELECT pg_relation_filepath('t')");
        let in_fast: PathBuf = Path::new(&below).iter().skip(2).collect();
        assert_eq!(names.object(&place.join(in_fast)).unwrap(), "postgres.public.t");
        let of_shop = server.connection().replace("dbname=postgres", "dbname=shop");
        let mut psql = server.session("");
        psql.args(["-d", &of_shop, "-c", "CREATE TABLE u (id int); SELECT pg_relation_filepath('u')"]);
        let done = psql.output().unwrap();
        let path = server.data_directory().join(String::from_utf8_lossy(&done.stdout).trim());
        let node = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(names.object(&path).unwrap(), format!("shop, relfilenode {node}"));
        let _other = Postgres::open(&of_shop).unwrap().publishing_names(&names);
        assert_eq!(names.object(&path).unwrap(), "shop.public.u");
    });
}

#[test]
fn a_server_that_hangs_or_is_gone_delays_no_snapshot_and_its_names_stay() {
    on(&[15], |_, server| {
        let names = FileNames::default();
        let mut source = open(server).publishing_names(&names);
        let (known, unknown) = (file(server, "pg_class"), file(server, "pg_proc"));
        assert_eq!(names.object(&known).unwrap(), "postgres.pg_catalog.pg_class");
        server.pause();
        let began = Instant::now();
        for _ in 0..20 {
            assert!(names.object(&unknown).unwrap().starts_with("postgres, relfilenode "));
            assert_eq!(names.object(&known).unwrap(), "postgres.pg_catalog.pg_class");
        }
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
        server.resume();
        soon("it answers", || source_answers(&mut source));
        drop(source);
        assert_eq!(names.object(&known).unwrap(), "postgres.pg_catalog.pg_class");
        let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'headroom'";
        soon("nobody is connected", || (server.sql(sessions) == "0").then_some(()));
        let mut again = open(server).publishing_names(&names);
        take_snapshot(&mut again);
        soon("a name by the new connection", || {
            (names.object(&unknown).unwrap() == "postgres.pg_catalog.pg_proc").then_some(())
        });
    });
}

fn source_answers(source: &mut Postgres) -> Option<()> {
    collect::Source::snapshot(source).ok().map(drop)
}
