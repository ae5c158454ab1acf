//! The changes of a file's counters: the newest ones are rows of `file_changes`, older ones blocks of `file_blocks`.
//!
//! ```text
//! file_blocks      [1 ........ 64] [65 ...... 128]                    never the newest change
//! file_changes                                     129 ... 160       a save compares with the last, and appends
//! ```
//!
//! All changes in blocks are older than all rows, and no two blocks of a file overlap. A save that finds more than a
//! block of rows before the newest packs them in its own transaction, so that a kill never duplicates or loses one.
//! Every read is one statement, so that it sees each change once while another process packs.

use crate::blocks::{Block, Broken, CHANGES_MAX, Change};
use crate::exact::{Exact, exact};
use crate::file_rows::{columns_of, counters_at, insert_with_counters};
use crate::packed::Packed;
use crate::statements::rows;
use filestats::Latencies;
use rusqlite::types::Type;
use rusqlite::{Connection, Row, ToSql, named_params};

/// Whether histograms are read too: they take most of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Counters,
    Histograms,
}

/// The most blocks that one save packs of a file, so that it does not take long.
const PACKED_MAX: usize = 4;
/// One in this many changes of a file checks whether there are rows to pack.
const CHECK_EVERY: u64 = 16;

/// The changes of a file that an interval between two captures needs: the newest one up to `first`, and all after it up
/// to `last`.
pub(crate) fn between(
    connection: &Connection,
    file: i64,
    first: i64,
    last: i64,
    read: Read,
) -> rusqlite::Result<Vec<Change>> {
    let mut changes = Vec::new();
    let mut rows = connection.prepare_cached(&blocks_and_rows(
        "WHERE s.file = :file AND s.first_capture_id <= :last AND s.first_capture_id >= \
         coalesce((SELECT max(first_capture_id) FROM file_blocks WHERE file = :file AND first_capture_id <= :first), 0)",
        "WHERE s.file = :file AND s.capture_id <= :last AND s.capture_id >= \
         coalesce((SELECT max(capture_id) FROM file_changes WHERE file = :file AND capture_id <= :first), 0)",
        read,
    ))?;
    let mut rows = rows.query(named_params! { ":file": file, ":first": first, ":last": last })?;
    while let Some(row) = rows.next()? {
        // Changes before the newest one up to `first` are not needed.
        let needed =
            |block: &Block| Some((block.newest_until(first).unwrap_or(0), block.newest_until(last)?));
        push_changes(row, read, needed, &mut changes)?;
    }
    // SQL guarantees no order of a UNION ALL.
    changes.sort_by_key(|change| change.capture);
    let before = changes.partition_point(|change| change.capture <= first).saturating_sub(1);
    changes.drain(..before);
    Ok(changes)
}

/// The newest change of a file up to a capture.
pub(crate) fn newest(
    connection: &Connection,
    file: i64,
    capture: i64,
    read: Read,
) -> rusqlite::Result<Option<Change>> {
    let mut rows = connection.prepare_cached(&blocks_and_rows(
        "WHERE s.id = (SELECT id FROM file_blocks WHERE file = :file AND first_capture_id <= :capture \
         ORDER BY first_capture_id DESC LIMIT 1)",
        "WHERE s.file = :file AND s.capture_id = \
         (SELECT max(capture_id) FROM file_changes WHERE file = :file AND capture_id <= :capture)",
        read,
    ))?;
    let mut rows = rows.query(named_params! { ":file": file, ":capture": capture })?;
    let mut changes = Vec::new();
    while let Some(row) = rows.next()? {
        push_changes(row, read, |block| block.newest_until(capture).map(|n| (n, n)), &mut changes)?;
    }
    Ok(changes.into_iter().max_by_key(|change| change.capture))
}

