use crate::{Clocks, Detail, Ending, Incident, Settings, Standing, Subject};
use std::time::Duration;
use verdict::VerdictKind;

/// Judgement of a subject at an instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// When.
    pub at: Clocks,
    /// Its meaning for an incident.
    pub standing: Standing,
    /// For how long it had been fine by then, where it is: a judgement is on a while, of which the first part may have been bad.
    pub fine_for: Duration,
    /// State known then.
    pub detail: Detail,
}

/// Change of an incident.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// It began.
    Opened(Incident),
    /// A burst came again: an incident that was closed is open again.
    Recurred(Incident),
    /// Another kind has held for the longest time, or another database is affected.
    Changed(Incident),
    /// It is over.
    Closed(Incident),
}

/// Follows one subject.
#[derive(Clone, Debug)]
pub struct Tracker {
    subject: Subject,
    settings: Settings,
    phase: Phase,
    /// The last judgement that said anything.
    last: Option<(Clocks, Standing)>,
    /// The last burst, closed.
    last_burst: Option<Incident>,
}

#[derive(Clone, Debug)]
enum Phase {
    Quiet,
    /// Bad, but not for long enough.
    Pending(Ongoing),
    Open(Ongoing),
}

/// An incident, and for how long its verdict has not held.
#[derive(Clone, Debug)]
struct Ongoing {
    incident: Incident,
    /// Without a break.
    fine_ns: u64,
    /// When something was last known.
    known_at: Clocks,
}

/// A bad verdict that is interrupted for less than this holds on: an average that passes from one kind to another may agree with
/// none for a judgement or two.
const INTERRUPTED_NS_MAX: u64 = 10_000_000_000;
/// After this time without anything known an open incident is closed: a server that was shut down for good would keep it open
/// for ever.
const NOTHING_KNOWN_NS_MAX: u64 = 3600 * 1_000_000_000;

impl Tracker {
    /// Follows a subject of which nothing is known.
    pub fn new(subject: Subject, settings: Settings) -> Tracker {
        Tracker { subject, settings, phase: Phase::Quiet, last: None, last_burst: None }
    }

    /// Goes on after a restart at `now`, with an incident that is open, and the last burst that was closed.
    pub fn resume(&mut self, open: Option<Incident>, last_burst: Option<Incident>, now: Clocks) {
        if let Some(incident) = open {
            self.phase = Phase::Open(Ongoing { incident, fine_ns: 0, known_at: now });
        }
        self.last_burst = last_burst.filter(|incident| incident.verdict == VerdictKind::Burst);
    }

    /// The open incident.
    pub fn open(&self) -> Option<&Incident> {
        match &self.phase {
            Phase::Open(ongoing) => Some(&ongoing.incident),
            Phase::Quiet | Phase::Pending(_) => None,
        }
    }

    /// Adds a judgement.
    pub fn judged(&mut self, judgement: &Judgement) -> Option<Event> {
        let since_last = self.since_last(judgement.at);
        if since_last.is_none() {
            self.interrupt();
        }
        match judgement.standing {
            Standing::Bad(kind) => self.bad(kind, judgement, since_last),
            Standing::WasBurst if self.open().is_none() => {
                self.bad(VerdictKind::Burst, judgement, since_last)
            }
            Standing::WasBurst | Standing::Fine => self.fine(judgement, since_last),
            Standing::Unknown => self.unknown(judgement.at),
        }
    }

    /// Notes that nothing is known at an instant: the source gives nothing.
    pub fn unknown(&mut self, at: Clocks) -> Option<Event> {
        if self.since_last(at).is_none() {
            self.interrupt();
        }
        self.last = Some((at, Standing::Unknown));
        match &mut self.phase {
            Phase::Quiet => None,
            Phase::Pending(ongoing) => {
                if unknown_ns(ongoing, at) >= INTERRUPTED_NS_MAX {
                    self.phase = Phase::Quiet;
                }
                None
            }
            Phase::Open(ongoing) => {
                ongoing.fine_ns = 0;
                let silent = unknown_ns(ongoing, at) >= NOTHING_KNOWN_NS_MAX;
                silent.then(|| self.close(Ending::NothingKnown)).flatten()
            }
        }
    }

    /// Closes what is open, because the subject is watched no longer.
    pub fn end(&mut self) -> Option<Event> {
        self.close(Ending::NotWatched)
    }

    /// Nanoseconds since the last judgement that said anything; `None` over a gap.
    fn since_last(&self, at: Clocks) -> Option<u64> {
        let gap_ns = u64::try_from(self.settings.gap_after.as_nanos()).unwrap_or(u64::MAX);
        let (last, _) = self.last?;
        at.since(&last).filter(|ns| *ns <= gap_ns)
    }

