//! A killed MariaDB server: InnoDB redoes its log before it answers; a checkpoint writes its pages afterwards.

use super::process_io::ProcessIo;
use super::server::{self, MEASURE_EVERY};
use super::victim::{Counted, Recovered, ReportStep, Served, Victim, time_recovery, wrong};
use super::work::{BODY_BYTES, Crash, Order, Work};
use super::{Context, Engine, Strategy};
use crate::Error;
use collect::mysql::{Client, Parameter, Statement};
use filestats::{Figure, Reason};
use servers::MariadbPrograms;
use std::path::Path;

/// InnoDB's default.
pub(super) const PAGE_BYTES: u64 = 16_384;
/// Rows of 4 KiB that fit into such a page.
const ROWS_PER_PAGE: u64 = 3;
/// Bytes of log for a changed row: its old content, for the undo log, and its new one.
const LOGGED_BYTES: u64 = 2 * BODY_BYTES as u64;
/// The server fills at least two thirds of its log before it writes pages only to reuse it.
const LOG_TIMES: (u64, u64) = (3, 2);
const LOG_MIN_BYTES: u64 = 96 << 20;
/// Pages without rows: undo logs and the server's own tables.
const CACHE_SLACK_BYTES: u64 = 128 << 20;
/// Without this setting only a shutdown writes all pages.
const CHECKPOINT: &str = "innodb-log-checkpoint-now";

const UPDATE: &str = "UPDATE lab.pages SET body = ? WHERE id = ?";

pub(super) struct Mariadb {
    server: servers::Mariadb,
    /// Pages that it wrote before it was killed in spite of its settings.
    written_before: u64,
}

/// The most bytes of its files.
pub(super) fn image_bytes(work: &Work) -> u64 {
    // The undo logs take half of what is logged.
    work.data_pages.div_ceil(ROWS_PER_PAGE) * PAGE_BYTES * 21 / 20 + log_file_bytes(work) + work.log_bytes
}

fn log_file_bytes(work: &Work) -> u64 {
    (work.log_bytes / LOG_TIMES.1 * LOG_TIMES.0 + LOG_MIN_BYTES).next_multiple_of(1 << 20)
}

/// A cache that holds all changed pages, so that none is written before the kill; at most half of the memory.
fn cache_bytes(work: &Work) -> u64 {
    let rows = work.pages.min(work.log_bytes / LOGGED_BYTES);
    let pages = rows.min(work.data_pages.div_ceil(ROWS_PER_PAGE));
    let needed = pages * PAGE_BYTES * 5 / 4 + work.log_bytes / 2 + CACHE_SLACK_BYTES;
    needed.min(memory_bytes() / 2).next_multiple_of(1 << 20)
}

fn memory_bytes() -> u64 {
    host::memory_figures().get("MemTotal").copied().unwrap_or(0)
}

