//! Tries the sources of many databases at once, within a bound on the whole: any user may run any number of programs that look
//! like servers and never answer.
//!
//! ```text
//! candidates ─> at most AT_ONCE threads, each tries the sources of one
//!                 events ─> one that works, or none: the outcome
//!        limits.one over ─> the server does not answer: the outcome
//!        limits.all over ─> cut: the next scan tries it again
//! ```
//! A thread whose server does not answer goes on up to the source's own limit, and its result is dropped.

use crate::attempts::{Candidate, Event, Outcome};
use crate::scan::Refusal;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

/// Databases whose sources are tried at the same time. Each takes a thread, and the source of a server another one.
const AT_ONCE: usize = 64;
/// Threads that try sources, those included that no caller waits for any more: a server or file system that hangs keeps its thread.
const THREADS_MAX: usize = 192;

static THREADS: AtomicUsize = AtomicUsize::new(0);

/// How long trying may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// All sources of one database.
    pub one: Duration,
    /// All databases.
    pub all: Duration,
}

/// A database whose sources were tried.
pub(crate) struct Tried {
    pub outcome: Outcome,
    pub end: End,
}

/// How trying the sources of a database ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// One works, or none.
    Complete,
    /// Its own time was over, perhaps before all were tried.
    Unanswered,
    /// The time of all was over before its own.
    Cut,
}

impl Tried {
    fn cut(candidate: &Candidate, why: String) -> Tried {
        let refused = vec![Refusal::new(&candidate.first_source(), why)];
        Tried { outcome: Outcome { refused, ..Outcome::default() }, end: End::Cut }
    }
}

/// Tries the sources of each, the first ones first.
pub(crate) fn try_each(candidates: &[Candidate], limits: Limits) -> Vec<Tried> {
    let ends = Instant::now() + limits.all;
    let (sender, events) = mpsc::channel();
    let mut tried: Vec<Option<Tried>> = candidates.iter().map(|_| None).collect();
    let mut waiting = candidates.iter().enumerate();
    let mut running: Vec<Running> = Vec::new();
    loop {
        while running.len() < AT_ONCE && Instant::now() < ends {
            let Some((at, candidate)) = waiting.next() else { break };
            match start(at, candidate.clone(), sender.clone()) {
                Ok(()) => running.push(Running::begin(at, limits, ends)),
                Err(why) => tried[at] = Some(Tried::cut(candidate, why)),
            }
        }
        let Some(next) = running.iter().map(|one| one.ends).min() else { break };
        // One that was given up has no place any more, and its events are dropped.
        if let Ok((at, event)) = events.recv_timeout(next.saturating_duration_since(Instant::now()))
            && let Some(place) = running.iter().position(|one| one.at == at)
            && running[place].is_ended_by(event)
        {
            tried[at] = Some(running.swap_remove(place).tried);
        }
        let now = Instant::now();
        for one in running.extract_if(.., |one| one.ends <= now) {
            let at = one.at;
            tried[at] = Some(one.given_up(now));
        }
    }
    let not_tried = |candidate: &Candidate| {
        let why = format!("not tried: others took the {:?} that a scan may take for it", limits.all);
        Tried::cut(candidate, why)
    };
    tried.into_iter().zip(candidates).map(|(tried, one)| tried.unwrap_or_else(|| not_tried(one))).collect()
}

/// Starts a thread that tries the sources of one.
fn start(at: usize, candidate: Candidate, events: Sender<(usize, Event)>) -> Result<(), String> {
    let count = Count::begin()?;
    let thread = std::thread::Builder::new().name("try-source".into()).spawn(move || {
        // Where it was given up and the scan has ended there is no receiver.
        candidate.try_all(|event| drop(events.send((at, event))));
        drop(count);
    });
    thread.map(drop).map_err(|error| format!("no thread for it: {error}"))
}

/// A thread that tries sources, counted until it is dropped.
struct Count;

