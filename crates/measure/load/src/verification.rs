use crate::cpu::now_ns;
use crate::lane::FIRST_BAD_MAX;
use crate::ledger::Ledger;
use crate::live::{Live, Recent, Stage};
use crate::run::Next;
use std::os::fd::AsRawFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use storage::{AlignedBuffer, Region};
use workload::{BadBlock, Verification};

/// Blocks read at once.
const READERS: usize = 8;
/// Blocks that a reader takes at once.
const PORTION: usize = 64;

/// Reads every block whose content is known and checks it. What the page cache holds is first made durable
/// and dropped, so that the storage answers, not memory. `None` if the watcher ended it.
pub fn verify(
    region: &Region,
    ledger: &Ledger,
    block_bytes: u32,
    watch: &mut dyn FnMut(&Live) -> Next,
) -> std::io::Result<Option<Verification>> {
    for member in region.members() {
        member.file.sync_data()?;
        // SAFETY: advice on an open file; a file system may ignore it.
        unsafe { libc::posix_fadvise(member.file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    }
    let written = Mutex::new(ledger.written());
    let (blocks, ended) = (AtomicU64::new(0), AtomicU64::new(0));
    let stop = AtomicBool::new(false);
    let bad = Mutex::new(Vec::new());
    let began_ns = now_ns();
    let read = || {
        let mut buffer = AlignedBuffer::new(block_bytes as usize, 4096);
        while !stop.load(Relaxed) {
            let portion: Vec<(u64, u32)> = match written.lock() {
                Ok(mut written) => written.by_ref().take(PORTION).collect(),
                Err(_) => break,
            };
            if portion.is_empty() {
                break;
            }
            for (offset, writes) in portion {
                let found = match region.read_exact_at(&mut buffer, offset) {
                    Ok(()) => ledger.check(&mut buffer, offset, writes),
                    Err(error) => {
                        Some(BadBlock { offset_bytes: offset, found: format!("not readable: {error}") })
                    }
                };
                if let (Some(found), Ok(mut bad)) = (found, bad.lock()) {
                    bad.push(found);
                }
                blocks.fetch_add(1, Relaxed);
            }
        }
        ended.fetch_add(1, Relaxed);
    };
    let interrupted = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(read)).collect();
        let mut interrupted = false;
        while ended.load(Relaxed) < readers.len() as u64 {
            std::thread::sleep(Duration::from_millis(20));
            let ios = blocks.load(Relaxed);
            let live = Live {
                elapsed: Duration::from_nanos(now_ns() - began_ns),
                stage: Stage::Verifying,
                measuring: false,
                ios,
                bytes: ios * u64::from(block_bytes),
                stall_ns: 0,
                outstanding: READERS as u64,
                recent: Recent::default(),
            };
            if watch(&live) == Next::Interrupt {
                interrupted = true;
                stop.store(true, Relaxed);
            }
        }
        interrupted
    });
    if interrupted {
        return Ok(None);
    }
    let mut first_bad = bad.into_inner().unwrap_or_default();
    let count = first_bad.len() as u64;
    first_bad.sort_by_key(|bad: &BadBlock| bad.offset_bytes);
    first_bad.truncate(FIRST_BAD_MAX);
    Ok(Some(Verification { blocks: blocks.load(Relaxed), bad: count, first_bad }))
}
