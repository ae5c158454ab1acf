use crate::clock::now_ns;
use crate::job::RunControl;
use crate::lane::FIRST_BAD_MAX;
use crate::ledger::Ledger;
use crate::live::{LiveStats, RecentStats, RunStage};
use rustix::fs::{Advice, fadvise};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use storage::{AlignedBuffer, Region};
use workload::{BadBlock, Verification};

/// Threads that read, each one block at a time.
const READERS: usize = 8;
/// Blocks that a reader takes from the list at once.
const PORTION: usize = 64;

/// Reads every block whose content is known and checks it. Content of the page cache is made durable and dropped
/// first, so that the data comes from the storage and not from memory. `None` if the watcher interrupted it.
pub fn verify(
    region: &Region,
    ledger: &Ledger,
    block_bytes: u32,
    watch: &mut dyn FnMut(&LiveStats) -> RunControl,
) -> io::Result<Option<Verification>> {
    drop_caches(region)?;
    let began_ns = now_ns();
    let (blocks, ended) = (AtomicU64::new(0), AtomicU64::new(0));
    let (stop, bad) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let written = Mutex::new(ledger.written());
    let take_portion = || -> Vec<(u64, u32)> {
        written.lock().unwrap_or_else(PoisonError::into_inner).by_ref().take(PORTION).collect()
    };
    let read = || {
        let mut buffer = AlignedBuffer::new(block_bytes as usize, 4096);
        let mut portion = take_portion();
        while !portion.is_empty() && !stop.load(Relaxed) {
            for (offset, writes) in portion {
                if let Some(found) = check_block(region, ledger, &mut buffer, offset, writes) {
                    bad.lock().unwrap_or_else(PoisonError::into_inner).push(found);
                }
                blocks.fetch_add(1, Relaxed);
            }
            portion = take_portion();
        }
        ended.fetch_add(1, Relaxed);
    };
    std::thread::scope(|scope| {
        (0..READERS).for_each(|_| drop(scope.spawn(read)));
        while ended.load(Relaxed) < READERS as u64 {
            std::thread::sleep(Duration::from_millis(20));
            let live = live_stats(began_ns, blocks.load(Relaxed), block_bytes);
            if watch(&live) == RunControl::Interrupt {
                stop.store(true, Relaxed);
            }
        }
    });
    if stop.into_inner() {
        return Ok(None);
    }
    let mut first_bad: Vec<BadBlock> = bad.into_inner().unwrap_or_else(PoisonError::into_inner);
    let count = first_bad.len() as u64;
    first_bad.sort_by_key(|bad| bad.offset_bytes);
    first_bad.truncate(FIRST_BAD_MAX);
    Ok(Some(Verification { blocks: blocks.into_inner(), bad: count, first_bad }))
}

fn drop_caches(region: &Region) -> io::Result<()> {
    for member in region.members() {
        member.file.sync_data()?;
        // A file system may ignore it.
        let _ = fadvise(&member.file, 0, None, Advice::DontNeed);
    }
    Ok(())
}

fn check_block(
    region: &Region,
    ledger: &Ledger,
    buffer: &mut [u8],
    offset: u64,
    writes: u32,
) -> Option<BadBlock> {
    match region.read_exact_at(buffer, offset) {
        Ok(()) => ledger.check(buffer, offset, writes),
        Err(error) => Some(BadBlock { offset_bytes: offset, found: format!("not readable: {error}") }),
    }
}

fn live_stats(began_ns: u64, blocks: u64, block_bytes: u32) -> LiveStats {
    LiveStats {
        elapsed: Duration::from_nanos(now_ns() - began_ns),
        stage: RunStage::Verifying,
        ios: blocks,
        bytes: blocks * u64::from(block_bytes),
        stall_ns: 0,
        outstanding: READERS as u64,
        recent: RecentStats::default(),
    }
}
