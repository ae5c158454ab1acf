//! The file instruments of the Performance Schema, each with the operation: one event holds reads, writes and syncs,
//! which mean different things.

use super::WaitClass;

/// Operation on the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// All else in one figure: opens, closes, stats, and syncs, which take most of the time.
    Misc,
}

/// The name of an event's operation, "wait/io/file/sql/binlog (write)".
pub fn event(event: &str, operation: Operation) -> String {
    let operation = match operation {
        Operation::Read => "read",
        Operation::Write => "write",
        Operation::Misc => MISC,
    };
    format!("{event} ({operation})")
}

const MISC: &str = "sync, open, close";

/// Whether the time of a named wait holds syncs that no file's figures hold.
pub(super) fn holds_uncounted_syncs(name: &str) -> bool {
    name.starts_with("wait/io/file/") && name.ends_with(&format!(" ({MISC})"))
}

/// Class of an event; `None` where it is no wait for I/O.
pub fn class(event: &str, operation: Operation) -> Option<WaitClass> {
    use Operation::{Misc, Read, Write};
    let file = event.strip_prefix("wait/io/file/")?;
    Some(match (file, operation) {
        (
            "innodb/innodb_temp_file"
            | "sql/io_cache"
            | "sql/binlog_cache"
            | "sql/hash_join"
            | "myisam/data_tmp",
            _,
        ) => WaitClass::Temp,
        ("innodb/innodb_data_file" | "innodb/innodb_tablespace_open_file", Read) => WaitClass::DataRead,
        ("innodb/innodb_data_file" | "innodb/innodb_dblwr_file", Write) => WaitClass::DataWrite,
        ("innodb/innodb_data_file" | "innodb/innodb_dblwr_file", Misc) => WaitClass::DataSync,
        ("innodb/innodb_log_file" | "sql/binlog" | "aria/translog", Write) => WaitClass::LogWrite,
        ("innodb/innodb_log_file" | "sql/binlog" | "aria/translog", Misc) => WaitClass::LogSync,
        ("aria/MAD" | "aria/MAI" | "myisam/dfile" | "myisam/kfile", Read) => WaitClass::DataRead,
        ("aria/MAD" | "aria/MAI" | "myisam/dfile" | "myisam/kfile", Write) => WaitClass::DataWrite,
        _ => WaitClass::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_writes_and_syncs_of_one_event_are_different_waits() {
        let data = "wait/io/file/innodb/innodb_data_file";
        assert_eq!(class(data, Operation::Read), Some(WaitClass::DataRead));
        assert_eq!(class(data, Operation::Write), Some(WaitClass::DataWrite));
        assert_eq!(class(data, Operation::Misc), Some(WaitClass::DataSync));
        assert_eq!(class("wait/io/file/sql/binlog", Operation::Misc), Some(WaitClass::LogSync));
        assert_eq!(class("wait/io/file/sql/io_cache", Operation::Write), Some(WaitClass::Temp));
        assert_eq!(class("wait/io/socket/sql/client_connection", Operation::Read), None);
        assert_eq!(event(data, Operation::Read), "wait/io/file/innodb/innodb_data_file (read)");
    }
}
