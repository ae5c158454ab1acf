use std::collections::VecDeque;
use stream::{Chooser, Pace};
use workload::{Content, Durability, Tally, Trace, TraceKind, Workload};

/// One workload in one thread, as a lane of the load crate: it decides what to ask for next by the same rules, with
/// the same random words, so that the same seed asks the same.
#[derive(Debug)]
pub struct Lane<'a> {
    /// Which of the phase's workloads.
    pub job: usize,
    pub chooser: Chooser,
    pub pace: Pace,
    words: Words,
    replay: Option<Replay<'a>>,
    syncs: Option<Syncs>,
    /// Writes that wait for a sync.
    held: VecDeque<Ask>,
    /// I/Os that are not under way.
    pub free: Vec<u32>,
    /// The first of its I/Os.
    pub first_io: u32,
    /// Behind the last of them, the one that stands for the lane's syncs.
    pub sync_io: u32,
    pub in_flight: u32,
    pub counted: u64,
    ios_max: u64,
    /// Asks for the next whenever there is room, and nothing else is to be looked at.
    pub plain: bool,
    pub through: bool,
    /// A flush follows each write.
    pub synced_each: bool,
    pub read: Tally,
    pub write: Tally,
}

/// The recorded I/Os of one thread: every `step`-th of the trace.
#[derive(Debug)]
struct Replay<'a> {
    trace: &'a Trace,
    next: usize,
    step: usize,
}

/// Where the writes of a lane stand between two syncs.
#[derive(Debug)]
struct Syncs {
    every: u32,
    writes: u32,
    writing: u32,
    syncing: bool,
}

/// What a lane wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// This I/O.
    Io(Ask),
    /// Make durable what was written.
    Sync,
    /// Nothing before that time.
    Later(u64),
    /// Nothing before something comes back.
    Completion,
    /// Nothing more.
    Done,
}

