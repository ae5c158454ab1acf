//! The servers, the disks and the agents.

use super::super::{Agent, Evicting, READ, Sessions};
use super::claims::{Claims, Log};
use super::usage::Usage;
use crate::dice::Dice;
use crate::wall_clock::WallClock;
use programs::Headroom;
use std::fs::{self, File};
use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testbed::{LoopDisk, MariadbServer, PostgresServer};

/// Rows of nearly 8 KiB: more than the server's memory holds.
const ROWS: u32 = 4_096;
/// Of the disk of the history.
const HISTORY_DISK_BYTES: u64 = 48 << 20;
/// The history and its WAL: what two databases take in a month is less.
const HISTORY_BYTES_MAX: u64 = 16 << 20;
/// Declared capability of the databases' disk: far more than the load needs, and far less than a disk in memory gives. A
/// measurement would take longer than all else.
const DECLARED: [&str; 8] =
    ["--read-iops", "16000", "--write-iops", "16000", "--bandwidth", "1000M", "--latency", "2ms"];
/// As short as they can be.
const QUICK: [&str; 8] = ["--every", "1s", "--window", "10s", "--open-after", "4s", "--close-after", "4s"];
/// A source is opened again within 30 s.
const UP_WITHIN: Duration = Duration::from_secs(60);
/// An event is in the log within this time.
const LINE_WITHIN: Duration = Duration::from_secs(60);

/// All that takes part. Fields are dropped in this order.
pub struct Stage {
    agent: Option<Agent>,
    pub claims: Claims,
    /// It runs from the beginning to the end, and keeps a history elsewhere.
    steady: Option<Steady>,
    pub headroom: Headroom,
    /// The history as it was when the first agent began.
    first_history: Vec<u8>,
    pub postgres: PostgresServer,
    pub mariadb: MariadbServer,
    scripts: tempfile::TempDir,
    garbage_port: u16,
    pub clock: Option<WallClock>,
    pub disk: LoopDisk,
    pub history_disk: LoopDisk,
}

struct Steady {
    agent: Agent,
    usage: Usage,
    _headroom: Headroom,
}

impl Stage {
    /// `None`, after saying so, where something is not installed.
    pub fn set_up(dice: &mut Dice) -> Option<Stage> {
        let mut disk = LoopDisk::new_in_memory(3 << 30)?;
        let mut history_disk = LoopDisk::new_in_memory(HISTORY_DISK_BYTES)?;
        let dir = disk.format_and_mount().to_owned();
        let headroom = Headroom::new_in(history_disk.format_and_mount());
        headroom.json(&[&["storage", "declare", dir.to_str().unwrap()], &DECLARED[..]].concat());
        let first_history = fs::read(headroom.history()).unwrap();
        let mut postgres = PostgresServer::start_in(15, &dir)?;
        let lines = ["performance_schema=ON", "innodb_flush_log_at_trx_commit=0"];
        let mariadb = MariadbServer::start(Some(&dir), &lines)?;
        postgres.set("track_io_timing", "on");
        postgres.set("track_wal_io_timing", "on");
        postgres.set("autovacuum", "off");
        postgres.sql("ALTER SYSTEM SET shared_buffers = '16MB'");
        postgres.sql(&format!(
            "CREATE TABLE items (id int PRIMARY KEY, payload text);
             ALTER TABLE items ALTER payload SET STORAGE PLAIN;
             INSERT INTO items SELECT g, repeat('x', 7900) FROM generate_series(1, {ROWS}) g;"
        ));
        postgres.sql("VACUUM ANALYZE items");
        postgres.restart();
        let scripts = tempfile::tempdir().unwrap();
        fs::write(scripts.path().join("read"), READ.replace("8192", &ROWS.to_string())).unwrap();
        let stage = Stage {
            agent: None,
            claims: Claims::default(),
            steady: None,
            headroom,
            first_history,
            postgres,
            mariadb,
            scripts,
            garbage_port: garbage(dice.up_to(u64::MAX)),
            clock: WallClock::make(),
            disk,
            history_disk,
        };
        stage.make_databases();
        Some(stage)
    }

    /// The databases that are dropped and made again.
    pub fn make_databases(&self) {
        self.postgres.sql("CREATE DATABASE shop");
        self.postgres.sql("CREATE TABLE IF NOT EXISTS load (id int, filler text)");
        self.mariadb.sql("CREATE DATABASE shop; CREATE TABLE shop.load_ (id int, filler text) ENGINE=InnoDB");
    }

    pub fn drop_databases(&self) {
        self.postgres.sql("DROP DATABASE shop WITH (FORCE)");
        self.mariadb.sql("DROP DATABASE shop");
    }

    /// Makes files, of which the agent reads the counters.
    pub fn make_tables(&self, count: u64) {
        self.mariadb.sql("CREATE DATABASE many");
        for chunk in (0..count).collect::<Vec<_>>().chunks(1_000) {
            let tables = chunk.iter().map(|table| format!("CREATE TABLE many.t{table} (id int);"));
            self.mariadb.sql(&tables.collect::<String>());
        }
    }

    /// A load that needs a small part of what the storage gives.
    pub fn load(&self) {
        self.postgres.sql("INSERT INTO load SELECT n, repeat('x', 100) FROM generate_series(1, 20) n");
        self.mariadb.sql("INSERT INTO shop.load_ SELECT seq, repeat('x', 100) FROM seq_1_to_20");
    }