impl Mariadb {
    pub(super) fn initialise(dir: &Path, work: &Work) -> Result<Mariadb, Error> {
        let programs = MariadbPrograms::find()?;
        if !programs.has_setting(CHECKPOINT)? {
            return Err(Error::Writer {
                engine: "mariadb",
                why: format!("has no {CHECKPOINT} in this version"),
            });
        }
        // No page is written before the kill. All other settings are the defaults.
        let lines = [
            format!("innodb_log_file_size={}", log_file_bytes(work)),
            format!("innodb_buffer_pool_size={}", cache_bytes(work)),
            "innodb_adaptive_flushing=OFF".into(),
            "innodb_max_dirty_pages_pct=99.999".into(),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let server = servers::Mariadb::initialise(&programs, dir, &dir.join("image"), &lines)?;
        Ok(Mariadb { server, written_before: 0 })
    }

    fn connect(&mut self) -> Result<Client, Error> {
        self.server.launch()?;
        Ok(Client::connect(&self.server.url())?)
    }
}

/// A status variable of the server.
fn status(client: &mut Client, name: &str) -> Result<u64, Error> {
    let sql = format!("SHOW GLOBAL STATUS LIKE '{name}'");
    let rows = client.query(&sql, 2)?;
    let lacks = || Error::Writer { engine: "mariadb", why: format!("does not report {name}") };
    rows.first().and_then(|row| row[1].parse().ok()).ok_or_else(lacks)
}

/// Writes and syncs all pages; a recovery would start at the end of the log now.
fn checkpoint(client: &mut Client) -> Result<(), Error> {
    Ok(client.execute(&["SET GLOBAL innodb_log_checkpoint_now = ON"])?)
}

/// Creates the table with rows of zeros.
fn fill(client: &mut Client, run: &Context, report: &mut ReportStep<'_>) -> Result<bool, Error> {
    client.execute(&[
        "CREATE DATABASE lab",
        &format!(
            "CREATE TABLE lab.pages (id INT PRIMARY KEY, body VARBINARY({BODY_BYTES}) NOT NULL) ENGINE = InnoDB"
        ),
        "USE lab",
    ])?;
    let all = server::fill(run, report, |from, to| {
        let rows = format!("FROM seq_{from}_to_{}", to - 1);
        Ok(client.execute(&[&format!("INSERT INTO pages SELECT seq, REPEAT(x'00', {BODY_BYTES}) {rows}")])?)
    })?;
    checkpoint(client)?;
    Ok(all)
}

fn write_page(client: &mut Client, update: &Statement, place: u64, body: &[u8]) -> Result<(), Error> {
    Ok(client.execute_prepared(update, &[Parameter::Bytes(body), Parameter::Number(place)])?)
}

/// Pages that the log had changes of, from "InnoDB: To recover: 81 pages" in the server's log. Several such lines mean
/// that it read the log in pieces and may have counted a page in each.
fn pages_to_recover(log: &str) -> Figure<u64> {
    let lines = log.lines().filter_map(|line| line.split_once("InnoDB: To recover: "));
    let numbers: Vec<u64> =
        lines.filter_map(|(_, rest)| rest.split_once(" pages")?.0.trim().parse().ok()).collect();
    match numbers[..] {
        [pages] => Figure::Known(pages),
        _ => Figure::unknown(Reason::NotCounted),
    }
}

impl Victim for Mariadb {
    fn crash(
        &mut self,
        _: &Path,
        run: &Context,
        report: &mut ReportStep<'_>,
    ) -> Result<Option<Crash>, Error> {
        let mut client = self.connect()?;
        if !fill(&mut client, run, report)? {
            return Ok(None);
        }
        let (log_began, written) = (
            status(&mut client, "Innodb_lsn_current")?,
            status(&mut client, "Innodb_buffer_pool_pages_flushed")?,
        );
        let update = client.prepare(UPDATE)?;
        let mut body = vec![0; BODY_BYTES];
        let (server, written_before) = (&mut self.server, &mut self.written_before);
        let kill = || server.end(libc::SIGKILL);
        server::commit_until_killed(run, report, kill, |commit| {
            client.execute(&["BEGIN"])?;
            for write in Order::writes(commit) {
                run.order.fill(write, &mut body);
                write_page(&mut client, &update, run.order.place(write), &body)?;
            }
            client.execute(&["COMMIT"])?;
            // The commit is acknowledged even if the server is killed before it answers the next query.
            if !(commit + 1).is_multiple_of(MEASURE_EVERY) {
                return Ok(None);
            }
            let Ok(log) = status(&mut client, "Innodb_lsn_current") else { return Ok(None) };
            if let Ok(now) = status(&mut client, "Innodb_buffer_pool_pages_flushed") {
                *written_before = now.saturating_sub(written);
            }
            Ok(Some(log.saturating_sub(log_began)))
        })
    }

