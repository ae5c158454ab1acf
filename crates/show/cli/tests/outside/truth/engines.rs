//! The databases, each filled with rows that its memory does not hold, and made to do what a situation says.

use super::Load;
use everyday::PageCache;
use programs::{Running, Scenario, built};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use testbed::{MariadbServer, PostgresServer};

/// Rows of nearly 8 KiB: 128 MiB.
const ROWS: u32 = 16_384;
/// `few` reads twenty times in all of its time.
const FEW_SECONDS: u32 = 8;
const CLIENTS: usize = 32;
/// Longer than it is watched, whatever the machine does besides; ended before.
const SECONDS: u32 = 60;
/// So short that at 2,000 reads a second hardly any row is read from memory.
const EVICT_EVERY: Duration = Duration::from_millis(200);

/// A database on the device.
pub trait Engine {
    fn name(&self) -> &'static str;

    /// The argument of `--source`.
    fn source(&self, load: Load) -> String;

    /// How long to watch it: as short as a sound answer allows.
    fn watched(&self) -> &'static str {
        "6s"
    }

    /// Waits until nothing of what was done before is still to be written.
    fn settle(&self);

    /// Begins, and ends when that is dropped.
    fn start(&self, load: Load) -> Box<dyn Working + '_>;
}

/// A load that ends when it is dropped.
pub trait Working {}

impl Working for Running {}
impl Working for Sessions {}
impl Working for Loops<'_> {}

/// Two databases of SQLite, the larger one for those who read.
pub struct Sqlite {
    large: Scenario,
    small: Scenario,
    dir: PathBuf,
}

impl Sqlite {
    pub const NAME: &str = "SQLite";

    pub fn make(dir: &Path) -> Option<Box<dyn Engine>> {
        built();
        Some(Box::new(Sqlite {
            large: Scenario::prepare("readers", &dir.join("large.db")),
            small: Scenario::prepare("idle", &dir.join("small.db")),
            dir: dir.into(),
        }))
    }
}

impl Engine for Sqlite {
    fn name(&self) -> &'static str {
        Sqlite::NAME
    }

    fn source(&self, load: Load) -> String {
        let name = if load == Load::Readers { "large.db" } else { "small.db" };
        format!("sqlite:{}", self.dir.join(name).display())
    }

    fn settle(&self) {}

    fn start(&self, load: Load) -> Box<dyn Working> {
        Box::new(match load {
            Load::Idle => self.small.start("idle", SECONDS),
            Load::Commits => self.small.start("commits", SECONDS),
            Load::Few => self.small.start("few", FEW_SECONDS),
            Load::Readers => self.large.start("readers", SECONDS),
        })
    }
}

/// Ended when dropped.
pub struct Sessions(pub Vec<Child>);

impl Drop for Sessions {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// PostgreSQL, through the system's page cache, whose pages of the table are thrown out all the time. The version is
/// Debian's, or that of HEADROOM_TRUTH_POSTGRES.
pub struct Postgres {
    server: PostgresServer,
    scripts: tempfile::TempDir,
    _evicting: Evicting,
}

const READ: &str = "\\set id random(1, 16384)\nSELECT length(payload) FROM items WHERE id = :id;\n";
const COMMIT: &str = "INSERT INTO events (payload) VALUES (repeat('x', 100));\n";
/// Twenty for a round trip, so that on a busy machine it is not the client that is waited for.
const COMMITS: &str = "DO $$ BEGIN FOR i IN 1..20 LOOP
    INSERT INTO events (payload) VALUES (repeat('x', 100)); COMMIT; END LOOP; END $$;\n";

impl Postgres {
    pub const NAME: &str = "PostgreSQL";

