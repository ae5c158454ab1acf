//! pgbench on PostgreSQL.

use super::watching::{Intervals, Watching, is_on, path};
use super::{at_the_device, close, disk, sync, throttle};
use programs::Headroom;
use serde_json::Value;
use testbed::PostgresServer;

/// Of the device's bytes to what the server says that it wrote.
const AMPLIFICATION_MAX: f64 = 2.0;

#[test]
fn pgbench_on_postgres_is_the_same_bytes_at_each_layer_and_a_rebuild_is_seen_as_one() {
    let Some((mut disk, mount)) = disk() else { return };
    let Some(server) = PostgresServer::start_in(15, &mount) else { return };
    server.set("autovacuum", "off");
    server.pgbench(&["-i", "-q", "-s", "5"]);
    // The log restarts in existing segments.
    server.sql("CHECKPOINT");
    server.sql("SELECT pg_switch_wal()");
    server.sql("CHECKPOINT");
    if !throttle(&mut disk) {
        return;
    }
    let headroom = Headroom::new();
    let mut watching = Watching::begin(
        &headroom,
        &format!("postgres:{}", server.connection()),
        server.processes()[0],
        &disk,
    );
    sync(&mount);
    watching.begin_with_everybody(&headroom, &disk);

    let start = watching.wait_for_sample();
    server.pgbench(&["-c", "4", "-t", "400", "-N"]);
    let ran = watching.wait_for_sample();
    server.sql("CHECKPOINT");
    sync(&mount);
    let flushed = watching.wait_for_sample();
    watching.end_with_everybody();
    let number = |statement: &str| server.sql(statement).parse::<u64>().unwrap();
    let index_bytes = number("SELECT pg_relation_size('pgbench_accounts_pkey')");
    let index =
        || server.data_directory().join(server.sql("SELECT pg_relation_filepath('pgbench_accounts_pkey')"));
    let old_index = index();
    server.sql("REINDEX INDEX pgbench_accounts_pkey");
    let new_index = index();
    server.sql("CHECKPOINT");
    sync(&mount);
    let rebuilt = watching.wait_for_sample();
    let later = watching.wait_for_sample();

    let load = watching.between(&start, &flushed);
    load.is_sound();
    let is_data = |path: &str| ["checkpointer", "background writer", "backends"].contains(&path);
    let is_log = |path: &str| path == "wal";
    let is_relation = |row: &Value| path(row).contains("/base/") || path(row).contains("/global/");
    let is_segment = |row: &Value| path(row).contains("/pg_wal/0");
    let on_disk = |row: &Value| is_on(path(row), &mount);
    assert_eq!(load.by_process_source(on_disk), load.asked_by_server(on_disk), "its files are its alone");
    let pages = load.by_server(is_data);
    assert!(pages > 4 << 20, "{pages}");
    // pg_xact and the like are among what the checkpointer wrote, and in no relation.
    close("relations, server and kernel", pages, load.asked_by_server(is_relation), 0.02);
    close("the log, server and kernel", load.by_server(is_log), load.asked_by_server(is_segment), 0.05);
    let device = at_the_device(&load, &disk);
    let amplification = device as f64 / (pages + load.by_server(is_log)) as f64;
    eprintln!("write amplification {amplification:.2}");
    assert!((0.95..AMPLIFICATION_MAX).contains(&amplification), "{amplification}");

    // The log by the load; its pages by the checkpoint, and by no other process.
    let (run, checkpoint) = (watching.between(&start, &ran), watching.between(&ran, &flushed));
    assert!(run.by_server(is_log) > 10 * checkpoint.by_server(is_log), "the log is written by the load");
    assert!(checkpoint.by_server(|path| path == "checkpointer") > pages / 2, "its pages by the checkpoint");
    let checkpointer = number("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'");
    let checkpointer = format!("pid {checkpointer} (postgres)");
    let by_checkpointer = |row: &Value| is_relation(row) && row["instance"] == checkpointer.as_str();
    let share =
        checkpoint.asked_by_server(by_checkpointer) as f64 / checkpoint.asked_by_server(is_relation) as f64;
    assert!(share > 0.95, "the checkpointer wrote {share:.2} of the relations' bytes");
    let synced = checkpoint.of_server().filter(|row| path(row) == "checkpointer");
    assert_eq!(synced.filter_map(|row| row["syncs"].as_u64()).sum::<u64>(), 1, "one sync phase");

    // Its pages are in no counter of the server: the kernel has them, in the new file of the same relation.
    let rebuild = watching.between(&flushed, &rebuilt);
    rebuild.is_sound();
    assert_ne!(old_index, new_index);
    let is_new = |row: &Value| path(row) == new_index.to_str().unwrap();
    assert!(
        rebuild.asked_by_server(is_new) >= index_bytes,
        "{} of {index_bytes}",
        rebuild.asked_by_server(is_new)
    );
    // By its number until it is committed and looked up again.
    let called = |told: &Intervals| {
        let rows = told.rows("files", |source| source.starts_with("process:"));
        rows.filter(|row| is_new(row)).last().map(|row| row["object"].as_str().unwrap_or_default().to_owned())
    };
    let looks = (0..20).map(|_| called(&watching.between(&flushed, &watching.wait_for_sample())).unwrap());
    let names: Vec<String> =
        looks.take_while(|name| name != "postgres.public.pgbench_accounts_pkey").collect();
    assert!(names.len() < 20, "{names:?}");
    assert!(rebuild.by_server(is_log) > index_bytes / 2, "{} of {index_bytes}", rebuild.by_server(is_log));
    let after = watching.between(&rebuilt, &later);
    assert_eq!(after.asked_by_server(is_new), 0, "nothing of it after its interval");
    // The background writer notes running transactions now and then.
    assert!(after.by_server(is_log) < 64 << 10, "{}", after.by_server(is_log));
}
