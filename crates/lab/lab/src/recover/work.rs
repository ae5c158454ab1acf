//! The work that every engine does before it is killed, and what must be there afterwards.

use crate::Error;
use everyday::Random;

/// Pages that one transaction writes.
pub(super) const BATCH: u64 = experiments::PAGES_A_COMMIT;
/// What a page holds for the experiment: the most that fits into a page of 4 KiB of every engine.
pub(super) const BODY_BYTES: usize = 4_040;
/// Pages that were never written and are looked at afterwards all the same.
const UNTOUCHED: usize = 64;
/// The number of the write that is made after recovery.
const AFTERWARDS: u64 = u64::MAX;

/// Scattered page writes: the same seed, the same pages in the same order with the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Pages that are written to, each once before any is written again.
    pub pages: u64,
    /// Pages of the data file, which these are scattered over.
    pub data_pages: u64,
    /// The engine is killed when its log has this length.
    pub log_bytes: u64,
    /// Of order and content.
    pub seed: u64,
}

/// When an engine was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crash {
    /// Commits that it had acknowledged.
    pub commits: u64,
    /// The length of its log.
    pub log_bytes: u64,
}

/// The work with its order of pages.
pub(super) struct Order {
    pub work: Work,
    places: Vec<u32>,
}

/// A page to be looked at after recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Look {
    /// Its place in the data file.
    pub place: u64,
    /// Its place in the order.
    at: u64,
}

impl Work {
    /// Fewer pages than a transaction has cannot be scattered.
    pub const PAGES_MIN: u64 = BATCH;
    /// They are numbered in four bytes.
    pub const PAGES_MAX: u64 = 1 << 30;

    pub(super) fn order(self) -> Order {
        let mut places: Vec<u32> = (0..self.data_pages as u32).collect();
        let mut random = Random::new(self.seed);
        for at in (1..places.len()).rev() {
            places.swap(at, random.below(at as u64 + 1) as usize);
        }
        Order { work: self, places }
    }
}

impl Order {
    /// The place that write number `write` goes to.
    pub(super) fn place(&self, write: u64) -> u64 {
        u64::from(self.places[(write % self.work.pages) as usize])
    }

    /// What write number `write` puts there: its number, and bytes that nothing compresses.
    pub(super) fn fill(&self, write: u64, body: &mut [u8]) {
        body[..8].copy_from_slice(&write.to_le_bytes());
        Random::new(self.work.seed ^ write.wrapping_mul(0x9e37_79b9_7f4a_7c15)).fill(&mut body[8..]);
    }

    /// The writes of a commit.
    pub(super) fn writes(commit: u64) -> std::ops::Range<u64> {
        commit * BATCH..(commit + 1) * BATCH
    }

    /// Pages that acknowledged commits wrote to.
    pub(super) fn pages_written(&self, crash: &Crash) -> u64 {
        (crash.commits * BATCH).min(self.work.pages)
    }

    /// What the page that is changed after recovery has then.
    pub(super) fn afterwards(&self) -> Vec<u8> {
        let mut body = vec![0; BODY_BYTES];
        self.fill(AFTERWARDS, &mut body);
        body
    }

    /// Two different pages of those written: the first to be read, and the first to be written again.
    pub(super) fn first_pages(&self, crash: &Crash) -> [Look; 2] {
        let written = self.pages_written(crash).max(2);
        let mut random = Random::new(!self.work.seed);
        let first = random.below(written);
        let second = (first + 1 + random.below(written - 1)) % written;
        [first, second].map(|at| Look { place: self.place(at), at })
    }

    /// One page of every acknowledged commit, all of the last, and some that were never written.
    pub(super) fn sample(&self, crash: &Crash) -> Vec<Look> {
        let mut random = Random::new(self.work.seed ^ crash.commits);
        let of_each = (0..crash.commits).map(|commit| commit * BATCH + random.below(BATCH));
        let mut at: Vec<u64> = of_each.map(|write| write % self.work.pages).collect();
        if let Some(last) = crash.commits.checked_sub(1) {
            at.extend(Self::writes(last).map(|write| write % self.work.pages));
        }
        at.extend((self.work.pages..self.work.data_pages).take(UNTOUCHED));
        at.sort_unstable();
        at.dedup();
        at.into_iter().map(|at| Look { place: u64::from(self.places[at as usize]), at }).collect()
    }

    /// Compares what was read first, and then a page of every acknowledged commit with more; how many were right.
    /// `wrong` makes the error of one that is not.
    pub(super) fn compare(
        &self,
        crash: &Crash,
        read_first: &[u8],
        mut read: impl FnMut(Look) -> Result<Vec<u8>, Error>,
        wrong: impl Fn(String) -> Error,
    ) -> Result<u64, Error> {
        let [first, second] = self.first_pages(crash);
        self.check(first, read_first, crash).map_err(&wrong)?;
        let sample = self.sample(crash);
        for look in &sample {
            let found = read(*look)?;
            let right = match *look == second {
                true => self.has(second, AFTERWARDS, &found),
                false => self.check(*look, &found, crash),
            };
            right.map_err(&wrong)?;
        }
        Ok(sample.len() as u64)
    }

