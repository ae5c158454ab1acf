use stream::{Ask, Chooser, Stream, Want};
use workload::{Content, Durability, Tally, TraceKind, Workload};

/// One workload in one thread: its [`Stream`], and what the simulation adds to it.
#[derive(Debug)]
pub struct Lane<'a> {
    /// Which of the phase's workloads.
    pub job: usize,
    pub stream: Stream<'a>,
    words: Words,
    /// The first of its I/Os.
    pub first_io: u32,
    /// Behind the last of them, the one that stands for the lane's syncs.
    pub sync_io: u32,
    /// Asks for the next whenever there is room, and nothing else is to be looked at.
    pub plain: bool,
    pub through: bool,
    /// A flush follows each write.
    pub synced_each: bool,
    pub read: Tally,
    pub write: Tally,
}

/// Random words that the content of a write takes, between those that choose I/Os.
#[derive(Clone, Copy, Debug)]
enum Words {
    None,
    Some(u32),
    /// One for each 8 bytes.
    Fresh,
}

impl Words {
    fn of(workload: &Workload) -> Words {
        match &workload.content {
            _ if workload.verify.is_some() => Words::None,
            Content::Random { compressible_percent: 100, .. } | Content::Zeros | Content::Counting => {
                Words::None
            }
            Content::Random { duplicate_percent: 0, .. } | Content::Buffer { .. } => Words::Some(1),
            Content::Random { .. } => Words::Some(2),
            Content::Fresh => Words::Fresh,
        }
    }

    fn take(self, chooser: &mut Chooser, bytes: u32) {
        let words = match self {
            Words::None => 0,
            Words::Some(words) => words,
            Words::Fresh => bytes.div_ceil(8),
        };
        (0..words).for_each(|_| {
            chooser.word();
        });
    }
}

impl<'a> Lane<'a> {
    /// A lane of a job's thread; its I/Os and sync are numbered by whoever makes it.
    pub fn new(job: usize, workload: &Workload, stream: Stream<'a>, ios: std::ops::Range<u32>) -> Lane<'a> {
        Lane {
            job,
            plain: stream.is_plain() && !workload.is_open_loop(),
            stream,
            words: Words::of(workload),
            first_io: ios.start,
            sync_io: ios.end,
            through: workload.shape.durability == Durability::WriteThrough,
            synced_each: workload.shape.durability == Durability::Synced,
            read: Tally::default(),
            write: Tally::default(),
        }
    }

    /// What a plain lane asks for next.
    #[inline]
    pub fn want_plain(&mut self, now_ns: u64) -> Option<Ask> {
        let ask = self.stream.next_plain(now_ns)?;
        self.written(&ask);
        Some(ask)
    }

    /// What to do at `now_ns`; what is wanted must be done.
    #[inline]
    pub fn want(&mut self, now_ns: u64) -> Want {
        let want = self.stream.next(now_ns, |_| true);
        if let Want::Io(ask) = &want {
            self.written(ask);
        }
        want
    }

    #[inline]
    fn written(&mut self, ask: &Ask) {
        if ask.kind == TraceKind::Write {
            self.words.take(&mut self.stream.chooser, ask.bytes);
        }
    }
}
