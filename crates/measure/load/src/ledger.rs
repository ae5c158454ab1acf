use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use stream::random::SplitMix64;
use workload::{BadBlock, Verify};

/// Ledger of the blocks that a run has written and their required content, for the verification after it.
///
/// ```text
/// a written block (checksum, sequence)                   a block's word in the ledger
///  0  "HEADROOM"   8  seed   16  offset                   31    a write is outstanding
/// 24  sequence (u32)   28  CRC-32C of the block           30    a write failed: the content is unknown
///     with this field 0   32  random bytes                 0-29 writes acknowledged
/// ```
/// With [`Verify::Content`] a block consists of words that follow from seed and offset. No two writes of one block are
/// outstanding together, so that its expected content is known exactly.
#[derive(Debug)]
pub struct Ledger {
    pub how: Verify,
    seed: u64,
    base: u64,
    block_bytes: u64,
    blocks: Vec<AtomicU32>,
}

const BUSY: u32 = 1 << 31;
const UNSURE: u32 = 1 << 30;
const COUNT: u32 = UNSURE - 1;
const MAGIC: &[u8; 8] = b"HEADROOM";
const HEADER_BYTES: usize = 32;

/// Bytes of a ledger for each block.
pub const BLOCK_BYTES: u64 = size_of::<AtomicU32>() as u64;
/// Most blocks of a ledger: 4 GiB of memory.
pub const BLOCKS_MAX: u64 = 1 << 30;

impl Ledger {
    /// For `blocks` blocks, the first at offset `base`.
    pub fn new(how: Verify, seed: u64, base: u64, block_bytes: u32, blocks: u64) -> Ledger {
        let blocks = (0..blocks).map(|_| AtomicU32::new(0)).collect();
        Ledger { how, seed, base, block_bytes: u64::from(block_bytes), blocks }
    }

    fn word(&self, offset: u64) -> &AtomicU32 {
        &self.blocks[((offset - self.base) / self.block_bytes) as usize]
    }

    /// Claims a block for a write; `false` while another write of it is outstanding.
    pub fn claim(&self, offset: u64) -> bool {
        self.word(offset).fetch_or(BUSY, Relaxed) & BUSY == 0
    }

    /// Releases a claim of which nothing was written.
    pub fn unclaim(&self, offset: u64) {
        self.word(offset).fetch_and(!BUSY, Relaxed);
    }

    /// Releases a claim after its write has succeeded or failed.
    pub fn release(&self, offset: u64, succeeded: bool) {
        let word = self.word(offset);
        let count = ((word.load(Relaxed) & COUNT) + 1).min(COUNT);
        // A successful write makes the content known again.
        word.store(if succeeded { count } else { count | UNSURE }, Relaxed);
    }

    /// Writes the marks of a claimed block into its buffer.
    pub fn mark(&self, block: &mut [u8], offset: u64) {
        if self.how == Verify::Content {
            let mut words = self.words(offset);
            block
                .chunks_mut(8)
                .for_each(|chunk| chunk.copy_from_slice(&words.next_word().to_le_bytes()[..chunk.len()]));
            return;
        }
        let sequence = (self.word(offset).load(Relaxed) & COUNT) + 1;
        block[..8].copy_from_slice(MAGIC);
        block[8..16].copy_from_slice(&self.seed.to_le_bytes());
        block[16..24].copy_from_slice(&offset.to_le_bytes());
        block[24..28].copy_from_slice(&sequence.to_le_bytes());
        block[28..32].fill(0);
        let sum = crc32c::crc32c(block);
        block[28..32].copy_from_slice(&sum.to_le_bytes());
    }

