//! The workload of every engine before it is killed, and the content that its pages must have afterwards.

use crate::Error;
use everyday::Random;

/// Pages that one transaction writes.
pub(super) const BATCH: u64 = experiments::PAGES_A_COMMIT;
/// Bytes of a page of the engines in files.
pub(super) const PAGE_BYTES: u64 = 4_096;
/// Bytes that the experiment stores in a page: the most that fits into a page of 4 KiB of every engine.
pub(super) const BODY_BYTES: usize = 4_040;
/// Pages that were never written and are checked too.
const UNTOUCHED: usize = 64;
/// The number of the write after recovery.
const WRITE_AFTER_RECOVERY: u64 = u64::MAX;

/// Scattered page writes. The same seed gives the same pages in the same order with the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Pages that are written, each once before any is written again.
    pub pages: u64,
    /// Pages of the data file, over which these are scattered.
    pub data_pages: u64,
    /// The engine is killed when its log has this length.
    pub log_bytes: u64,
    /// Seed of order and content.
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

/// A page that is checked after recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Probe {
    /// Its place in the data file.
    pub place: u64,
    /// Its place in the order.
    at: u64,
}

impl Work {
    /// A transaction writes as many different pages.
    pub const PAGES_MIN: u64 = BATCH;
    /// Page numbers have four bytes.
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
    /// The place of write number `write`.
    pub(super) fn place(&self, write: u64) -> u64 {
        u64::from(self.places[(write % self.work.pages) as usize])
    }

    /// The content of write number `write`: its number, and bytes that nothing compresses.
    pub(super) fn fill(&self, write: u64, body: &mut [u8]) {
        body[..8].copy_from_slice(&write.to_le_bytes());
        Random::new(self.work.seed ^ write.wrapping_mul(0x9e37_79b9_7f4a_7c15)).fill(&mut body[8..]);
    }

    /// The writes of a commit.
    pub(super) fn writes(commit: u64) -> std::ops::Range<u64> {
        commit * BATCH..(commit + 1) * BATCH
    }

    /// Different pages that acknowledged commits wrote.
    pub(super) fn pages_written(&self, crash: &Crash) -> u64 {
        (crash.commits * BATCH).min(self.work.pages)
    }

    /// Content of the page that is changed after recovery.
    pub(super) fn page_after_recovery(&self) -> Vec<u8> {
        let mut body = vec![0; BODY_BYTES];
        self.fill(WRITE_AFTER_RECOVERY, &mut body);
        body
    }

    /// Two different pages of those written: the first to be read, and the first to be written again.
    pub(super) fn first_pages(&self, crash: &Crash) -> [Probe; 2] {
        let written = self.pages_written(crash).max(2);
        let mut random = Random::new(!self.work.seed);
        let first = random.below(written);
        let second = (first + 1 + random.below(written - 1)) % written;
        [first, second].map(|at| Probe { place: self.place(at), at })
    }

    /// One page of every acknowledged commit, all pages of the last, and some that were never written.
    pub(super) fn sample(&self, crash: &Crash) -> Vec<Probe> {
        let mut random = Random::new(self.work.seed ^ crash.commits);
        let of_each = (0..crash.commits).map(|commit| commit * BATCH + random.below(BATCH));
        let mut at: Vec<u64> = of_each.map(|write| write % self.work.pages).collect();
        if let Some(last) = crash.commits.checked_sub(1) {
            at.extend(Self::writes(last).map(|write| write % self.work.pages));
        }
        at.extend((self.work.pages..self.work.data_pages).take(UNTOUCHED));
        at.sort_unstable();
        at.dedup();
        at.into_iter().map(|at| Probe { place: u64::from(self.places[at as usize]), at }).collect()
    }

    /// Checks the page that was read first and then the pages of [`Order::sample`]; returns how many were right. `wrong`
    /// makes the error of a wrong page.
    pub(super) fn compare(
        &self,
        crash: &Crash,
        read_first: &[u8],
        mut read: impl FnMut(Probe) -> Result<Vec<u8>, Error>,
        wrong: impl Fn(String) -> Error,
    ) -> Result<u64, Error> {
        let [first, second] = self.first_pages(crash);
        self.check(first, read_first, crash).map_err(&wrong)?;
        let sample = self.sample(crash);
        for probe in &sample {
            let found = read(*probe)?;
            let right = match *probe == second {
                true => self.has(second, WRITE_AFTER_RECOVERY, &found),
                false => self.check(*probe, &found, crash),
            };
            right.map_err(&wrong)?;
        }
        Ok(sample.len() as u64)
    }

