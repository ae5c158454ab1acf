//! Relations of the connected database: the blocks read of each.
//!
//! The server counts blocks that were not in its cache, but neither their time nor writes. The process source counts those
//! of each file, and `file_names` joins the two.

use super::answer::Columns;
use super::server::{Server, ServerState, Subject, UNCOUNTED, untimed};
use filestats::{Counters, Figure, FileKind, Meaning, Reason, Sample};
use tokio_postgres::SimpleQueryRow;

/// The relations with the most blocks read since the last reset of their database's statistics.
pub const RELATIONS_MAX: usize = 200;

/// The number in the statement.
const _: () = assert!(RELATIONS_MAX == 200);

macro_rules! name_of {
    () => {
        "CASE WHEN c.relkind = 't' THEN
              coalesce((SELECT o.oid::regclass::text FROM pg_class o WHERE o.reltoastrelid = c.oid LIMIT 1),
                       c.relname) || ' (toast)'
              ELSE quote_ident(n.nspname) || '.' || quote_ident(c.relname) END"
    };
}

/// The name of a row of pg_class (`c`, with `n` of pg_namespace).
pub(super) const NAME: &str = name_of!();

/// No function in it waits for a lock that TRUNCATE holds. Relations of the system (below 16384) are last among equals.
pub(super) const BUSIEST: &str = concat!(
    "SELECT c.oid, blocks, pg_relation_filepath(c.oid) AS path, ",
    name_of!(),
    " AS name FROM (
        SELECT oid, pg_stat_get_blocks_fetched(oid) - pg_stat_get_blocks_hit(oid) AS blocks
          FROM pg_class WHERE relkind IN ('r', 'i', 't', 'm') 
         ORDER BY 2 DESC, oid < 16384, oid LIMIT 200) busiest
      JOIN pg_class c USING (oid) JOIN pg_namespace n ON n.oid = c.relnamespace"
);

/// One relation, identified by its file, which changes with VACUUM FULL, REINDEX or TRUNCATE.
pub(super) fn sample(
    row: &SimpleQueryRow,
    server: &Server,
    state: &ServerState,
    reset: &str,
) -> Option<Sample> {
    let (name, file, blocks) = (row.text("name")?, row.text("path")?, row.count("blocks")?);
    let counters = Counters {
        read: untimed(blocks, blocks.saturating_mul(server.block_bytes)),
        write: UNCOUNTED,
        sync: Figure::unknown(Reason::NotCounted),
        busy_ns: Figure::unknown(Reason::NotCounted),
    };
    let subject = Subject {
        path: format!("relation/{}/{name}", server.database),
        kind: FileKind::Data,
        file_id: file.to_owned(),
        database: None,
        reset: reset.to_owned(),
        gap: None,
        meaning: Meaning::BLOCKS,
    };
    let mut sample = server.sample(state, subject, counters);
    sample.file.database = Some(server.database.clone());
    Some(sample)
}
