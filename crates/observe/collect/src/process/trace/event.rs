use super::super::tables::{Aio, FileId, command_text, kind, plain_bytes};
use filestats::{IoFlags, Served, TracedOp};

/// `struct event` of bpf/tell.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub start_ns: u64,
    pub ns: u64,
    pub offset: u64,
    pub bytes: u64,
    pub file: FileId,
    pub tgid: u32,
    pub tid: u32,
    file_flags: u32,
    flags: u32,
    pub n: u32,
    kind: u8,
    how: u8,
    sync: u8,
    missed: u8,
    pub comm: [u8; 16],
}

/// `struct pending` of bpf/pending.h in a trace, of which only the process is read.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct TracedPending {
    start_ns: u64,
    pub tgid: u32,
    started: u32,
    rest: [u64; 7],
}

/// `struct aio` of bpf/aio.h in a trace: the fields of [`Aio`], and those of the trace.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct TracedIocb {
    pub aio: Aio,
    rest: [u64; 7],
}

plain_bytes!(TracedPending = 72, TracedIocb = 112);
const _: () = assert!(size_of::<Event>() == 88);

/// `enum how` of bpf/tell.h.
const BY_RING: u8 = 1;
const BY_AIO: u8 = 2;
const BY_FAULT: u8 = 3;
const BY_COPY: u8 = 4;

/// The RWF_* flags of a single I/O (include/uapi/linux/fs.h).
const RWF: [(u32, IoFlags); 6] = [
    (0x01, IoFlags::HIPRI),
    (0x02, IoFlags::RWF_DSYNC),
    (0x04, IoFlags::RWF_SYNC),
    (0x08, IoFlags::NOWAIT),
    (0x10, IoFlags::RWF_APPEND),
    (0x80, IoFlags::DONTCACHE),
];
/// The bit of O_SYNC that is not O_DSYNC.
const O_SYNC_ALONE: libc::c_int = libc::O_SYNC & !libc::O_DSYNC;

impl Event {
    pub const NOWHERE: u64 = u64::MAX;

    /// `None` where the bytes are too few.
    pub fn read(bytes: &[u8]) -> Option<Event> {
        let bytes = bytes.get(..size_of::<Event>())?;
        // SAFETY: `bytes` has the size of an Event, whose integers are valid for any bytes.
        Some(unsafe { bytes.as_ptr().cast::<Event>().read_unaligned() })
    }

    /// The thread's name, which the kernel truncates to 15 bytes.
    pub fn comm(&self) -> String {
        command_text(&self.comm)
    }

    pub fn op(&self) -> Option<TracedOp> {
        match u32::from(self.kind) {
            0 => Some(TracedOp::Read),
            kind::WRITE => Some(TracedOp::Write),
            kind::SYNC => Some(TracedOp::Sync),
            kind::FAULT => Some(TracedOp::Fault),
            _ => None,
        }
    }

    pub fn io_flags(&self) -> IoFlags {
        let opened = |flag: libc::c_int| self.file_flags & flag as u32 != 0;
        let interface = match self.how {
            BY_RING => IoFlags::URING,
            BY_AIO => IoFlags::AIO,
            BY_FAULT => IoFlags::MMAP,
            BY_COPY => IoFlags::COPY,
            _ => IoFlags::default(),
        };
        if self.how == BY_FAULT {
            return interface;
        }
        let sync = match self.sync {
            1 => IoFlags::FSYNC,
            2 => IoFlags::FDATASYNC,
            3 => IoFlags::RANGE,
            4 => IoFlags::MSYNC,
            _ => IoFlags::default(),
        };
        if self.sync != 0 {
            return interface.with(sync);
        }
        let writes = u32::from(self.kind) == kind::WRITE;
        let osync = opened(O_SYNC_ALONE);
        let flags = interface
            .with_if(opened(libc::O_DIRECT), IoFlags::DIRECT)
            .with_if(writes && osync, IoFlags::OSYNC)
            .with_if(writes && !osync && opened(libc::O_DSYNC), IoFlags::DSYNC)
            .with_if(writes && opened(libc::O_APPEND), IoFlags::APPEND);
        RWF.iter().fold(flags, |flags, (bit, flag)| flags.with_if(self.flags & bit != 0, *flag))
    }