    /// Checks that a page has the content of the last acknowledged write to it, or of one in flight at the crash.
    fn check(&self, probe: Probe, body: &[u8], crash: &Crash) -> Result<(), String> {
        let wrong = |why: String| Err(format!("page {} {why}", probe.place));
        let Some((number, _)) = body.split_first_chunk::<8>().filter(|_| body.len() == BODY_BYTES) else {
            return wrong(format!("has {} bytes instead of {BODY_BYTES}", body.len()));
        };
        let written = crash.commits * BATCH;
        // The kill came after an acknowledgement and before its report, or in the middle of the commit after that.
        let begun = written + 2 * BATCH;
        let oldest = (probe.at < written.min(self.work.pages))
            .then(|| probe.at + (written - 1 - probe.at) / self.work.pages * self.work.pages);
        if body.iter().all(|byte| *byte == 0) {
            return match oldest {
                None => Ok(()),
                Some(write) => wrong(format!("lacks write {write}, which was acknowledged")),
            };
        }
        let write = u64::from_le_bytes(*number);
        if write % self.work.pages != probe.at || write >= begun {
            return wrong(format!("has what was never written there ({write})"));
        }
        if oldest.is_some_and(|oldest| write < oldest) {
            return wrong(format!("has write {write}, and a later one was acknowledged"));
        }
        self.has(probe, write, body)
    }

    /// Checks that a page has the content of that write, undamaged.
    fn has(&self, probe: Probe, write: u64, body: &[u8]) -> Result<(), String> {
        let mut expected = vec![0; BODY_BYTES];
        self.fill(write, &mut expected);
        if body == expected { Ok(()) } else { Err(format!("page {} is damaged", probe.place)) }
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
        let probe = |at| Probe { place: order.place(at), at };
        assert_eq!(order.check(probe(3), &page(203), &crash), Ok(()));
        assert_eq!(order.check(probe(150), &page(150), &crash), Ok(()));
        assert_eq!(order.check(probe(125), &page(325), &crash), Ok(()), "in flight at the crash");
        assert!(
            order.check(probe(3), &page(3), &crash).unwrap_err().contains("a later one was acknowledged")
        );
        assert!(order.check(probe(3), &[0; BODY_BYTES], &crash).unwrap_err().contains("lacks write 203"));
        assert!(order.check(probe(4), &page(203), &crash).unwrap_err().contains("never written there"));
        assert!(order.check(probe(150), &page(750), &crash).unwrap_err().contains("never written there"));
        let mut torn = page(203);
        torn[BODY_BYTES - 1] ^= 1;
        assert!(order.check(probe(3), &torn, &crash).unwrap_err().contains("damaged"));
        let untouched = Probe { place: 0, at: 300 };
        assert_eq!(order.check(untouched, &[0; BODY_BYTES], &crash), Ok(()));
    }

    #[test]
    fn one_wrong_page_of_the_sample_is_an_error_and_the_new_write_is_expected() {
        let order = order();
        let crash = Crash { commits: 3, log_bytes: 0 };
        let [first, second] = order.first_pages(&crash);
        let page = |write: u64| {
            let mut body = vec![0; BODY_BYTES];
            order.fill(write, &mut body);
            body
        };
        let right = |probe: Probe| match probe {
            probe if probe == second => page(WRITE_AFTER_RECOVERY),
            probe if probe.at < 192 => page(probe.at),
            _ => vec![0; BODY_BYTES],
        };
        let compare = |read: &dyn Fn(Probe) -> Vec<u8>| {
            let wrong = |what| Error::Wrong { engine: "it", strategy: "own", what };
            order.compare(&crash, &read(first), |probe| Ok(read(probe)), wrong)
        };
        assert_eq!(compare(&right).unwrap(), order.sample(&crash).len() as u64);
        let lost = |place: u64| {
            move |probe: Probe| if probe.place == place { vec![0; BODY_BYTES] } else { right(probe) }
        };
        let of_last =
            order.sample(&crash).into_iter().find(|probe| (128..192).contains(&probe.at) && *probe != second);
        for place in [first.place, of_last.unwrap().place] {
            let error = compare(&lost(place)).unwrap_err().to_string();
            assert!(error.contains(&format!("page {place} lacks write")), "{error}");
        }
        let stale = |probe: Probe| if probe == second { page(second.at) } else { right(probe) };
        if order.sample(&crash).contains(&second) {
            assert!(compare(&stale).unwrap_err().to_string().contains("damaged"));
        }
    }

    #[test]
    fn the_sample_has_a_page_of_each_commit_and_all_of_the_last() {
        let order = order();
        let sample = order.sample(&Crash { commits: 3, log_bytes: 0 });
        let of = |commit| sample.iter().filter(|probe| Order::writes(commit).contains(&probe.at)).count();
        assert!(of(0) >= 1 && of(1) >= 1);
        assert_eq!(of(2), 64);
        assert_eq!(sample.iter().filter(|probe| probe.at >= 200).count(), UNTOUCHED);
        let [read, write] = order.first_pages(&Crash { commits: 1, log_bytes: 0 });
        assert!(read != write && read.at < 64 && write.at < 64);
    }
}