    pub fn make(dir: &Path) -> Option<Box<dyn Engine>> {
        let version = std::env::var("HEADROOM_TRUTH_POSTGRES").map_or(15, |version| version.parse().unwrap());
        let server = PostgresServer::start_in(version, dir)?;
        // The defaults, but for timing, which a verdict needs, and for what runs on its own.
        server.set("track_io_timing", "on");
        server.set("track_wal_io_timing", "on");
        server.set("autovacuum", "off");
        server.sql("ALTER SYSTEM SET shared_buffers = '16MB'");
        // Not compressed and not put aside: a row fills a block.
        server.sql(&format!(
            "CREATE UNLOGGED TABLE items (id int PRIMARY KEY, payload text);
             ALTER TABLE items ALTER payload SET STORAGE PLAIN;
             CREATE TABLE events (id bigserial PRIMARY KEY, payload text);
             INSERT INTO items SELECT g, repeat('x', 7900) FROM generate_series(1, {ROWS}) g;"
        ));
        server.sql("VACUUM ANALYZE items");
        let table = server.data_directory().join(server.sql("SELECT pg_relation_filepath('items')"));
        let mut server = server;
        server.restart();
        let scripts = tempfile::tempdir().unwrap();
        std::fs::write(scripts.path().join("read"), READ).unwrap();
        std::fs::write(scripts.path().join("commit"), COMMIT).unwrap();
        std::fs::write(scripts.path().join("commits"), COMMITS).unwrap();
        Some(Box::new(Postgres { server, scripts, _evicting: Evicting::begin(&table) }))
    }

    fn script(&self, name: &str, share: u32) -> String {
        format!("--file={}@{share}", self.scripts.path().join(name).display())
    }
}

impl Engine for Postgres {
    fn name(&self) -> &'static str {
        Postgres::NAME
    }

    fn source(&self, _: Load) -> String {
        format!("postgres:{}", self.server.connection())
    }

    /// Its sessions tell what they did up to a second late: two stretches of four of these.
    fn watched(&self) -> &'static str {
        "9s"
    }

    fn settle(&self) {
        self.server.sql("CHECKPOINT");
    }

    fn start(&self, load: Load) -> Box<dyn Working> {
        let (clients, arguments) = match load {
            Load::Idle => (1, vec![self.script("read", 3), self.script("commit", 2), "--rate=25".into()]),
            Load::Readers => (CLIENTS, vec![self.script("read", 1)]),
            Load::Commits => (1, vec![self.script("commits", 1)]),
            Load::Few => (1, vec![self.script("read", 1), "--rate=2.5".into()]),
        };
        let mut pgbench = self.server.pgbench_command();
        pgbench.args(["--no-vacuum", &format!("--client={clients}"), &format!("--time={SECONDS}")]);
        pgbench.args(arguments).arg("postgres").stdout(Stdio::null()).stderr(Stdio::null());
        let sessions = Sessions(vec![pgbench.spawn().unwrap()]);
        let connected = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'";
        while self.server.sql(connected) != clients.to_string() {
            std::thread::sleep(Duration::from_millis(20));
        }
        Box::new(sessions)
    }
}