    /// Clients that read from the disk at a pace until they are dropped.
    pub fn readers(&self) -> (Sessions, Evicting) {
        let table = self.postgres.sql("SELECT pg_relation_filepath('items')");
        let evicting = Evicting::begin(&self.postgres.data_directory().join(table));
        let mut pgbench = self.postgres.pgbench_command();
        pgbench.args(["--no-vacuum", "--client=4", super::super::RATE, "--time=600"]);
        pgbench.arg(format!("--file={}", self.scripts.path().join("read").display()));
        pgbench.arg("postgres").stdout(Stdio::null()).stderr(Stdio::null());
        (Sessions(vec![pgbench.spawn().unwrap()]), evicting)
    }

    /// How the agent is started.
    pub fn command(&self, headroom: &Headroom) -> Command {
        let mut command = headroom.command(&["agent", "--listen", "127.0.0.1:0"]);
        let postgres = self.postgres.connection();
        let port = self.garbage_port;
        for source in [
            format!("postgres:{postgres}"),
            format!("postgres:{}", postgres.replace("dbname=postgres", "dbname=shop")),
            self.mariadb.url(),
            format!("postgres:host=127.0.0.1 port={port} user=u dbname=d sslmode=disable"),
            format!("mysql://u@127.0.0.1:{port}/"),
        ] {
            command.args(["--source", &source]);
        }
        command.args(QUICK);
        if let Some(clock) = &self.clock {
            clock.give_to(&mut command);
        }
        command
    }

    pub fn start_agent(&mut self) {
        self.agent = Some(Agent::begin(self.command(&self.headroom)));
    }

    pub fn start_steady(&mut self) {
        let headroom = Headroom::new();
        fs::write(headroom.history(), &self.first_history).unwrap();
        let agent = Agent::begin(self.command(&headroom));
        let usage = Usage::new(agent.child.id());
        self.steady = Some(Steady { agent, usage, _headroom: headroom });
    }

    /// The agent that runs.
    pub fn agent(&self) -> &Agent {
        self.agent.as_ref().expect("an agent that runs")
    }

    pub fn log(&self) -> &Log {
        &self.agent().log
    }

    /// Ends it with a signal, and reads what it reported.
    pub fn end_agent(&mut self, signal: &str) {
        let mut agent = self.agent.take().expect("an agent that runs");
        let pid = agent.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        agent.child.wait().unwrap();
        // The thread that reads its log ends with the pipe.
        agent.reader.take().unwrap().join().unwrap();
        self.claims.read(&agent.log);
    }

    /// Puts the first history in the place of the one that is there.
    pub fn restore_history(&self) {
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{suffix}", self.headroom.history().display()));
        }
        fs::write(self.headroom.history(), &self.first_history).unwrap();
    }

    /// The number of lines in the log, from which [`wait_for_line`](Self::wait_for_line) searches.
    pub fn mark(&self) -> usize {
        self.log().lock().unwrap().len()
    }

    /// Whether a line of the log behind `mark` has this text.
    pub fn has_line(&self, mark: usize, text: &str) -> bool {
        self.log().lock().unwrap().iter().skip(mark).any(|(_, line)| line.contains(text))
    }

    /// Waits until a line of the log behind `mark` has this text.
    #[track_caller]
    pub fn wait_for_line(&self, mark: usize, text: &str) {
        let began = Instant::now();
        while !self.has_line(mark, text) {
            let log = self.log().lock().unwrap();
            assert!(began.elapsed() < LINE_WITHIN, "not in the log: {text}: {:#?}", &log[mark..]);
            drop(log);
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// All sources give counters again, and only those that answer garbage do not.
    pub fn wait_until_up(&self) {
        let began = Instant::now();
        loop {
            let text = self.agent().metrics();
            let sources = text.lines().filter(|line| line.starts_with("headroom_source_up{"));
            let (garbage, servers): (Vec<&str>, Vec<&str>) =
                sources.partition(|line| line.contains(&self.garbage_port.to_string()));
            assert!(garbage.iter().all(|line| line.ends_with(" 0")), "{garbage:#?}");
            if servers.len() == 3 && servers.iter().all(|line| line.ends_with(" 1")) {
                return;
            }
            assert!(began.elapsed() < UP_WITHIN, "{text}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Nothing has grown beyond its bound.
    pub fn sample_usage(&mut self) {
        Usage::new(self.agent().child.id()).sample();
        let bytes = |suffix: &str| {
            let path = format!("{}{suffix}", self.headroom.history().display());
            fs::metadata(path).map_or(0, |file| file.len())
        };
        let all = bytes("") + bytes("-wal");
        assert!(all < HISTORY_BYTES_MAX, "the history has {all} bytes");
        if let Some(steady) = &mut self.steady {
            steady.usage.sample();
        }
    }

    /// Ends the steady agent, and checks it.
    pub fn check_steady(&mut self) {
        let Some(Steady { mut agent, usage, _headroom }) = self.steady.take() else { return };
        assert!(agent.child.try_wait().unwrap().is_none(), "it ended");
        self.claims.begin_again();
        self.claims.read(&agent.log);
        usage.check_bounded();
    }

    /// Fills the disk of the history up to the last block.
    pub fn fill_history_disk(&self) -> Filler {
        let path = self.history_disk.mount_point().join("filler");
        let mut file = File::create(&path).unwrap();
        for bytes in [1 << 20, 64 << 10, 4 << 10] {
            let block = vec![7; bytes];
            while file.write_all(&block).and_then(|()| file.sync_data()).is_ok() {}
        }
        Filler(path)
    }
}

/// Removed when dropped.
pub struct Filler(PathBuf);

impl Drop for Filler {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A server that accepts each connection and sends random bytes, or none for a while.
fn garbage(seed: u64) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut dice = Dice(seed);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let bytes: Vec<u8> = (0..dice.up_to(100_000)).map(|_| dice.up_to(256) as u8).collect();
            if dice.up_to(4) == 1 {
                dice.sleep_ms(2_000);
            }
            let _ = stream.write_all(&bytes);
        }
    });
    port
}