    /// Interrupts the phase at a gap: a verdict over a gap neither held nor did not.
    fn interrupt(&mut self) {
        match &mut self.phase {
            Phase::Quiet => {}
            Phase::Pending(_) => self.phase = Phase::Quiet,
            Phase::Open(ongoing) => ongoing.fine_ns = 0,
        }
        self.last = None;
    }

    fn bad(&mut self, kind: VerdictKind, judgement: &Judgement, since_last: Option<u64>) -> Option<Event> {
        let at = judgement.at;
        let was_bad = matches!(self.last, Some((_, Standing::Bad(_) | Standing::WasBurst)));
        let held_ns = since_last.filter(|_| was_bad).unwrap_or(0);
        self.last = Some((at, judgement.standing));
        let open_ns = u64::try_from(self.settings.open_after.as_nanos()).unwrap_or(u64::MAX);
        let phase = std::mem::replace(&mut self.phase, Phase::Quiet);
        let mut ongoing = match phase {
            Phase::Open(mut ongoing) => {
                let changed = ongoing.add(kind, held_ns, judgement);
                let event = changed.then(|| Event::Changed(ongoing.incident.clone()));
                self.phase = Phase::Open(ongoing);
                return event;
            }
            Phase::Pending(ongoing) => ongoing,
            Phase::Quiet => {
                // It began after the last judgement, which was not bad.
                let started = at.unix_ns.saturating_sub(since_last.unwrap_or(0));
                let incident = Incident::begin(&self.subject, started, at);
                Ongoing { incident, fine_ns: 0, known_at: at }
            }
        };
        ongoing.add(kind, held_ns, judgement);
        if ongoing.incident.held_ns() < open_ns {
            self.phase = Phase::Pending(ongoing);
            return None;
        }
        ongoing.incident.opened_unix_ns = at.unix_ns;
        let event = match self.last_burst.take_if(|last| last.comes_again_as(&ongoing.incident)) {
            Some(mut again) => {
                again.repeat(ongoing.incident);
                ongoing.incident = again;
                Event::Recurred(ongoing.incident.clone())
            }
            None => Event::Opened(ongoing.incident.clone()),
        };
        self.phase = Phase::Open(ongoing);
        Some(event)
    }

    fn fine(&mut self, judgement: &Judgement, since_last: Option<u64>) -> Option<Event> {
        let at = judgement.at;
        let was_fine = matches!(self.last, Some((_, Standing::Fine)));
        let fine_ns = since_last.filter(|_| was_fine).unwrap_or(0);
        let before_ns = u64::try_from(judgement.fine_for.as_nanos()).unwrap_or(u64::MAX);
        let before_ns = if since_last.is_some() && !was_fine { before_ns } else { 0 };
        self.last = Some((at, Standing::Fine));
        let close_ns = u64::try_from(self.settings.close_after.as_nanos()).unwrap_or(u64::MAX);
        match &mut self.phase {
            Phase::Quiet => None,
            Phase::Pending(ongoing) => {
                ongoing.fine(fine_ns, at);
                if ongoing.fine_ns >= INTERRUPTED_NS_MAX {
                    self.phase = Phase::Quiet;
                }
                None
            }
            Phase::Open(ongoing) => {
                ongoing.fine(fine_ns.saturating_add(before_ns), at);
                (ongoing.fine_ns >= close_ns).then(|| self.close(Ending::Recovered)).flatten()
            }
        }
    }

    fn close(&mut self, ending: Ending) -> Option<Event> {
        let Phase::Open(mut ongoing) = std::mem::replace(&mut self.phase, Phase::Quiet) else { return None };
        ongoing.incident.end(ending);
        if ongoing.incident.verdict == VerdictKind::Burst {
            self.last_burst = Some(ongoing.incident.clone());
        }
        Some(Event::Closed(ongoing.incident))
    }
}

impl Ongoing {
    fn add(&mut self, kind: VerdictKind, held_ns: u64, judgement: &Judgement) -> bool {
        (self.fine_ns, self.known_at) = (0, judgement.at);
        if judgement.standing != Standing::WasBurst {
            self.incident.last_bad_unix_ns = judgement.at.unix_ns;
        }
        self.incident.add(kind, held_ns, &judgement.detail)
    }

    fn fine(&mut self, fine_ns: u64, at: Clocks) {
        (self.fine_ns, self.known_at) = (self.fine_ns.saturating_add(fine_ns), at);
    }
}

/// By the clock that is never set.
fn unknown_ns(ongoing: &Ongoing, at: Clocks) -> u64 {
    at.monotonic_ns.saturating_sub(ongoing.known_at.monotonic_ns)
}

impl Event {
    /// The incident after it.
    pub fn incident(&self) -> &Incident {
        match self {
            Event::Opened(incident)
            | Event::Recurred(incident)
            | Event::Changed(incident)
            | Event::Closed(incident) => incident,
        }
    }
}
