//! Output of `headroom log` for a store's log files, as text and as JSON.

use pagestore::inspect::{Anatomy, LogInfo, WhyHeld};
use pagestore::{Lsn, PageNo};
use serde_json::{Value, json};
use std::fmt::Write;

pub fn info_text(info: &LogInfo) -> String {
    let state = if info.clean { "closed, nothing to recover" } else { "not closed: opening it recovers" };
    let mut text = format!(
        "store {:032x}, pages of {} bytes, log blocks of multiples of {}\n{state}; times opened: {}\n\
         redo from {}, last record {}, last commit {}\nto redo: {} commits, {} pages\n\n\
         slot       offset        size    vlf  status  parity  created                       blocks        used    index\n",
        info.store,
        info.page_bytes,
        info.log_sector_bytes,
        info.epoch,
        info.redo,
        info.last,
        info.last_sequence,
        info.commits,
        info.pages
    );
    for vlf in &info.vlfs {
        let created = if vlf.vlf == 0 { "never used".into() } else { vlf.created.to_string() };
        let index = vlf.index_entries.map_or_else(|| "-".into(), |entries| entries.to_string());
        let _ = writeln!(
            text,
            "{:4} {:12} {:11} {:6} {:7} {:7}  {created:26} {:9} {:11} {index:>8}",
            vlf.slot, vlf.offset, vlf.bytes, vlf.vlf, vlf.status, vlf.parity, vlf.blocks, vlf.used_bytes
        );
    }
    text
}

pub fn info_json(info: &LogInfo) -> Value {
    json!({
        "store": format!("{:032x}", info.store),
        "page_bytes": info.page_bytes,
        "log_sector_bytes": info.log_sector_bytes,
        "epoch": info.epoch,
        "clean": info.clean,
        "redo_lsn": info.redo.to_string(),
        "last_lsn": info.last.to_string(),
        "last_commit": info.last_sequence,
        "commits_to_redo": info.commits,
        "pages_to_redo": info.pages,
        "vlfs": info.vlfs.iter().map(|vlf| json!({
            "slot": vlf.slot,
            "offset": vlf.offset,
            "bytes": vlf.bytes,
            "vlf": vlf.vlf,
            "status": vlf.status,
            "parity": vlf.parity,
            "created_lsn": vlf.created.to_string(),
            "blocks": vlf.blocks,
            "used_bytes": vlf.used_bytes,
            "index_entries": vlf.index_entries,
        })).collect::<Value>(),
    })
}

pub fn why_text(why: &WhyHeld) -> String {
    let mut text =
        format!("virtual log files that are needed: {}, from {} to {}\n", why.active, why.redo, why.last);
    text.push_str(&held_by_pages(why.pages, why.oldest_page));
    if let Some((tx, lsn, records)) = why.open_transaction {
        let _ = writeln!(text, "transaction {tx} had not ended: {records} records since {lsn}");
    }
    match why.last_checkpoint {
        Some(lsn) => {
            let _ = writeln!(text, "the last checkpoint in this log ended at {lsn}");
        }
        None => text.push_str("no checkpoint has ended in this part of the log\n"),
    }
    text
}

/// A sentence on the pages that hold the log's beginning.
pub fn held_by_pages(pages: u64, oldest: Option<(PageNo, Lsn)>) -> String {
    let Some((page, lsn)) = oldest else {
        return "no page waits to be written: nothing holds it but its own end\n".into();
    };
    format!(
        "held by {pages} pages that only the log has; page {page} longest, since {lsn}: a checkpoint frees them\n"
    )
}

/// A page and the record that it needs.
pub fn page_json((page, lsn): (PageNo, Lsn)) -> Value {
    json!({"page": page.0, "lsn": lsn.to_string()})
}

pub fn why_json(why: &WhyHeld) -> Value {
    json!({
        "redo_lsn": why.redo.to_string(),
        "last_lsn": why.last.to_string(),
        "active_vlfs": why.active,
        "pages": why.pages,
        "oldest_page": why.oldest_page.map(page_json),
        "open_transaction": why.open_transaction.map(|(tx, lsn, records)| {
            json!({"tx": tx, "lsn": lsn.to_string(), "records": records})
        }),
        "last_checkpoint_lsn": why.last_checkpoint.map(|lsn| lsn.to_string()),
    })
}

pub fn anatomy_text(anatomy: &Anatomy) -> String {
    let mut text = format!(
        "commit {}, transaction {}: records {} to {}\n{} pages whole, {} bytes; {} pages by what changed, {} bytes\n\n\
         block                          bytes  padding  records  commits  durable when built\n",
        anatomy.sequence,
        anatomy.tx,
        anatomy.lsns.0,
        anatomy.lsns.1,
        anatomy.images.0,
        anatomy.images.1,
        anatomy.deltas.0,
        anatomy.deltas.1
    );
    for block in &anatomy.blocks {
        let _ = writeln!(
            text,
            "{} {:12} {:8} {:8} {:8}  {}",
            block.lsn, block.bytes, block.padding_bytes, block.records, block.commits, block.witness
        );
    }
    text
}

pub fn anatomy_json(anatomy: &Anatomy) -> Value {
    json!({
        "commit": anatomy.sequence,
        "tx": anatomy.tx,
        "first_lsn": anatomy.lsns.0.to_string(),
        "last_lsn": anatomy.lsns.1.to_string(),
        "images": anatomy.images.0,
        "image_bytes": anatomy.images.1,
        "deltas": anatomy.deltas.0,
        "delta_bytes": anatomy.deltas.1,
        "blocks": anatomy.blocks.iter().map(|block| json!({
            "lsn": block.lsn.to_string(),
            "bytes": block.bytes,
            "padding_bytes": block.padding_bytes,
            "records": block.records,
            "commits": block.commits,
            "witness_lsn": block.witness.to_string(),
        })).collect::<Value>(),
    })
}
