//! Relations of the connected database: what is read of each.
//!
//! The server counts blocks that a relation's readers did not find in its own cache; neither their time nor
//! their bytes on the way, nor writes. The process source knows those of each file; files.rs joins them.

use super::answer::Columns;
use super::server::{Server, ServerState, Subject, UNCOUNTED, untimed};
use filestats::{Counters, Figure, FileKind, Meaning, Reason, Sample};
use tokio_postgres::SimpleQueryRow;

/// The busiest that are shown: those of which most blocks were read since their database's last reset.
pub const RELATIONS_MAX: usize = 200;

/// The statement has it as a number.
const _: () = assert!(RELATIONS_MAX == 200);

macro_rules! name_of {
    () => {
        "CASE WHEN c.relkind = 't' THEN
              coalesce((SELECT o.oid::regclass::text FROM pg_class o WHERE o.reltoastrelid = c.oid LIMIT 1),
                       c.relname) || ' (toast)'
              ELSE quote_ident(n.nspname) || '.' || quote_ident(c.relname) END"
    };
}

/// What a row of pg_class (`c`, with `n` of pg_namespace) is called.
pub(super) const NAME: &str = name_of!();

/// No function here takes a lock that a TRUNCATE would hold. Numbers below 16384 are the system's own: last among
/// equals.
pub(super) const BUSIEST: &str = concat!(
    "SELECT c.oid, blocks, pg_relation_filepath(c.oid) AS path, ",
    name_of!(),
    " AS name FROM (
        SELECT oid, pg_stat_get_blocks_fetched(oid) - pg_stat_get_blocks_hit(oid) AS blocks
          FROM pg_class WHERE relkind IN ('r', 'i', 't', 'm') 
         ORDER BY 2 DESC, oid < 16384, oid LIMIT 200) busiest
      JOIN pg_class c USING (oid) JOIN pg_namespace n ON n.oid = c.relnamespace"
);

/// One relation. Its file is its identity: another one after VACUUM FULL, REINDEX or TRUNCATE.
pub(super) fn sample(
    row: &SimpleQueryRow,
    server: &Server,
    now: &ServerState,
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
    let mut sample = server.sample(now, subject, counters);
    sample.file.database = Some(server.database.clone());
    Some(sample)
}
