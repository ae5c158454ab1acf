use crate::ledger::Ledger;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use storage::AlignedBuffer;
use stream::Chooser;
use stream::random::SplitMix64;
use workload::{Content, Workload};

/// The content of one thread's writes.
///
/// Buffers are filled once ([`Writer::prepare`]); before each write as little as possible is changed
/// ([`Writer::next`]).
#[derive(Clone, Debug)]
pub enum Writer {
    /// Prepared random bytes, made unique by a changed word in every 4 KiB; with a probability one of a few such
    /// words, so that the block repeats.
    Stamped { compressible_percent: u8, repeat_below: u64 },
    /// New random bytes for each write.
    Fresh,
    /// The prepared bytes unchanged.
    Zeros,
    /// The prepared bytes unchanged.
    Counting,
    /// From a random offset of a buffer that all threads share.
    Source { source: Arc<AlignedBuffer>, align: u64 },
    /// With the marks that verification needs.
    Marked(Arc<Ledger>),
}

/// Number of different blocks among those that repeat.
const REPEATED: u64 = 8;
/// Offsets in a source buffer are multiples of this, as in diskspd, and as direct I/O requires.
const SOURCE_ALIGN: u64 = 512;

/// A buffer of `bytes` that the content of writes is taken from, filled from the file (repeatedly if it is shorter) or
/// with random bytes.
///
/// # Errors
/// Where the memory cannot be allocated, or the file cannot be read or is empty.
pub fn source(bytes: u64, file: Option<&Path>, seed: u64) -> io::Result<AlignedBuffer> {
    let mut memory = AlignedBuffer::try_new(usize::try_from(bytes).unwrap_or(usize::MAX), 4096)?;
    let Some(path) = file else {
        let mut words = SplitMix64(seed ^ 0x5eed);
        fill_words(&mut memory, || words.next_word());
        return Ok(memory);
    };
    let mut from = host::open_regular_file(path)?.take(bytes);
    let mut filled = 0;
    while filled < memory.len() {
        match from.read(&mut memory[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    if filled == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is empty"));
    }
    for at in filled..memory.len() {
        memory[at] = memory[at - filled];
    }
    Ok(memory)
}

impl Writer {
    pub fn new(
        workload: &Workload,
        source: Option<&Arc<AlignedBuffer>>,
        ledger: Option<&Arc<Ledger>>,
        memory_align_bytes: u32,
    ) -> Writer {
        if let Some(ledger) = ledger {
            return Writer::Marked(ledger.clone());
        }
        match (&workload.content, source) {
            (Content::Random { compressible_percent, duplicate_percent }, _) => Writer::Stamped {
                compressible_percent: *compressible_percent,
                repeat_below: (1 << 32) * u64::from(*duplicate_percent) / 100,
            },
            (Content::Fresh, _) => Writer::Fresh,
            (Content::Zeros, _) => Writer::Zeros,
            (Content::Counting, _) => Writer::Counting,
            (Content::Buffer { .. }, Some(source)) => Writer::Source {
                source: source.clone(),
                align: SOURCE_ALIGN.max(u64::from(memory_align_bytes)),
            },
            (Content::Buffer { .. }, None) => unreachable!("a job with a buffer has its source"),
        }
    }

    /// Fills a buffer that will be written from.
    pub fn prepare(&self, buffer: &mut [u8], seed: u64, slot: u32) {
        match self {
            Writer::Stamped { compressible_percent, repeat_below } => {
                // Blocks that repeat must be equal in all slots.
                let mut words =
                    SplitMix64(if *repeat_below > 0 { seed } else { seed ^ (u64::from(slot) << 32) });
                fill_words(buffer, || words.next_word());
                for chunk in buffer.chunks_mut(4096) {
                    let zeros = chunk.len() * usize::from(*compressible_percent) / 100;
                    let random = chunk.len() - zeros;
                    chunk[random..].fill(0);
                }
            }
            Writer::Counting => {
                buffer.iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
            }
            Writer::Zeros => buffer.fill(0),
            Writer::Marked(_) | Writer::Fresh => {
                let mut words = SplitMix64(seed ^ (u64::from(slot) << 32));
                fill_words(buffer, || words.next_word());
            }
            Writer::Source { .. } => {}
        }
    }

    /// Updates the buffer for a write at `offset`; or returns the part of the source to write instead.
    #[inline]
    pub fn next<'s>(&'s mut self, buffer: &mut [u8], offset: u64, chooser: &mut Chooser) -> Option<&'s [u8]> {
        match self {
            Writer::Stamped { compressible_percent: 100, .. } | Writer::Zeros | Writer::Counting => None,
            Writer::Stamped { repeat_below, .. } => {
                let word = chooser.word();
                let repeats = *repeat_below > 0 && (chooser.word() >> 32) < *repeat_below;
                stamp(buffer, if repeats { word % REPEATED } else { word });
                None
            }
            Writer::Fresh => {
                fill_words(buffer, || chooser.word());
                None
            }
            Writer::Source { source, align } => {
                let places = (source.len() - buffer.len()) as u64 / *align + 1;
                let at = (chooser.below(places) * *align) as usize;
                Some(&source[at..at + buffer.len()])
            }
            Writer::Marked(ledger) => {
                ledger.mark(buffer, offset);
                None
            }
        }
    }
}

