//! The I/O waits of `pg_stat_activity`: wait_event_type and wait_event, as
//! `src/backend/utils/activity/wait_event_names.txt` names them.

use super::WaitClass;

/// Class of an event; `None` where it is no wait for I/O, or a pause that the server takes on purpose
/// (`CheckpointWriteDelay`, `VacuumDelay`). 16 calls "WALSync", "BufFileRead" and "BufferIO" what 17 calls
/// "WalSync", "BuffileRead" and "BufferIo".
pub fn class(event_type: &str, event: &str) -> Option<WaitClass> {
    let event = event.to_ascii_lowercase();
    Some(match (event_type, event.as_str()) {
        // Asynchronous I/O that is waited for is nearly always a read: 18 writes synchronously.
        ("IO", "datafileread" | "datafileprefetch" | "aioiocompletion" | "aioiouringexecution") => {
            WaitClass::DataRead
        }
        ("IO", "datafilesync" | "datafileimmediatesync") => WaitClass::DataSync,
        ("IO", "walsync" | "walinitsync" | "walsyncmethodassign") => WaitClass::LogSync,
        ("IO", "walwrite" | "walinitwrite") | ("LWLock", "walwrite") => WaitClass::LogWrite,
        // The flush asks the kernel to write on: part of the time of writes in pg_stat_io.
        ("IO", event) if event.starts_with("datafile") => WaitClass::DataWrite,
        ("IO", event) if event.starts_with("buffile") => WaitClass::Temp,
        ("IO", event) if event.starts_with("basebackup") || event.starts_with("copyfile") => {
            WaitClass::Backup
        }
        ("IO", _) => WaitClass::Other,
        ("IPC", "bufferio") => WaitClass::PeersRead,
        ("IPC", "syncrep") => WaitClass::Replication,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_the_same_before_and_after_its_renaming() {
        let pairs = [
            ("IO", "WALSync", "WalSync", WaitClass::LogSync),
            ("IO", "WALWrite", "WalWrite", WaitClass::LogWrite),
            ("IO", "BufFileRead", "BuffileRead", WaitClass::Temp),
            ("IO", "SLRURead", "SlruRead", WaitClass::Other),
            ("IPC", "BufferIO", "BufferIo", WaitClass::PeersRead),
            ("IO", "BaseBackupRead", "BasebackupRead", WaitClass::Backup),
        ];
        for (kind, old, new, expected) in pairs {
            assert_eq!(class(kind, old), Some(expected), "{old}");
            assert_eq!(class(kind, new), Some(expected), "{new}");
        }
    }

    #[test]
    fn deliberate_pauses_and_locks_are_no_io() {
        for event in ["CheckpointWriteDelay", "VacuumDelay", "PgSleep"] {
            assert_eq!(class("Timeout", event), None);
        }
        assert_eq!(class("LWLock", "BufferContent"), None);
        assert_eq!(
            class("LWLock", "WALWrite"),
            Some(WaitClass::LogWrite),
            "waits for the process that writes the log"
        );
        assert_eq!(class("Client", "ClientRead"), None);
    }
}
