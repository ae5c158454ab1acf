//! A PostgreSQL server of our own, killed with all its processes.

use super::own_io::OwnIo;
use super::steps::Doing;
use super::work::{AFTERWARDS, BODY_BYTES, Crash, Look, Order, Work};
use super::{Engine, Recovered, Run, Strategy, Tell, Victim, wrong};
use crate::Error;
use collect::postgres::Client;
use filestats::{Figure, Reason};
use servers::PostgresPrograms;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// A row and its next version fill a page.
pub(super) const PAGE_BYTES: u64 = 8_192;
/// In the socket's name: the server listens on nothing else.
const PORT: u16 = 5432;
/// Rows that one statement adds when the table is made.
const FILL: u64 = 4_096;
/// From the last commit before the kill to the kill: into one of the next.
const KILL_AFTER: Duration = Duration::from_millis(2);
/// How often the killer looks whether it is time.
const LOOK_EVERY: Duration = Duration::from_micros(200);
/// The log is measured after so many commits: it takes a query.
const MEASURE_EVERY: u64 = 4;

const UPDATE: &str = "UPDATE pages SET body = new.body FROM unnest($1::int[], $2::bytea[]) AS new (id, body) \
                      WHERE pages.id = new.id";
const SELECT: &str = "SELECT body FROM pages WHERE id = $1";
/// Whatever the planner thinks of a table without statistics: by the index.
const BY_INDEX: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off";

pub(super) struct Postgres {
    server: servers::Postgres,
}

impl Postgres {
    pub(super) fn initialise(dir: &Path, work: &Work) -> Result<Postgres, Error> {
        let programs = PostgresPrograms::find()?;
        // The image: what is thrown out of the page cache and removed with it.
        let data = dir.join("image");
        fs::create_dir(&data).map_err(|source| Error::Io { doing: "make", path: data.clone(), source })?;
        // No checkpoint before the kill, and no log of what is made before the work; all else as it is delivered.
        let settings = [
            "listen_addresses=".to_owned(),
            "autovacuum=off".into(),
            "checkpoint_timeout=1d".into(),
            format!("max_wal_size={}MB", (work.log_bytes >> 20) * 8 + 4_096),
            "wal_level=minimal".into(),
            "max_wal_senders=0".into(),
        ];
        let server = servers::Postgres::initialise(&programs, dir, &data, PORT, settings.to_vec())?;
        Ok(Postgres { server: server.tied_to_thread() })
    }

    /// Rows of zeros, a page each.
    fn fill(&self, client: &Client, run: &Run, tell: &mut Tell<'_>) -> Result<bool, Error> {
        let rows = run.order.work.data_pages;
        let sql = |statements: &str| client.run(async |client| client.batch_execute(statements).await);
        sql(&format!(
            "BEGIN; CREATE TABLE pages (id int PRIMARY KEY, body bytea NOT NULL) WITH (fillfactor = 50); \
             ALTER TABLE pages ALTER COLUMN body SET STORAGE PLAIN; {BY_INDEX}"
        ))?;
        let mut done = 0;
        while done < rows {
            let end = (done + FILL).min(rows);
            sql(&format!(
                "INSERT INTO pages SELECT id, decode(repeat('00', {BODY_BYTES}), 'hex') \
                 FROM generate_series({done}, {}) AS id",
                end - 1
            ))?;
            done = end;
            tell(Doing::Making, done as f64 / rows as f64 / 2.0);
            if run.stop.load(Relaxed) {
                return Ok(false);
            }
        }
        sql("COMMIT; CHECKPOINT")?;
        Ok(true)
    }

