//! Files that live as files do: snapshots of an engine for tests.

use filestats::*;
use proptest::prelude::*;

pub const S: u64 = 1_000_000_000;

/// An event of one file between two captures.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    Nothing,
    Work(u64),
    Gone,
    Restart,
    Reset,
    Replaced,
    Reopened,
    Fell,
    Untimed,
    Timed,
}

pub fn event() -> impl Strategy<Value = Event> {
    use Event::*;
    prop_oneof![
        4 => Just(Nothing),
        6 => (1_u64..1_000).prop_map(Work),
        1 => Just(Gone),
        1 => Just(Restart),
        1 => Just(Reset),
        1 => Just(Replaced),
        1 => Just(Reopened),
        1 => Just(Fell),
        1 => Just(Untimed),
        1 => Just(Timed),
    ]
}

#[derive(Clone)]
struct File {
    there: bool,
    run: u64,
    reset: u64,
    id: u64,
    handle: u64,
    counters: Counters,
}

impl File {
    fn pass(&mut self, event: Event) {
        self.there = true;
        match event {
            Event::Nothing => {}
            Event::Work(n) => {
                self.counters.read = self.counters.read.plus(Ops::timed(n, n * 8192, n * 70));
                self.counters.write.count += n;
                let sync = Ops::timed(1, 0, n * 900);
                self.counters.sync = self.counters.sync.map(|syncs| syncs.plus(sync));
            }
            Event::Gone => self.there = false,
            Event::Restart => (self.run, self.counters) = (self.run + 1, Counters::ZERO),
            Event::Reset => (self.reset, self.counters) = (self.reset + 1, Counters::ZERO),
            Event::Replaced => (self.id, self.counters) = (self.id + 1, Counters::ZERO),
            Event::Reopened => (self.handle, self.counters) = (self.handle + 1, Counters::ZERO),
            Event::Fell => self.counters.read.count /= 2,
            Event::Untimed => self.counters.write.stall_ns = Figure::unknown(Reason::TimingOff),
            Event::Timed => self.counters.write.stall_ns = Figure::Known(self.counters.write.count),
        }
    }

    fn sample(&self, path: usize) -> Sample {
        Sample {
            file: FileIdentity {
                instance: "engine".into(),
                database: None,
                database_id: None,
                file_id: self.id.to_string(),
                kind: FileKind::Data,
                path: format!("/data/{path}"),
                drive: None,
                handle: Some(self.handle.to_string()),
                object: None,
            }
            .into(),
            epoch: Epoch { run: self.run.to_string(), reset: self.reset.to_string() },
            meaning: Meaning::REQUESTS,
            counters: self.counters,
            size_bytes: Figure::Known(1 << 20),
            latencies: None,
        }
    }
}

/// Snapshots of an engine. Of each capture: the time since the one before, whether it promises that all is there, and
/// the events of each of three files.
pub fn snapshots(captures: &[(u64, bool, Vec<Event>)]) -> Vec<Snapshot> {
    let new = File { there: true, run: 0, reset: 0, id: 0, handle: 0, counters: Counters::ZERO };
    let mut files = vec![new; 3];
    let mut clock_ns = 0;
    let take = |(elapsed_ns, complete, events): &(u64, bool, Vec<Event>)| {
        clock_ns += elapsed_ns;
        files.iter_mut().zip(events).for_each(|(file, event)| file.pass(*event));
        let there = files.iter().enumerate().filter(|(_, file)| file.there);
        Snapshot {
            source: "engine:1".into(),
            taken_unix_ns: 1_763_000_000 * S + clock_ns,
            clock_ns,
            complete: complete.then(|| Epoch::for_run("of the source")),
            samples: there.map(|(path, file)| file.sample(path)).collect(),
            waits: vec![WaitSample {
                instance: "engine".into(),
                event: "DataFileRead".into(),
                class: WaitClass::DataRead,
                epoch: Epoch::for_run(files[0].run.to_string()),
                count: Figure::Known(files[0].counters.read.count),
                wait_ns: files[0].counters.read.stall_ns,
            }],
            notes: vec![],
        }
    };
    captures.iter().map(take).collect()
}