    /// Whether a page has what it must have: what the last acknowledged write to it put there, or one that was on its
    /// way at the crash.
    fn check(&self, look: Look, body: &[u8], crash: &Crash) -> Result<(), String> {
        let wrong = |why: String| Err(format!("page {} {why}", look.place));
        let Some((number, _)) = body.split_first_chunk::<8>().filter(|_| body.len() == BODY_BYTES) else {
            return wrong(format!("has {} bytes instead of {BODY_BYTES}", body.len()));
        };
        let written = crash.commits * BATCH;
        // The kill came between an acknowledgement and its being told, or in the middle of the commit after that.
        let begun = written + 2 * BATCH;
        let oldest = (look.at < written.min(self.work.pages))
            .then(|| look.at + (written - 1 - look.at) / self.work.pages * self.work.pages);
        if body.iter().all(|byte| *byte == 0) {
            return match oldest {
                None => Ok(()),
                Some(write) => wrong(format!("lacks write {write}, which was acknowledged")),
            };
        }
        let write = u64::from_le_bytes(*number);
        if write % self.work.pages != look.at || write >= begun {
            return wrong(format!("has what was never written there ({write})"));
        }
        if oldest.is_some_and(|oldest| write < oldest) {
            return wrong(format!("has write {write}, and a later one was acknowledged"));
        }
        self.has(look, write, body)
    }

    /// Whether a page has that write, whole.
    fn has(&self, look: Look, write: u64, body: &[u8]) -> Result<(), String> {
        let mut expected = vec![0; BODY_BYTES];
        self.fill(write, &mut expected);
        if body == expected { Ok(()) } else { Err(format!("page {} is damaged", look.place)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        Work { pages: 200, data_pages: 500, log_bytes: 0, seed: 7 }.order()
    }

    #[test]
    fn every_page_is_written_once_before_any_is_written_again() {
        let order = order();
        let mut places: Vec<u64> = (0..200).map(|write| order.place(write)).collect();
        assert_eq!(order.place(200), places[0]);
        assert!(places.windows(2).filter(|pair| pair[0] < pair[1]).count() < 150, "scattered");
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 200);
    }

    #[test]
    fn a_lost_a_torn_and_a_foreign_page_are_found() {
        let order = order();
        // 320 writes: the first 120 pages were written twice.
        let crash = Crash { commits: 5, log_bytes: 0 };
        assert_eq!(order.pages_written(&crash), 200);
        let page = |write| {
            let mut body = vec![0; BODY_BYTES];
            order.fill(write, &mut body);
            body
        };
        let look = |at| Look { place: order.place(at), at };
        assert_eq!(order.check(look(3), &page(203), &crash), Ok(()));
        assert_eq!(order.check(look(150), &page(150), &crash), Ok(()));
        assert_eq!(order.check(look(125), &page(325), &crash), Ok(()), "on its way at the crash");
        assert!(order.check(look(3), &page(3), &crash).unwrap_err().contains("a later one was acknowledged"));
        assert!(order.check(look(3), &[0; BODY_BYTES], &crash).unwrap_err().contains("lacks write 203"));
        assert!(order.check(look(4), &page(203), &crash).unwrap_err().contains("never written there"));
        assert!(order.check(look(150), &page(750), &crash).unwrap_err().contains("never written there"));
        let mut torn = page(203);
        torn[BODY_BYTES - 1] ^= 1;
        assert!(order.check(look(3), &torn, &crash).unwrap_err().contains("damaged"));
        let untouched = Look { place: 0, at: 300 };
        assert_eq!(order.check(untouched, &[0; BODY_BYTES], &crash), Ok(()));
    }

    #[test]
    fn one_wrong_page_of_the_sample_is_told_and_the_new_write_is_expected() {
        let order = order();
        let crash = Crash { commits: 3, log_bytes: 0 };
        let [first, second] = order.first_pages(&crash);
        let page = |write: u64| {
            let mut body = vec![0; BODY_BYTES];
            order.fill(write, &mut body);
            body
        };
        let right = |look: Look| match look {
            look if look == second => page(AFTERWARDS),
            look if look.at < 192 => page(look.at),
            _ => vec![0; BODY_BYTES],
        };
        let compare = |read: &dyn Fn(Look) -> Vec<u8>| {
            let wrong = |what| Error::Wrong { engine: "it", strategy: "own", what };
            order.compare(&crash, &read(first), |look| Ok(read(look)), wrong)
        };
        assert_eq!(compare(&right).unwrap(), order.sample(&crash).len() as u64);
        let lost = |place: u64| {
            move |look: Look| if look.place == place { vec![0; BODY_BYTES] } else { right(look) }
        };
        let of_last =
            order.sample(&crash).into_iter().find(|look| (128..192).contains(&look.at) && *look != second);
        for place in [first.place, of_last.unwrap().place] {
            let error = compare(&lost(place)).unwrap_err().to_string();
            assert!(error.contains(&format!("page {place} lacks write")), "{error}");
        }
        let stale = |look: Look| if look == second { page(second.at) } else { right(look) };
        if order.sample(&crash).contains(&second) {
            assert!(compare(&stale).unwrap_err().to_string().contains("damaged"));
        }
    }

    #[test]
    fn the_sample_has_a_page_of_each_commit_and_all_of_the_last() {
        let order = order();
        let sample = order.sample(&Crash { commits: 3, log_bytes: 0 });
        let of = |commit| sample.iter().filter(|look| Order::writes(commit).contains(&look.at)).count();
        assert!(of(0) >= 1 && of(1) >= 1);
        assert_eq!(of(2), 64);
        assert_eq!(sample.iter().filter(|look| look.at >= 200).count(), UNTOUCHED);
        let [read, write] = order.first_pages(&Crash { commits: 1, log_bytes: 0 });
        assert!(read != write && read.at < 64 && write.at < 64);
    }
}