/// Packs the rows of a file that changed in a capture, in one of [`CHECK_EVERY`] captures.
pub(crate) fn pack_now_and_then(connection: &Connection, file: i64, capture: i64) -> rusqlite::Result<()> {
    // A hash of both (Fibonacci hashing) distributes files that change in every capture over the captures.
    let mixed =
        file.wrapping_add(capture.wrapping_mul(0x51)).cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    if mixed >> 32 & (CHECK_EVERY - 1) == 0 {
        pack(connection, file, CHANGES_MAX)?;
    }
    Ok(())
}

/// Packs the oldest rows of a file while it has at least `least` beside the newest. Returns how many rows were packed.
pub(crate) fn pack(connection: &Connection, file: i64, least: usize) -> rusqlite::Result<usize> {
    let count: usize = connection
        .prepare_cached("SELECT count(*) FROM (SELECT 1 FROM file_changes WHERE file = ? LIMIT ?)")?
        .query_row((file, least.max(1) + 1), |row| row.get(0))?;
    if count <= least.max(1) {
        return Ok(0);
    }
    let query = format!(
        "SELECT {}, s.capture_id, s.latencies FROM file_changes s WHERE file = ? ORDER BY capture_id LIMIT ?",
        columns_of("s")
    );
    let oldest = rows(connection, &query, (file, PACKED_MAX * CHANGES_MAX + 1), change)?;
    // The newest row stays a row: the next save is compared with it.
    let mut rest = &oldest[..oldest.len() - 1];
    let mut last = None;
    for _ in 0..PACKED_MAX {
        let Some(block) = Block::pack(rest).filter(|_| rest.len() >= least.max(1)) else { break };
        insert(connection, file, &block)?;
        last = Some(block.last_capture);
        rest = &rest[block.changes..];
    }
    let Some(last) = last else { return Ok(0) };
    connection
        .prepare_cached("DELETE FROM file_changes WHERE file = ? AND capture_id <= ?")?
        .execute((file, last))
}

/// Removes the changes of a file in some captures. The rest of a block is merged with the block before it where it
/// fits.
pub(crate) fn remove(connection: &Connection, file: i64, captures: &[i64]) -> rusqlite::Result<()> {
    let (Some(first), Some(last)) = (captures.first(), captures.last()) else { return Ok(()) };
    let mut delete =
        connection.prepare_cached("DELETE FROM file_changes WHERE file = ? AND capture_id = ?")?;
    let mut left = captures.len();
    for capture in captures {
        left -= delete.execute((file, *capture))?;
    }
    if left == 0 {
        return Ok(());
    }
    // The blocks with these changes, and the one before.
    let mut rows = connection.prepare_cached(&format!(
        "SELECT {}, {BLOCK_COLUMNS}, s.id FROM file_blocks s WHERE file = :file AND first_capture_id <= :last \
         AND first_capture_id >= coalesce((SELECT first_capture_id FROM file_blocks WHERE file = :file \
         AND first_capture_id <= :first ORDER BY first_capture_id DESC LIMIT 1 OFFSET 1), 0) ORDER BY first_capture_id",
        columns_of("s")
    ))?;
    let mut rows = rows.query(named_params! { ":file": file, ":first": first, ":last": last })?;
    let mut blocks: Vec<(i64, Vec<Change>)> = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, block) = (row.get("id")?, block(row)?);
        let mut changes = Vec::new();
        unpack(&block, 0, block.changes - 1, Read::Histograms, &mut changes)?;
        blocks.push((id, changes));
    }
    let mut remaining: Vec<Change> = Vec::new();
    let mut delete = connection.prepare_cached("DELETE FROM file_blocks WHERE id = ?")?;
    for (at, (id, changes)) in blocks.into_iter().enumerate() {
        let before = changes.len();
        let kept: Vec<Change> =
            changes.into_iter().filter(|change| captures.binary_search(&change.capture).is_err()).collect();
        // A block before that is more than half full is not rewritten.
        if kept.len() == before && at == 0 && before > CHANGES_MAX / 2 {
            continue;
        }
        delete.execute([id])?;
        remaining.extend(kept);
    }
    let mut rest = remaining.as_slice();
    while let Some(block) = Block::pack(rest) {
        insert(connection, file, &block)?;
        rest = &rest[block.changes..];
    }
    assert!(rest.is_empty(), "changes that were in blocks fit into blocks");
    Ok(())
}

