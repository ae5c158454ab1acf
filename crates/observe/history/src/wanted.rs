//! Reading that ends when its reader wants it no more.

use crate::{Error, History};

impl History {
    /// Reads as long as `is_wanted` says so, which is called about every millisecond of a statement's work. A statement that is
    /// wanted no more fails with an error that [is interrupted](Error::is_interrupted).
    pub fn read_while<T>(
        &self,
        is_wanted: impl FnMut() -> bool + Send + 'static,
        read: impl FnOnce(&History) -> T,
    ) -> T {
        self.budget.watch(&self.connection, is_wanted);
        let value = read(self);
        self.budget.watch(&self.connection, || true);
        value
    }
}

impl Error {
    /// Whether the statement ended because its result was wanted no more, or it took more time than it may.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Error::TooCostly { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::{Duration, Instant};

    /// Counts without an end.
    const ENDLESS: &str =
        "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c";

    #[test]
    fn a_statement_ends_when_it_is_wanted_no_more_and_the_next_one_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let history = History::open(&dir.path().join("history.db")).unwrap();
        let wanted = Arc::new(AtomicBool::new(true));
        let count = |history: &History| history.first_row("count", ENDLESS, [], |row| row.get::<_, i64>(0));
        let began = Instant::now();
        let counted = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                wanted.store(false, Relaxed);
            });
            let wanted = wanted.clone();
            history.read_while(move || wanted.load(Relaxed), count)
        });
        assert!(counted.unwrap_err().is_interrupted());
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert!(history.subjects().unwrap().is_empty());
    }
}
