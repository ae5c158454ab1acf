//! A PostgreSQL server that is killed with all its processes.

use super::process_io::ProcessIo;
use super::server::{self, MEASURE_EVERY};
use super::victim::{Counted, Recovered, ReportStep, Served, Victim, time_recovery, wrong};
use super::work::{BODY_BYTES, Crash, Order, Work};
use super::{Context, Engine, Strategy};
use crate::Error;
use collect::postgres::Client;
use filestats::Figure;
use servers::PostgresPrograms;
use std::fs;
use std::path::Path;

/// A row and its next version fill a page.
pub(super) const PAGE_BYTES: u64 = 8_192;
/// In the socket's name: the server listens on nothing else.
const PORT: u16 = 5432;
const UPDATE: &str = "UPDATE pages SET body = new.body FROM unnest($1::int[], $2::bytea[]) AS new (id, body) \
                      WHERE pages.id = new.id";
const SELECT: &str = "SELECT body FROM pages WHERE id = $1";
/// Forces the index: the table has no statistics.
const BY_INDEX: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off";

pub(super) struct Postgres {
    server: servers::Postgres,
}

impl Postgres {
    pub(super) fn initialise(dir: &Path, work: &Work) -> Result<Postgres, Error> {
        let programs = PostgresPrograms::find()?;
        // The data directory is the image: it is evicted from the page cache and removed as a whole.
        let data = dir.join("image");
        fs::create_dir(&data).map_err(Error::io("make", &data))?;
        // No checkpoint before the kill, and no log of the rows created before the work. All other settings are the defaults.
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

    /// Creates the table with rows of zeros, a page each.
    fn fill(&self, client: &Client, run: &Context, report: &mut ReportStep<'_>) -> Result<bool, Error> {
        let sql = |statements: &str| client.run(async |client| client.batch_execute(statements).await);
        sql(&format!(
            "BEGIN; CREATE TABLE pages (id int PRIMARY KEY, body bytea NOT NULL) WITH (fillfactor = 50); \
             ALTER TABLE pages ALTER COLUMN body SET STORAGE PLAIN; {BY_INDEX}"
        ))?;
        let all = server::fill(run, report, |from, to| {
            Ok(sql(&format!(
                "INSERT INTO pages SELECT id, decode(repeat('00', {BODY_BYTES}), 'hex') \
                 FROM generate_series({from}, {}) AS id",
                to - 1
            ))?)
        })?;
        sql("COMMIT; CHECKPOINT")?;
        Ok(all)
    }
}

impl Victim for Postgres {
    fn crash(
        &mut self,
        _: &Path,
        run: &Context,
        report: &mut ReportStep<'_>,
    ) -> Result<Option<Crash>, Error> {
        self.server.launch()?;
        let client = Client::connect(&self.server.connection())?;
        if !self.fill(&client, run, report)? {
            return Ok(None);
        }
        let position = client.run(async |client| {
            client.query_one("SELECT pg_current_wal_lsn()::text", &[]).await?.try_get::<_, String>(0)
        })?;
        let measure = format!("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '{position}')::bigint");
        let (update, measure) = client
            .run(async |client| Ok((client.prepare(UPDATE).await?, client.prepare(&measure).await?)))?;
        let server = &mut self.server;
        server::commit_until_killed(
            run,
            report,
            || server.kill(),
            |commit| {
                let (mut ids, mut bodies) = (Vec::new(), Vec::new());
                for write in Order::writes(commit) {
                    let mut body = vec![0; BODY_BYTES];
                    run.order.fill(write, &mut body);
                    ids.push(run.order.place(write) as i32);
                    bodies.push(body);
                }
                client.run(async |client| client.execute(&update, &[&ids, &bodies]).await)?;
                if !(commit + 1).is_multiple_of(MEASURE_EVERY) {
                    return Ok(None);
                }
                // The commit is acknowledged even if the server is killed before it answers the next query.
                let log =
                    client.run(async |client| client.query_one(&measure, &[]).await?.try_get::<_, i64>(0));
                Ok(log.ok().map(|bytes| bytes.max(0) as u64))
            },
        )
    }

    fn recover(
        &mut self,
        dir: &Path,
        strategy: Strategy,
        crash: &Crash,
        run: &Context,
    ) -> Result<Recovered, Error> {
        self.server.move_data(dir);
        let own_io = ProcessIo::open();
        let pages = Figure::Known(run.order.pages_written(crash));
        time_recovery(crash, run, wrong(Engine::Postgres, strategy), || {
            self.server.launch()?;
            let client = Client::connect(&self.server.connection())?;
            Ok(Opened { client, server: &mut self.server, own_io, dir, pages })
        })
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "postgres has pages of 8 KiB: a row of 4 KiB and its next version in each; its log is full pages"
                .into(),
        ]
    }
}

struct Opened<'a> {
    client: Client,
    server: &'a mut servers::Postgres,
    own_io: ProcessIo,
    dir: &'a Path,
    pages: Figure<u64>,
}

impl Served for Opened<'_> {
    fn read(&mut self, place: u64) -> Result<Vec<u8>, Error> {
        let read = async |client: &tokio_postgres::Client| {
            client.query_one(SELECT, &[&(place as i32)]).await?.try_get::<_, Vec<u8>>(0)
        };
        Ok(self.client.run(read)?)
    }

    fn write(&mut self, place: u64, body: &[u8]) -> Result<(), Error> {
        let (ids, bodies) = (vec![place as i32], vec![body]);
        self.client.run(async |client| client.execute(UPDATE, &[&ids, &bodies]).await)?;
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Error> {
        Ok(self.client.run(async |client| client.batch_execute("CHECKPOINT").await)?)
    }

    fn counted(&mut self) -> Result<Counted, Error> {
        Ok(Counted { pages: self.pages, ..self.own_io.below(self.dir)? })
    }

    fn end(self) -> Result<(), Error> {
        drop(self.client);
        self.server.end(libc::SIGQUIT);
        Ok(())
    }
}