/// An I/O that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Which of the I/Os that can be outstanding.
    pub io: u32,
    pub kind: TraceKind,
    pub offset: u64,
    pub bytes: u32,
    pub intended_ns: u64,
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
    pub fn new(
        (job, at): (usize, u32),
        workload: &Workload,
        chooser: Chooser,
        pace: Pace,
        trace: Option<(&'a Trace, usize)>,
        ios_max: Option<u64>,
        ios: std::ops::Range<u32>,
    ) -> Lane<'a> {
        let syncs =
            workload.sync.map(|sync| Syncs { every: sync.writes, writes: 0, writing: 0, syncing: false });
        let plain = pace.is_free() && syncs.is_none() && trace.is_none() && !workload.is_open_loop();
        Lane {
            job,
            chooser,
            pace,
            words: Words::of(workload),
            replay: trace.map(|(trace, step)| Replay { trace, next: at as usize, step }),
            syncs,
            held: VecDeque::new(),
            first_io: ios.start,
            sync_io: ios.end,
            free: ios.rev().collect(),
            in_flight: 0,
            counted: 0,
            ios_max: ios_max.unwrap_or(u64::MAX),
            plain,
            through: workload.shape.durability == Durability::WriteThrough,
            synced_each: workload.shape.durability == Durability::Synced,
            read: Tally::default(),
            write: Tally::default(),
        }
    }

    /// Its count is done, or its trace at an end.
    pub fn is_finished(&self) -> bool {
        let played = |replay: &Replay<'_>| replay.next >= replay.trace.ios.len() && self.in_flight == 0;
        self.counted >= self.ios_max || self.replay.as_ref().is_some_and(played)
    }

    /// What a plain lane asks for next.
    #[inline]
    pub fn want_plain(&mut self, now_ns: u64) -> Option<Ask> {
        if self.counted + u64::from(self.in_flight) >= self.ios_max {
            return None;
        }
        let io = self.free.pop()?;
        self.in_flight += 1;
        let choice = self.chooser.choose(io);
        if choice.write {
            self.words.take(&mut self.chooser, choice.bytes);
        }
        Some(Ask {
            io,
            kind: if choice.write { TraceKind::Write } else { TraceKind::Read },
            offset: choice.offset,
            bytes: choice.bytes,
            intended_ns: now_ns,
        })
    }

    /// What to do at `now_ns`; what is wanted must be done.
    pub fn want(&mut self, now_ns: u64) -> Want {
        if self.counted >= self.ios_max {
            return Want::Done;
        }
        if self.counted + u64::from(self.in_flight) >= self.ios_max {
            return Want::Completion;
        }
        if let Some(syncs) = &mut self.syncs
            && syncs.writes >= syncs.every
            && syncs.writing == 0
            && !syncs.syncing
        {
            syncs.syncing = true;
            return Want::Sync;
        }
        let Some(io) = self.free.last().copied() else { return Want::Completion };
        if self.replay.is_some() {
            return self.want_recorded(io, now_ns);
        }
        if self.may_write()
            && let Some(held) = self.held.pop_front()
        {
            return self.asked(Ask { io, ..held });
        }
        // A write that waits has the place of an outstanding I/O.
        while self.held.len() < self.free.len() {
            let mut intended_ns = now_ns;
            if !self.pace.is_free() {
                let due_ns = self.pace.due_ns(0);
                if due_ns > now_ns {
                    return Want::Later(due_ns);
                }
                intended_ns = if self.pace.is_open() { due_ns } else { now_ns };
            }
            let choice = self.chooser.choose(io);
            if !self.pace.is_free() {
                self.pace.take(now_ns, choice.bytes, &mut self.chooser.random);
            }
            let kind = if choice.write { TraceKind::Write } else { TraceKind::Read };
            let ask = Ask { io, kind, offset: choice.offset, bytes: choice.bytes, intended_ns };
            if !choice.write || self.may_write() {
                return self.asked(ask);
            }
            // It waits for the sync; reads go on.
            self.held.push_back(ask);
        }
        Want::Completion
    }

    fn want_recorded(&mut self, io: u32, now_ns: u64) -> Want {
        let Some(replay) = &mut self.replay else { return Want::Done };
        let Some(recorded) = replay.trace.ios.get(replay.next) else {
            return if self.in_flight > 0 { Want::Completion } else { Want::Done };
        };
        let mut intended_ns = now_ns;
        if self.pace.is_open() {
            intended_ns = self.pace.due_ns(recorded.at_ns);
            if intended_ns > now_ns {
                return Want::Later(intended_ns);
            }
        }
        replay.next += replay.step;
        let (kind, offset) = (recorded.kind, recorded.offset_bytes);
        let bytes = if kind == TraceKind::Sync { 0 } else { recorded.bytes };
        self.asked(Ask { io, kind, offset, bytes, intended_ns })
    }

    fn asked(&mut self, ask: Ask) -> Want {
        self.free.pop();
        self.in_flight += 1;
        if ask.kind == TraceKind::Write {
            self.words.take(&mut self.chooser, ask.bytes);
        }
        if let Some(syncs) = &mut self.syncs
            && ask.kind != TraceKind::Read
        {
            syncs.writes += 1;
            syncs.writing += 1;
        }
        Want::Io(ask)
    }

    fn may_write(&self) -> bool {
        self.syncs.as_ref().is_none_or(|syncs| syncs.writes < syncs.every)
    }

    /// An I/O came back: it can be asked for anew.
    #[inline]
    pub fn returned(&mut self, io: u32, read: bool) {
        self.free.push(io);
        self.in_flight -= 1;
        if let Some(syncs) = &mut self.syncs
            && !read
        {
            syncs.writing -= 1;
        }
    }

    /// A sync came back: what waited for it may go.
    pub fn synced(&mut self) {
        if let Some(syncs) = &mut self.syncs {
            (syncs.writes, syncs.syncing) = (0, false);
        }
    }

    /// Of an open loop: how many I/Os are due before `until_ns` and were not asked for, and the oldest.
    pub fn overdue(&mut self, until_ns: u64) -> (u64, u64) {
        match &self.replay {
            Some(replay) => {
                let due = |at: usize| replay.trace.ios.get(at).map(|io| self.pace.due_ns(io.at_ns));
                let all = (replay.next..replay.trace.ios.len()).step_by(replay.step);
                let count = all.take_while(|at| due(*at).is_some_and(|due_ns| due_ns < until_ns)).count();
                (count as u64, due(replay.next).unwrap_or(until_ns))
            }
            None => {
                let (count, first_ns) = self.pace.clone().overdue(until_ns, &mut self.chooser.random);
                let held_ns = self.held.front().map_or(first_ns, |ask| ask.intended_ns);
                (count + self.held.len() as u64, first_ns.min(held_ns))
            }
        }
    }
}
