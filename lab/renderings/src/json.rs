//! JSON of experiments. Keys are stable; an unknown figure is `{"unknown": "<reason>"}` or null, never 0.

use experiments::{CommitResult, CommitStudy, Footprint, RecoverResult, RecoverStudy};
use report::json::{add, plain};
use serde_json::{Value, json};

/// Rows committed in batches.
pub fn commits(study: &CommitStudy, version: &str) -> Value {
    let result = |result: &CommitResult| {
        json!({
            "engine": result.engine,
            "durability": result.durability,
            "batch": result.batch,
            "rows": result.rows,
            "commits": result.commits,
            "seconds": result.seconds,
            "rows_per_s": result.rows_per_s(),
            "commit_ns": result.commit_ns(),
            "log_writes": result.log.writes,
            "log_writes_per_commit": result.log_writes_per_commit(),
            "log_write_bytes": result.log.write_bytes,
            "log_write_bytes_mean": result.log.write_bytes_mean(),
            "log_syncs": result.log.syncs,
            "log_wait_ns": result.log.wait_ns,
            "data_writes": result.data.writes,
            "data_write_bytes": result.data.write_bytes,
            "data_syncs": result.data.syncs,
            "data_wait_ns": result.data.wait_ns,
            "syncs": result.syncs(),
            "wait_share": result.wait_share(),
        })
    };
    json!({
        "headroom_version": version,
        "dir": study.dir,
        "rows": study.rows,
        "results": study.results.iter().map(result).collect::<Vec<Value>>(),
        "sentences": study.sentences(),
        "notes": study.notes,
    })
}

/// Crashed engines opened again.
pub fn recoveries(study: &RecoverStudy, version: &str) -> Value {
    let result = |result: &RecoverResult| {
        json!({
            "engine": result.engine,
            "strategy": result.strategy.name(),
            "opened_ms": result.opened_s * 1e3,
            "first_read_ms": result.first_read_s * 1e3,
            "first_write_ms": result.first_write_s * 1e3,
            "full_recovery_s": result.full_s,
            "pages": result.pages,
            "page_bytes": result.page_bytes,
            "pages_left_at_first_read": result.pages_left,
            "pages_per_s": result.pages_per_s(),
            "mib_per_s": result.mib_per_s(),
            "log_bytes": result.log_bytes,
            "commits": result.commits,
            "pages_compared": result.checked,
            "ios": result.io.ios(),
            "reads": result.io.reads,
            "read_bytes": result.io.read_bytes,
            "writes": result.io.writes,
            "write_bytes": result.io.write_bytes,
            "syncs": result.io.syncs,
            "stall_ns": result.io.stall_ns,
            "n": result.n(),
            "n_max": result.io.n_max,
            "counted_by": result.counted_by,
        })
    };
    json!({
        "headroom_version": version,
        "dir": study.dir,
        "emulated": study.emulated,
        "pages": study.pages,
        "data_pages": study.data_pages,
        "log_bytes": study.log_bytes,
        "results": study.results.iter().map(result).collect::<Vec<Value>>(),
        "left_out": study.left_out,
        "sentences": study.sentences(),
        "notes": study.all_notes(),
    })
}

/// The footprint of a query: the amounts at each level, the bytes of its pages, and the sentence.
pub fn footprint(footprint: &Footprint, version: &str) -> Value {
    let mut value = plain(footprint);
    let more = json!({
        "headroom_version": version,
        "touched_bytes": footprint.touched_bytes(),
        "read_bytes": footprint.read_bytes(),
        "sentence": footprint.sentence(),
    });
    add(&mut value, more);
    value
}