impl Count {
    fn begin() -> Result<Count, String> {
        let before = THREADS.fetch_add(1, Relaxed);
        let count = Count;
        if before < THREADS_MAX {
            return Ok(count);
        }
        Err(format!("not tried: {before} servers that were tried before still do not answer"))
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Relaxed);
    }
}

/// A database whose sources are being tried.
struct Running {
    at: usize,
    began: Instant,
    ends: Instant,
    /// The source that is being opened.
    source: String,
    tried: Tried,
}

impl Running {
    fn begin(at: usize, limits: Limits, all_end: Instant) -> Running {
        let began = Instant::now();
        let own_end = began + limits.one;
        let end = if all_end < own_end { End::Cut } else { End::Unanswered };
        let tried = Tried { outcome: Outcome::default(), end };
        Running { at, began, ends: own_end.min(all_end), source: String::new(), tried }
    }

    /// Adds an event, and whether nothing more will happen.
    fn is_ended_by(&mut self, event: Event) -> bool {
        let outcome = &mut self.tried.outcome;
        match event {
            Event::Begins(source) => self.source = source,
            Event::Refused(refusal) => outcome.refused.push(refusal),
            Event::Worked(worked) => {
                outcome.complete(std::mem::take(&mut self.source), worked);
                self.tried.end = End::Complete;
            }
            Event::NoneWorked => self.tried.end = End::Complete,
        }
        self.tried.end == End::Complete
    }

    /// It has not answered in its time.
    fn given_up(mut self, now: Instant) -> Tried {
        let waited = now.duration_since(self.began);
        let why = format!("it does not answer within {:.1} s", waited.as_secs_f64());
        self.tried.outcome.refused.push(Refusal::new(&self.source, why));
        self.tried
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use collect::discovery::Attempt;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    const LIMITS: Limits = Limits { one: Duration::from_millis(300), all: Duration::from_millis(500) };

    fn candidate(sources: &[String]) -> Candidate {
        let attempts = sources.iter().map(|source| Attempt { source: source.clone(), socket: None });
        Candidate { pid: std::process::id(), user: 0, attempts: attempts.collect() }
    }

    #[test]
    fn a_crowd_of_mute_servers_takes_the_time_of_the_scan_and_all_are_listed() {
        let place = tempfile::tempdir().unwrap();
        let socket = UnixListener::bind(place.path().join(".s.PGSQL.5432")).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let mute = [
            format!("postgres:host={} user=u", place.path().display()),
            format!("postgres:host=127.0.0.1 port={port} user=u"),
            format!("mysql://u@127.0.0.1:{port}"),
        ];
        let mut candidates = vec![candidate(&["devices:".into()]), candidate(&[])];
        candidates.extend(
            (0..2 * AT_ONCE).map(|at| candidate(&["sqlite:/no/where.db".into(), mute[at % 3].clone()])),
        );
        let began = Instant::now();
        let tried = try_each(&candidates, LIMITS);
        let took = began.elapsed();
        assert!(took < LIMITS.all + Duration::from_millis(500), "{took:?}");
        assert_eq!(tried.len(), candidates.len());
        assert_eq!(tried[0].outcome.source.as_deref(), Some("devices:"));
        assert!(tried[1].outcome.refused.is_empty() && tried[1].end == End::Complete);
        let errors = |one: &Tried| {
            one.outcome.refused.iter().map(|refusal| refusal.error.clone()).collect::<Vec<_>>().join("; ")
        };
        for one in &tried[2..AT_ONCE] {
            assert_eq!((one.outcome.refused.len(), one.end), (2, End::Unanswered), "{}", errors(one));
            assert!(errors(one).contains("does not answer within 0.3 s"), "{}", errors(one));
        }
        let last = tried.last().unwrap();
        assert_eq!(last.end, End::Cut);
        assert!(errors(last).contains("does not answer") || errors(last).contains("not tried"));
        drop((socket, tcp));
    }
}