    fn recover(
        &mut self,
        dir: &Path,
        strategy: Strategy,
        crash: &Crash,
        run: &Context,
    ) -> Result<Recovered, Error> {
        self.server.move_data(dir);
        let log_before = self.server.log_text().len();
        let own_io = ProcessIo::open();
        time_recovery(crash, run, wrong(Engine::Mariadb, strategy), || {
            let client = self.connect()?;
            let server = &mut self.server;
            Ok(Opened { client, update: None, server, own_io, dir, log_before, log_end: 0 })
        })
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "mariadb has pages of 16 KiB with three rows of 4 KiB each, and logs what a row was beside what it is; pages of \
             its undo log are among those that it redoes"
                .into(),
        ];
        if self.written_before > 0 {
            notes.push(format!(
                "mariadb wrote {} pages before it was killed, although it was configured to write none",
                self.written_before
            ));
        }
        notes
    }
}

struct Opened<'a> {
    client: Client,
    /// Prepared at the first write.
    update: Option<Statement>,
    server: &'a mut servers::Mariadb,
    own_io: ProcessIo,
    dir: &'a Path,
    /// Bytes of the server's text log before its start.
    log_before: usize,
    /// End of its log before the checkpoint.
    log_end: u64,
}

impl Served for Opened<'_> {
    fn read(&mut self, place: u64) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        let sql = format!("SELECT body FROM lab.pages WHERE id = {place}");
        self.client.for_each_row(&sql, |_, row| body = row[0].unwrap_or_default().to_vec())?;
        Ok(body)
    }

    fn write(&mut self, place: u64, body: &[u8]) -> Result<(), Error> {
        let update = match self.update.take() {
            Some(update) => update,
            None => self.client.prepare(UPDATE)?,
        };
        write_page(&mut self.client, self.update.insert(update), place, body)
    }

    fn settle(&mut self) -> Result<(), Error> {
        self.log_end = status(&mut self.client, "Innodb_lsn_current")?;
        checkpoint(&mut self.client)
    }

    fn counted(&mut self) -> Result<Counted, Error> {
        let counted = self.own_io.below(self.dir)?;
        if status(&mut self.client, "Innodb_lsn_last_checkpoint")? < self.log_end {
            return Err(wrong(Engine::Mariadb, Strategy::Own)("its checkpoint was kept from its end".into()));
        }
        let log = self.server.log_text();
        Ok(Counted { pages: pages_to_recover(log.get(self.log_before..).unwrap_or_default()), ..counted })
    }

    fn end(self) -> Result<(), Error> {
        drop(self.client);
        self.server.end(libc::SIGKILL);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MariaDB 10.11.19.
    #[test]
    fn pages_to_recover_are_read_from_the_servers_log() {
        let line = "2026-11-22 14:50:50 0 [Note] InnoDB: To recover: 81 pages\n";
        let log = format!(
            "2026-11-22 14:50:50 0 [Note] InnoDB: End of log at LSN=37611972\n{line}Version: '10.11'\n"
        );
        assert_eq!(pages_to_recover(&log), Figure::Known(81));
        assert_eq!(pages_to_recover("ready for connections"), Figure::unknown(Reason::NotCounted));
        assert_eq!(pages_to_recover(&line.repeat(2)), Figure::unknown(Reason::NotCounted), "in pieces");
    }

    #[test]
    fn the_log_and_the_cache_hold_the_work() {
        let work = Work { pages: 256_000, data_pages: 512_000, log_bytes: 1 << 30, seed: 1 };
        assert!(log_file_bytes(&work) * 2 / 3 > work.log_bytes);
        // 132,000 rows, each in a page of its own.
        assert!(cache_bytes(&work) > 132_000 * PAGE_BYTES || cache_bytes(&work) >= memory_bytes() / 2);
        let few = Work { pages: 1_000, data_pages: 1 << 20, ..work };
        assert!(cache_bytes(&few) < 1 << 30, "a large file needs no large cache");
    }
}