/// Throws a file out of the page cache again and again, until dropped.
pub struct Evicting {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Evicting {
    pub fn begin(file: &Path) -> Evicting {
        let cache = PageCache::open(file).unwrap();
        cache.write_out().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let asked = over.clone();
        let thread = std::thread::spawn(move || {
            while !asked.load(Ordering::Relaxed) {
                cache.evict().unwrap();
                std::thread::park_timeout(EVICT_EVERY);
            }
        });
        Evicting { over, thread: Some(thread) }
    }
}

impl Drop for Evicting {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// MariaDB, past the page cache. The clients' loops run in the server.
pub struct Mariadb(MariadbServer);

const LOOPS: &str = "
    CREATE PROCEDURE read_one() SQL SECURITY INVOKER BEGIN
      DECLARE chosen INT DEFAULT 1 + FLOOR(RAND() * 16384); DECLARE found INT;
      SELECT LENGTH(payload) INTO found FROM items WHERE id = chosen;
    END//
    CREATE PROCEDURE readers() SQL SECURITY INVOKER BEGIN WHILE TRUE DO CALL read_one(); END WHILE; END//
    CREATE PROCEDURE commit_one() SQL SECURITY INVOKER BEGIN INSERT INTO events (payload) VALUES (REPEAT('x', 100)); END//
    CREATE PROCEDURE commits() SQL SECURITY INVOKER BEGIN WHILE TRUE DO CALL commit_one(); END WHILE; END//
    CREATE PROCEDURE few() SQL SECURITY INVOKER BEGIN WHILE TRUE DO CALL read_one(); DO SLEEP(0.4); END WHILE; END//
    CREATE PROCEDURE idle() SQL SECURITY INVOKER BEGIN
      DECLARE step INT DEFAULT 0;
      WHILE TRUE DO
        IF step % 5 < 2 THEN CALL commit_one(); ELSE CALL read_one(); END IF;
        DO SLEEP(0.04); SET step = step + 1;
      END WHILE;
    END//";

impl Mariadb {
    pub const NAME: &str = "MariaDB";

    pub fn make(dir: &Path) -> Option<Box<dyn Engine>> {
        // The defaults, but for what the source needs, a log that holds what the table is filled with, and memory for half
        // of the table: in 16 MiB the old versions of rows that a flat-out writer leaves have no room until they are purged,
        // and are read again at the rate the device gives.
        let lines = ["performance_schema=ON", "innodb_log_file_size=256M", "innodb_buffer_pool_size=64M"];
        let server = MariadbServer::start(Some(dir), &lines)?;
        server.sql(&format!(
            "CREATE DATABASE shop; USE shop;
             CREATE TABLE items (id INT PRIMARY KEY, payload VARBINARY(8000)) ENGINE=InnoDB;
             CREATE TABLE events (id BIGINT PRIMARY KEY AUTO_INCREMENT, payload VARCHAR(200)) ENGINE=InnoDB;
             INSERT INTO items SELECT seq, REPEAT('x', 7900) FROM seq_1_to_{ROWS};
             DELIMITER //\n{LOOPS}\nDELIMITER ;
             CREATE USER app@localhost; GRANT ALL ON shop.* TO app@localhost;"
        ));
        Some(Box::new(Mariadb(server)))
    }
}

impl Engine for Mariadb {
    fn name(&self) -> &'static str {
        Mariadb::NAME
    }

    fn source(&self, _: Load) -> String {
        self.0.url()
    }

    fn settle(&self) {
        self.0.sql("SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0, innodb_max_dirty_pages_pct = 0");
        let dirty = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = \
                     'Innodb_buffer_pool_pages_dirty'";
        while self.0.sql(dirty) != "0" {
            std::thread::sleep(Duration::from_millis(50));
        }
        self.0.sql("SET GLOBAL innodb_max_dirty_pages_pct = DEFAULT");
    }

    fn start(&self, load: Load) -> Box<dyn Working + '_> {
        let (clients, procedure) = match load {
            Load::Idle => (1, "idle"),
            Load::Readers => (CLIENTS, "readers"),
            Load::Commits => (1, "commits"),
            Load::Few => (1, "few"),
        };
        let session = |_| {
            let mut session = self.0.session("app", &format!("USE shop; CALL {procedure}()"));
            session.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let sessions = Sessions((0..clients).map(session).collect());
        let running =
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'app' AND DB = 'shop'";
        while self.0.sql(running) != clients.to_string() {
            std::thread::sleep(Duration::from_millis(20));
        }
        Box::new(Loops { server: &self.0, _sessions: sessions })
    }
}

/// Loops go on in the server when their client has gone.
struct Loops<'a> {
    server: &'a MariadbServer,
    _sessions: Sessions,
}

impl Drop for Loops<'_> {
    fn drop(&mut self) {
        self.server.sql("KILL USER app");
        while self.server.sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'app'") != "0"
        {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
