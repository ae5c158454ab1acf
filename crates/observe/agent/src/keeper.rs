//! Saves judgements, and keeps them in memory while the history cannot be written.

use crate::Event;
use history::{Error, History, IncidentId, Judged};
use incidents::Incident;
use std::time::{Duration, Instant};

/// Writes the history, and keeps in memory the judgements that cannot be written now.
pub struct Keeper {
    history: History,
    /// Not saved yet.
    waiting: Judged,
    /// Since when and why nothing can be saved.
    not_kept: Option<(Instant, String)>,
    try_again: Instant,
    clean_at: Instant,
}

/// Minutes, changes and marks that wait for a full disk, each: three days of 15 subjects. The oldest are dropped beyond that.
const ROWS_WAITING_MAX: usize = 65_536;
/// Incidents that wait.
const INCIDENTS_WAITING_MAX: usize = 1_000;
/// Between two attempts to write.
const RETRY: Duration = Duration::from_secs(5);
/// Between two removals of old entries.
const CLEAN_EVERY: Duration = Duration::from_secs(3_600);

impl Keeper {
    /// With nothing that waits.
    pub fn new(history: History) -> Keeper {
        let now = Instant::now();
        let waiting = Judged::default();
        Keeper { history, waiting, not_kept: None, try_again: now, clean_at: now + RETRY }
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// The incidents that are open, those that wait too.
    pub(crate) fn open_incidents(&self) -> Result<Vec<Incident>, Error> {
        let saved = self.history.open_incidents()?.into_iter().map(|(_, incident)| incident);
        let is_newer =
            |saved: &Incident| self.waiting.incidents.iter().any(|waiting| is_same(waiting, saved));
        let mut open: Vec<Incident> = saved.filter(|saved| !is_newer(saved)).collect();
        open.extend(self.waiting.incidents.iter().filter(|waiting| waiting.is_open()).cloned());
        Ok(open)
    }

    /// Judgements that wait to be saved.
    pub(crate) fn waiting(&mut self) -> &mut Judged {
        &mut self.waiting
    }

    /// Saves an incident now, with all that waits. Returns its number where that succeeded.
    pub(crate) fn save_incident(
        &mut self,
        incident: Incident,
        log: &mut dyn FnMut(Event<'_>),
    ) -> Option<IncidentId> {
        self.waiting.incidents.retain(|other| !is_same(other, &incident));
        self.waiting.incidents.push(incident);
        self.try_again = Instant::now();
        self.save(log)?.last().copied()
    }

    /// Saves the waiting judgements. Returns the numbers of the incidents; `None` where nothing was saved.
    pub(crate) fn save(&mut self, log: &mut dyn FnMut(Event<'_>)) -> Option<Vec<IncidentId>> {
        let now = Instant::now();
        if self.waiting.is_empty() || now < self.try_again {
            return None;
        }
        let saved = self.history.save_judged(&self.waiting);
        let clean = saved.is_ok() && now >= self.clean_at;
        let cleaned = if clean { self.history.remove_old_judged() } else { Ok(()) };
        if clean {
            self.clean_at = now + CLEAN_EVERY;
        }
        match saved.and_then(|ids| cleaned.map(|()| ids)) {
            Ok(ids) => {
                self.waiting = Judged::default();
                if let Some((since, _)) = self.not_kept.take() {
                    log(Event::KeptAgain { after: since.elapsed() });
                }
                Some(ids)
            }
            Err(error) => {
                self.try_again = now + RETRY;
                self.bound();
                let why = error.to_string();
                let since = self.not_kept.as_ref().map_or(now, |(since, _)| *since);
                if self.not_kept.as_ref().is_none_or(|(_, last)| *last != why) {
                    log(Event::NotKept { why: &why });
                }
                self.not_kept = Some((since, why));
                None
            }
        }
    }

    fn bound(&mut self) {
        let surplus = |len: usize, most: usize| len.saturating_sub(most);
        // One of each volume waits: no more than there are.
        let Judged { changes, minutes, incidents, seen: _, marks } = &mut self.waiting;
        changes.drain(..surplus(changes.len(), ROWS_WAITING_MAX));
        minutes.drain(..surplus(minutes.len(), ROWS_WAITING_MAX));
        marks.drain(..surplus(marks.len(), ROWS_WAITING_MAX));
        incidents.drain(..surplus(incidents.len(), INCIDENTS_WAITING_MAX));
    }
}

/// Whether two are the same incident, perhaps at different times.
fn is_same(one: &Incident, other: &Incident) -> bool {
    one.subject == other.subject && one.started_unix_ns == other.started_unix_ns
}