    /// The layer that served the I/O; `None` where it is unknown, as for asynchronous buffered reads, or for a sync,
    /// which may have had nothing to write.
    pub fn served(&self, op: TracedOp, flags: IoFlags, reports_misses: bool) -> Option<Served> {
        let waits = IoFlags::DSYNC.with(IoFlags::OSYNC).with(IoFlags::RWF_DSYNC).with(IoFlags::RWF_SYNC);
        let asynchronous = flags.has(IoFlags::URING.with(IoFlags::AIO));
        match op {
            TracedOp::Fault => Some(Served::Device),
            TracedOp::Sync => None,
            _ if flags.has(IoFlags::DIRECT) => Some(Served::Device),
            TracedOp::Write if flags.has(waits) => Some(Served::Device),
            TracedOp::Write => Some(Served::Cache),
            TracedOp::Read if self.missed != 0 => Some(Served::Device),
            TracedOp::Read if asynchronous || flags.has(IoFlags::COPY) || !reports_misses => None,
            TracedOp::Read => Some(Served::Cache),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: u8, how: u8, file_flags: libc::c_int, flags: u32) -> Event {
        Event {
            start_ns: 1,
            ns: 2,
            offset: Event::NOWHERE,
            bytes: 4096,
            file: FileId { ino: 1, dev: 2, generation: 3 },
            tgid: 4,
            tid: 5,
            file_flags: file_flags as u32,
            flags,
            n: 1,
            kind,
            how,
            sync: 0,
            missed: 0,
            comm: *b"fio\0...........\0",
        }
    }

    fn flags_and_served(event: &Event) -> (String, Option<&'static str>) {
        let (op, flags) = (event.op().unwrap(), event.io_flags());
        (flags.to_string(), event.served(op, flags, true).map(Served::word))
    }

    #[test]
    fn flags_say_how_an_io_was_issued_and_what_served_it() {
        assert_eq!(flags_and_served(&event(0, 0, 0, 0)), (String::new(), Some("cache")));
        assert_eq!(
            flags_and_served(&Event { missed: 1, ..event(0, 0, 0, 0) }),
            (String::new(), Some("device"))
        );
        assert_eq!(flags_and_served(&event(0, BY_RING, 0, 0)), ("uring".into(), None));
        assert_eq!(
            flags_and_served(&event(0, BY_AIO, libc::O_DIRECT, 0)),
            ("aio,direct".into(), Some("device"))
        );
        assert_eq!(flags_and_served(&event(1, 0, libc::O_DSYNC, 8)), ("dsync,nowait".into(), Some("device")));
        assert_eq!(flags_and_served(&event(1, 0, libc::O_SYNC, 0)), ("osync".into(), Some("device")));
        assert_eq!(
            flags_and_served(&event(1, 0, libc::O_APPEND, 2)),
            ("append,rwf-dsync".into(), Some("device"))
        );
        assert_eq!(flags_and_served(&event(1, 0, 0, 0)), (String::new(), Some("cache")));
        assert_eq!(
            flags_and_served(&Event { sync: 2, ..event(2, 0, libc::O_DIRECT, 0) }),
            ("fdatasync".into(), None)
        );
        assert_eq!(flags_and_served(&event(4, BY_FAULT, 0, 0)), ("mmap".into(), Some("device")));
        assert_eq!(event(0, 0, 0, 0).comm(), "fio");
    }

    #[test]
    fn too_few_bytes_are_not_an_event() {
        assert!(Event::read(&[0; 87]).is_none());
        assert_eq!(Event::read(&[1; 88]).unwrap().tid, 0x0101_0101);
    }
}
