use stream::{Chooser, IoRequest, IoStream, NextStep};
use workload::{Content, Durability, Tally, TraceKind, Workload};

/// One workload in one thread: its [`IoStream`], and the state of the simulation.
#[derive(Debug)]
pub struct Lane<'a> {
    /// Index of the workload in the phase.
    pub job: usize,
    pub stream: IoStream<'a>,
    content_words: ContentWords,
    /// Index of its first I/O.
    pub first_io: u32,
    /// Index behind its last I/O: that of the lane's sync.
    pub sync_io: u32,
    /// An I/O only ever waits for a free slot.
    pub plain: bool,
    /// Writes bypass the disk's cache.
    pub through: bool,
    /// A flush follows each write.
    pub synced_each: bool,
    pub read: Tally,
    pub write: Tally,
}

/// Random words that a run draws for the content of a write, between those that choose I/Os: the simulation draws as
/// many, so that both choose the same I/Os.
#[derive(Clone, Copy, Debug)]
enum ContentWords {
    None,
    Some(u32),
    /// One for each 8 bytes.
    Fresh,
}

impl ContentWords {
    fn from_workload(workload: &Workload) -> ContentWords {
        match &workload.content {
            _ if workload.verify.is_some() => ContentWords::None,
            Content::Random { compressible_percent: 100, .. } | Content::Zeros | Content::Counting => {
                ContentWords::None
            }
            Content::Random { duplicate_percent: 0, .. } | Content::Buffer { .. } => ContentWords::Some(1),
            Content::Random { .. } => ContentWords::Some(2),
            Content::Fresh => ContentWords::Fresh,
        }
    }

    fn draw(self, chooser: &mut Chooser, bytes: u32) {
        let words = match self {
            ContentWords::None => 0,
            ContentWords::Some(words) => words,
            ContentWords::Fresh => bytes.div_ceil(8),
        };
        (0..words).for_each(|_| {
            chooser.word();
        });
    }
}

impl<'a> Lane<'a> {
    /// The lane of a job in a thread. `ios` are the indices of its I/Os; the index behind them is that of its sync.
    pub fn new(job: usize, workload: &Workload, stream: IoStream<'a>, ios: std::ops::Range<u32>) -> Lane<'a> {
        Lane {
            job,
            plain: stream.is_plain() && !workload.is_open_loop(),
            stream,
            content_words: ContentWords::from_workload(workload),
            first_io: ios.start,
            sync_io: ios.end,
            through: workload.shape.durability == Durability::WriteThrough,
            synced_each: workload.shape.durability == Durability::Synced,
            read: Tally::default(),
            write: Tally::default(),
        }
    }

    /// The next I/O of a plain lane.
    #[inline]
    pub fn next_plain(&mut self, now_ns: u64) -> Option<IoRequest> {
        let io = self.stream.next_plain(now_ns)?;
        self.draw_content(&io);
        Some(io)
    }

    /// The next step at `now_ns`, which must be executed.
    #[inline]
    pub fn next(&mut self, now_ns: u64) -> NextStep {
        let step = if self.plain {
            self.stream.next_plain(now_ns).map_or(NextStep::Completion, NextStep::Io)
        } else {
            self.stream.next(now_ns, |_| true)
        };
        if let NextStep::Io(io) = &step {
            self.draw_content(io);
        }
        step
    }

    #[inline]
    fn draw_content(&mut self, io: &IoRequest) {
        if io.kind == TraceKind::Write {
            self.content_words.draw(&mut self.stream.chooser, io.bytes);
        }
    }
}