    fn words(&self, offset: u64) -> SplitMix64 {
        SplitMix64(self.seed ^ offset.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Offsets of the blocks of which the content is known, and how often each was written.
    pub fn written(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        (0_u64..).zip(&self.blocks).filter_map(|(at, word)| {
            let word = word.load(Relaxed);
            (word & (BUSY | UNSURE) == 0 && word > 0)
                .then_some((self.base + at * self.block_bytes, word & COUNT))
        })
    }

    /// Finds the error in a block that was read after the last of its `writes` writes.
    pub fn check(&self, block: &mut [u8], offset: u64, writes: u32) -> Option<BadBlock> {
        let found = if self.how == Verify::Content {
            let mut words = self.words(offset);
            let differs = |(at, chunk): (usize, &[u8])| {
                (chunk != &words.next_word().to_le_bytes()[..chunk.len()]).then_some(at * 8)
            };
            block
                .chunks(8)
                .enumerate()
                .find_map(differs)
                .map(|at| format!("another content from byte {at} on"))
        } else {
            self.check_marks(block, offset, writes)
        };
        let zeros = || block.iter().all(|byte| *byte == 0);
        let found = found.map(|found| if zeros() { "all zeros".to_string() } else { found });
        found.map(|found| BadBlock { offset_bytes: offset, found })
    }

    fn check_marks(&self, block: &mut [u8], offset: u64, writes: u32) -> Option<String> {
        let word = |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().expect("8 bytes"));
        let half = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().expect("4 bytes"));
        if block.len() < HEADER_BYTES || &block[..8] != MAGIC {
            return Some("no block that Headroom wrote".into());
        }
        let (seed, at, sequence, sum) = (word(8), word(16), half(24), half(28));
        block[28..32].fill(0);
        let sound = crc32c::crc32c(block) == sum;
        block[28..32].copy_from_slice(&sum.to_le_bytes());
        if !sound {
            return Some("a damaged block: its checksum does not fit".into());
        }
        if seed != self.seed {
            return Some("a block of another run: a lost write".into());
        }
        if at != offset {
            return Some(format!("a block written for offset {at}"));
        }
        (self.how == Verify::Sequence && sequence != writes)
            .then(|| format!("write {sequence} of this place, not its last one, {writes}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_of(ledger: &Ledger, offset: u64) -> Vec<u8> {
        assert!(ledger.claim(offset));
        let mut block = vec![3; 512];
        ledger.mark(&mut block, offset);
        ledger.release(offset, true);
        block
    }

    fn found(ledger: &Ledger, block: &[u8], offset: u64, writes: u32) -> String {
        ledger.check(&mut block.to_vec(), offset, writes).map_or("well".into(), |bad| bad.found)
    }

    #[test]
    fn each_kind_of_damage_is_reported() {
        let ledger = Ledger::new(Verify::Sequence, 5, 0, 512, 8);
        let first = block_of(&ledger, 1024);
        let second = block_of(&ledger, 1024);
        assert_eq!(ledger.written().collect::<Vec<_>>(), [(1024, 2)]);
        assert_eq!(found(&ledger, &second, 1024, 2), "well");
        assert_eq!(found(&ledger, &first, 1024, 2), "write 1 of this place, not its last one, 2");
        assert_eq!(found(&ledger, &second, 512, 2), "a block written for offset 1024");
        assert_eq!(found(&ledger, &[0; 512], 1024, 2), "all zeros");
        assert_eq!(found(&ledger, &[9; 512], 1024, 2), "no block that Headroom wrote");
        let mut damaged = second;
        damaged[400] ^= 1;
        assert_eq!(found(&ledger, &damaged, 1024, 2), "a damaged block: its checksum does not fit");
        let other = Ledger::new(Verify::Sequence, 6, 0, 512, 8);
        assert_eq!(found(&ledger, &block_of(&other, 1024), 1024, 1), "a block of another run: a lost write");
    }

    #[test]
    fn content_follows_from_the_offset_and_any_changed_byte_is_found() {
        let ledger = Ledger::new(Verify::Content, 5, 4096, 512, 8);
        let mut block = block_of(&ledger, 4608);
        assert_eq!(block, block_of(&ledger, 4608));
        assert_eq!(found(&ledger, &block, 4608, 2), "well");
        block[77] ^= 1;
        assert_eq!(found(&ledger, &block, 4608, 2), "another content from byte 72 on");
    }

    #[test]
    fn a_block_is_claimed_once_and_unknown_after_a_failed_write() {
        let ledger = Ledger::new(Verify::Checksum, 5, 0, 512, 8);
        assert!(ledger.claim(0) && !ledger.claim(0));
        ledger.release(0, false);
        assert_eq!(ledger.written().count(), 0);
        block_of(&ledger, 0);
        assert_eq!(ledger.written().count(), 1);
    }
}
