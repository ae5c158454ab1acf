//! sysbench on MariaDB.

use super::watching::{Watching, is_on, path};
use super::{at_the_device, close, disk, sync, throttle};
use programs::Headroom;
use serde_json::Value;
use std::process::Command;
use std::time::Duration;
use testbed::MariadbServer;

/// Of the device's bytes to what the server says that it wrote.
const AMPLIFICATION_MAX: f64 = 2.0;

/// 20,000 of two texts of 120 and 60 characters and two numbers.
const ROWS_BYTES: u64 = 20_000 * 188;

fn sysbench(server: &MariadbServer, arguments: &[&str]) -> bool {
    let mut sysbench = Command::new("sysbench");
    sysbench.arg("oltp_write_only").arg(format!("--mysql-socket={}", server.socket().display()));
    sysbench.args(["--mysql-user=root", "--mysql-db=shop", "--tables=1", "--table-size=20000"]);
    match sysbench.args(arguments).output() {
        Ok(done) => {
            assert!(done.status.success(), "sysbench: {}", String::from_utf8_lossy(&done.stdout));
            true
        }
        Err(error) => {
            eprintln!("skipped: sysbench: {error}");
            false
        }
    }
}

/// Until InnoDB has nothing left to write.
fn flush(server: &MariadbServer) {
    server.sql("SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0, innodb_max_dirty_pages_pct = 0");
    let dirty = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = \
                 'Innodb_buffer_pool_pages_dirty'";
    while server.sql(dirty) != "0" {
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn sysbench_on_mariadb_is_the_same_bytes_at_each_layer_and_a_rebuild_is_seen_as_one() {
    let Some((mut disk, mount)) = disk() else { return };
    // Pages stay in memory until they are flushed.
    let memory = ["innodb_buffer_pool_size=128M", "innodb_log_file_size=64M"];
    let lines = [&["performance_schema=ON", "log-bin=binlog"][..], &memory].concat();
    let Some(server) = MariadbServer::start(Some(&mount), &lines) else { return };
    server.sql("CREATE DATABASE shop");
    if !sysbench(&server, &["prepare"]) {
        return;
    }
    if !throttle(&mut disk) {
        return;
    }
    let headroom = Headroom::new();
    let mut watching = Watching::begin(&headroom, &server.url(), server.pid(), &disk);
    flush(&server);
    sync(&mount);
    watching.begin_with_everybody(&headroom, &disk);

    let start = watching.wait_for_sample();
    server.sql("SET GLOBAL innodb_max_dirty_pages_pct = 90");
    sysbench(&server, &["--threads=4", "--events=1500", "--time=0", "run"]);
    let ran = watching.wait_for_sample();
    flush(&server);
    sync(&mount);
    let flushed = watching.wait_for_sample();
    watching.end_with_everybody();
    server.sql(
        "SET GLOBAL innodb_max_dirty_pages_pct = 90; SET sql_log_bin = 0; ALTER TABLE shop.sbtest1 FORCE",
    );
    flush(&server);
    sync(&mount);
    let rebuilt = watching.wait_for_sample();
    let later = watching.wait_for_sample();

    let load = watching.between(&start, &flushed);
    load.is_sound();
    let is_table = |path: &str| path.ends_with("shop/sbtest1.ibd");
    let is_binlog = |path: &str| path.contains("/binlog.0");
    let is_redo = |path: &str| path.ends_with("ib_logfile0");
    let on_disk = |row: &Value| is_on(path(row), &mount);
    assert_eq!(load.by_process_source(on_disk), load.asked_by_server(on_disk), "its files are its alone");
    // Past the page cache: the requested bytes are the written ones.
    let table = load.by_server(is_table);
    assert!(table > 1 << 20, "{table}");
    let asked = |chosen: &dyn Fn(&str) -> bool| load.asked_by_server(|row| chosen(path(row)));
    close("the table, server and kernel", table, asked(&is_table), 0.0);
    close("the table, kernel and block layer", asked(&is_table), load.at_block_layer(is_table), 0.02);
    close("the binary log, server and kernel", load.by_server(is_binlog), asked(&is_binlog), 0.0);
    // Bytes of records, and of the blocks that they are written in.
    let (records, blocks) = (load.by_server(is_redo), asked(&is_redo));
    eprintln!("{records} bytes of redo records in {blocks} of blocks");
    assert!(records <= blocks && blocks < 3 * records, "{records} bytes of records in {blocks}");
    let device = at_the_device(&load, &disk);
    let by_server = blocks
        + load.by_server(|path| path.ends_with(".ibd") || path.ends_with("ibdata1") || is_binlog(path));
    let amplification = device as f64 / by_server as f64;
    eprintln!("write amplification {amplification:.2}");
    assert!((0.95..AMPLIFICATION_MAX).contains(&amplification), "{device} {by_server}");

    // A checkpoint writes pages, and no log to speak of; before it the log is written.
    let (run, checkpoint) = (watching.between(&start, &ran), watching.between(&ran, &flushed));
    assert!(run.by_server(is_redo) > 10 * checkpoint.by_server(is_redo), "the log is written by the load");
    assert!(checkpoint.by_server(is_table) > table / 4, "{} of {table}", checkpoint.by_server(is_table));

    // The rebuild writes the table to a new file, and ends within its interval.
    let rebuild = watching.between(&flushed, &rebuilt);
    rebuild.is_sound();
    assert!(rebuild.by_device() >= ROWS_BYTES, "{}", rebuild.by_device());
    let is_new = |row: &Value| path(row).ends_with(".ibd") && path(row).contains("/shop/");
    let other_file = ["identity-changed", "reopened", "gone"];
    let ended = rebuild.of_server().filter(|row| is_new(row));
    let ended: Vec<&str> = ended.filter_map(|row| row["unknown"].as_str()).collect();
    assert!(ended.iter().any(|reason| other_file.contains(reason)), "{ended:?}");
    let asked = rebuild.asked_by_server(is_new);
    assert!(asked >= ROWS_BYTES, "{asked}");
    let after = watching.between(&rebuilt, &later);
    assert_eq!(after.asked_by_server(is_new), 0, "nothing of it after its interval");
}