/// Changes one word in each 4 KiB: a deduplicating or compressing device then does not recognize the block, at less cost
/// than new random data.
#[inline]
fn stamp(buffer: &mut [u8], word: u64) {
    for (at, chunk) in buffer.chunks_mut(4096).enumerate() {
        let stamp = word.wrapping_add(at as u64).to_ne_bytes();
        let bytes = chunk.len().min(stamp.len());
        chunk[..bytes].copy_from_slice(&stamp[..bytes]);
    }
}

fn fill_words(buffer: &mut [u8], mut word: impl FnMut() -> u64) {
    for chunk in buffer.chunks_mut(8) {
        chunk.copy_from_slice(&word().to_ne_bytes()[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use stream::ThreadIndex;
    use workload::Shape;

    fn written(content: Content, count: usize) -> Vec<Vec<u8>> {
        let workload = Workload { content, ..Shape::random_write(8192).into() };
        let source = match &workload.content {
            Content::Buffer { bytes, file } => Some(Arc::new(source(*bytes, file.as_deref(), 1).unwrap())),
            _ => None,
        };
        let mut chooser = Chooser::new(&workload, 0..1 << 30, ThreadIndex::ONLY, &Arc::default());
        let mut writer = Writer::new(&workload, source.as_ref(), None, 512);
        let mut buffers = vec![vec![0; 8192]; 4];
        (0_u32..).zip(&mut buffers).for_each(|(slot, buffer)| writer.prepare(buffer, 9, slot));
        let write = |io: usize| {
            let buffer = &mut buffers[io % 4];
            match writer.next(buffer, 0, &mut chooser) {
                Some(source) => source.to_vec(),
                None => buffer.clone(),
            }
        };
        (0..count).map(write).collect()
    }

    fn halves(blocks: &[Vec<u8>]) -> usize {
        blocks.iter().flat_map(|block| block.chunks(4096)).collect::<HashSet<_>>().len()
    }

    #[test]
    fn random_content_never_repeats() {
        assert_eq!(halves(&written(Content::default(), 1000)), 2000);
        assert_eq!(halves(&written(Content::Fresh, 100)), 200);
    }

    #[test]
    fn the_compressible_share_is_zeros_and_the_duplicate_share_repeats() {
        let content = |compressible_percent, duplicate_percent| Content::Random {
            compressible_percent,
            duplicate_percent,
        };
        for block in written(content(40, 0), 10) {
            let zeros = block.iter().filter(|byte| **byte == 0).count();
            assert!((3_270..3_350).contains(&zeros), "{zeros} of 8192");
        }
        let different = written(content(0, 70), 2000).iter().collect::<HashSet<_>>().len();
        assert!((540..680).contains(&different), "{different}: 30 % new, and eight that repeat");
    }

    #[test]
    fn zeros_are_zeros_and_counting_counts() {
        assert!(written(Content::Zeros, 3).iter().flatten().all(|byte| *byte == 0));
        assert!(written(Content::Counting, 3).iter().all(|block| block[..3] == [0, 1, 2] && block[257] == 1));
    }

    #[test]
    fn a_pipe_in_the_place_of_the_buffer_s_file_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        assert!(source(4096, Some(&pipe), 0).unwrap_err().to_string().contains("pipe"));
    }

    #[test]
    fn content_comes_from_random_offsets_of_a_buffer_and_may_come_from_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [7, 8, 9]).unwrap();
        let content = Content::Buffer { bytes: 65_536, file: Some(file.path().into()) };
        assert!(written(content, 5).iter().flatten().all(|byte| (7..=9).contains(byte)));
        let blocks = written(Content::Buffer { bytes: 1 << 20, file: None }, 200);
        assert!(blocks.iter().collect::<HashSet<_>>().len() > 150);
    }
}