fn insert(connection: &Connection, file: i64, block: &Block) -> rusqlite::Result<()> {
    let widths: String = block.widths.iter().map(|width| char::from(b'0' + *width as u8)).collect();
    let others: &[(_, &dyn ToSql)] = &[
        ("file", &file),
        ("first_capture_id", &block.first_capture),
        ("last_capture_id", &block.last_capture),
        ("changes", &block.changes),
        ("read_unit", &Exact(block.units[0])),
        ("write_unit", &Exact(block.units[1])),
        ("widths", &widths),
        ("packed", &block.packed),
        ("latencies", &block.latencies),
    ];
    insert_with_counters(connection, "file_blocks", others, &block.least.0, block.least.1)
}

/// The columns that [`block`] reads after the counters.
const BLOCK_COLUMNS: &str = "s.first_capture_id, s.latencies, s.changes, s.last_capture_id, s.read_unit, s.write_unit, \
                             s.widths, s.packed";

/// A query for blocks and rows of a file together.
fn blocks_and_rows(blocks_where: &str, rows_where: &str, read: Read) -> String {
    let columns = columns_of("s");
    let (blocks, rows) = match read {
        Read::Histograms => (BLOCK_COLUMNS.to_owned(), "s.latencies"),
        Read::Counters => (BLOCK_COLUMNS.replace("s.latencies", "NULL"), "NULL"),
    };
    format!(
        "SELECT {columns}, {blocks} FROM file_blocks s {blocks_where} UNION ALL \
         SELECT {columns}, s.capture_id, {rows}, NULL, NULL, NULL, NULL, NULL, NULL FROM file_changes s {rows_where}"
    )
}

/// Reads a row of [`blocks_and_rows`]: the change that it is, or the changes of its block from and until those that
/// `needed` returns.
fn push_changes(
    row: &Row<'_>,
    read: Read,
    needed: impl Fn(&Block) -> Option<(usize, usize)>,
    changes: &mut Vec<Change>,
) -> rusqlite::Result<()> {
    if row.get::<_, Option<i64>>(19)?.is_none() {
        changes.push(change(row)?);
        return Ok(());
    }
    let block = block(row)?;
    needed(&block).map_or(Ok(()), |(from, until)| unpack(&block, from, until, read, changes))
}

fn change(row: &Row<'_>) -> rusqlite::Result<Change> {
    let (counters, size_bytes) = counters_at(row)?;
    let latencies = row.get::<_, Option<Packed<Latencies>>>(18)?.map(|Packed(latencies)| latencies);
    Ok(Change { capture: row.get(17)?, counters, size_bytes, latencies })
}

fn block(row: &Row<'_>) -> rusqlite::Result<Block> {
    let widths: String = row.get(23)?;
    let widths: Vec<u32> = widths.bytes().map(|byte| u32::from(byte).wrapping_sub(u32::from(b'0'))).collect();
    let block = Block {
        first_capture: row.get(17)?,
        latencies: row.get(18)?,
        changes: row.get(19)?,
        last_capture: row.get(20)?,
        least: counters_at(row)?,
        units: [exact(row, 21)?, exact(row, 22)?],
        widths: widths.try_into().map_err(|_| broken(Broken::WIDTHS))?,
        packed: row.get(24)?,
    };
    block.checked().map_err(broken)
}

fn unpack(
    block: &Block,
    from: usize,
    until: usize,
    read: Read,
    changes: &mut Vec<Change>,
) -> rusqlite::Result<()> {
    let latencies = match read {
        Read::Histograms => block.latencies(until).map_err(broken)?,
        Read::Counters => None,
    };
    for n in from..=until {
        let mut change = block.change(n).map_err(broken)?;
        change.latencies = latencies.as_ref().and_then(|all| all.get(n).cloned());
        changes.push(change);
    }
    Ok(())
}

fn broken(error: Broken) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(24, Type::Blob, error.into())
}
