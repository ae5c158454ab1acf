//! The I/O waits of `sys.dm_os_wait_stats`. Their time includes the signal wait, which is the processor's: the source
//! subtracts it.

use super::WaitClass;

/// Class of an event; `None` where it is no wait for I/O.
pub fn class(event: &str) -> Option<WaitClass> {
    Some(match event {
        _ if event.starts_with("PAGEIOLATCH_") => WaitClass::DataRead,
        "WRITELOG" | "LOGMGR_FLUSH" => WaitClass::LogSync,
        "LOGBUFFER" | "LOGMGR_RESERVE_APPEND" => WaitClass::LogWrite,
        "IO_COMPLETION" => WaitClass::Temp,
        "WRITE_COMPLETION" | "PREEMPTIVE_OS_WRITEFILE" => WaitClass::DataWrite,
        "CHKPT" | "PREEMPTIVE_OS_FLUSHFILEBUFFERS" => WaitClass::DataSync,
        "ASYNC_IO_COMPLETION" | "BACKUPIO" | "BACKUPBUFFER" => WaitClass::Backup,
        "LOG_RATE_GOVERNOR" | "POOL_LOG_RATE_GOVERNOR" | "RESMGR_THROTTLED" => WaitClass::Throttled,
        "HADR_SYNC_COMMIT" => WaitClass::Replication,
        "IO_QUEUE_LIMIT" | "IO_RETRY" | "DISKIO_SUSPEND" => WaitClass::Other,
        _ => return None,
    })
}

/// Whether the wait is for a sync, which the server counts of no file.
pub(super) fn holds_uncounted_syncs(event: &str) -> bool {
    class(event) == Some(WaitClass::DataSync)
}

/// Whether the wait may be for a page of tempdb, whose files are temporary ones.
pub(super) fn holds_tempdb(event: &str) -> bool {
    event.starts_with("PAGEIOLATCH_")
}

/// Whether the wait may be for any file: sorts that spill, but also the log that is read, DBCC, pages of allocation.
pub(super) fn holds_all_files(event: &str) -> bool {
    event == "IO_COMPLETION"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latch_of_a_page_read_is_one() {
        for latch in ["SH", "EX", "UP", "KP", "DT", "NL"] {
            assert_eq!(class(&format!("PAGEIOLATCH_{latch}")), Some(WaitClass::DataRead));
        }
        assert_eq!(class("PAGELATCH_EX"), None, "a latch in memory is no I/O");
        assert_eq!(class("CXPACKET"), None);
    }
}