    /// Commits until the server is gone; the commits that it acknowledged, and the log that it had.
    fn commit_until_killed(
        client: &Client,
        order: &Order,
        due: &AtomicBool,
        mut tell: impl FnMut(u64) -> bool,
    ) -> Result<Crash, Error> {
        let position = client.run(async |client| {
            client.query_one("SELECT pg_current_wal_lsn()::text", &[]).await?.try_get::<_, String>(0)
        })?;
        let measure = format!("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '{position}')::bigint");
        let (update, measure) = client
            .run(async |client| Ok((client.prepare(UPDATE).await?, client.prepare(&measure).await?)))?;
        let mut crash = Crash { commits: 0, log_bytes: 0 };
        loop {
            let (mut ids, mut bodies) = (Vec::new(), Vec::new());
            for write in Order::writes(crash.commits) {
                let mut body = vec![0; BODY_BYTES];
                order.fill(write, &mut body);
                ids.push(order.place(write) as i32);
                bodies.push(body);
            }
            let log = client.run(async |client| {
                client.execute(&update, &[&ids, &bodies]).await?;
                match (crash.commits + 1).is_multiple_of(MEASURE_EVERY) {
                    false => Ok(None),
                    true => client.query_one(&measure, &[]).await?.try_get::<_, i64>(0).map(Some),
                }
            });
            match log {
                Ok(log) => {
                    crash.commits += 1;
                    crash.log_bytes = log.map_or(crash.log_bytes, |bytes| bytes.max(0) as u64);
                }
                // Killed: what this commit wrote may be there or not.
                Err(_) if due.load(Relaxed) => return Ok(crash),
                Err(error) => return Err(error.into()),
            }
            if tell(crash.log_bytes) {
                due.store(true, Relaxed);
            }
        }
    }
}

impl Victim for Postgres {
    fn crash(&mut self, _: &Path, run: &Run, tell: &mut Tell<'_>) -> Result<Option<Crash>, Error> {
        self.server.launch()?;
        let client = Client::connect(&self.server.connection())?;
        if !self.fill(&client, run, tell)? {
            return Ok(None);
        }
        let log_bytes = run.order.work.log_bytes;
        let due = AtomicBool::new(false);
        let server = &mut self.server;
        let crash = thread::scope(|scope| {
            let due = &due;
            let killer = scope.spawn(move || {
                while !due.load(Relaxed) {
                    thread::sleep(LOOK_EVERY);
                }
                thread::sleep(KILL_AFTER);
                server.kill();
            });
            let crash = Self::commit_until_killed(&client, &run.order, due, |log| {
                tell(Doing::Making, 0.5 + log as f64 / log_bytes.max(1) as f64 / 2.0);
                log >= log_bytes || run.stop.load(Relaxed)
            });
            // Whatever it was that ended the writing.
            due.store(true, Relaxed);
            let _ = killer.join();
            crash
        })?;
        Ok((!run.stop.load(Relaxed)).then_some(crash))
    }

    fn recover(
        &mut self,
        dir: &Path,
        strategy: Strategy,
        crash: &Crash,
        run: &Run,
    ) -> Result<Recovered, Error> {
        let wrong = wrong(Engine::Postgres, strategy);
        let [first, second] = run.order.first_pages(crash);
        let mut body = vec![0; BODY_BYTES];
        run.order.fill(AFTERWARDS, &mut body);
        let mut own = OwnIo::counted(Engine::Postgres.name());

        let began = Instant::now();
        self.server.launch()?;
        let client = Client::connect(&self.server.connection())?;
        let opened = began.elapsed();
        let read = |look: Look| {
            client.run(async |client| {
                client.query_one(SELECT, &[&(look.place as i32)]).await?.try_get::<_, Vec<u8>>(0)
            })
        };
        let found = read(first)?;
        let first_read = began.elapsed();
        client.run(async |client| {
            client.execute(UPDATE, &[&vec![second.place as i32], &vec![body.clone()]]).await
        })?;
        let first_write = began.elapsed();
        client.run(async |client| client.batch_execute("CHECKPOINT").await)?;
        let full = began.elapsed();
        let (io, counted_by, notes) = own.below(dir)?;

        run.order.check(first, &found, crash).map_err(&wrong)?;
        let sample = run.order.sample(crash);
        for look in &sample {
            let found = read(*look)?;
            let right = match *look == second {
                true => run.order.has(second, AFTERWARDS, &found),
                false => run.order.check(*look, &found, crash),
            };
            right.map_err(&wrong)?;
        }
        drop(client);
        self.server.end(libc::SIGQUIT);
        Ok(Recovered {
            opened,
            first_read,
            first_write,
            full,
            pages_left: Figure::unknown(Reason::NotCounted),
            checked: sample.len() as u64,
            io,
            counted_by,
            notes,
        })
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "postgres has pages of 8 KiB: a row of 4 KiB and its next version in each; its log is full pages"
                .into(),
        ]
    }
}
