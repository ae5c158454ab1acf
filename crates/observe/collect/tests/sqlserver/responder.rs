//! A server that answers the source's queries as the documentation of a chosen version of SQL Server says: with the columns
//! of that version, and with errors for objects that it does not have.

use super::wire::{self, Cell, Login, Peer, Type};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum Version {
    V2012,
    V2014,
    V2019,
    V2022,
    AzureDatabase,
}

#[derive(Clone, Debug)]
pub struct File {
    pub database_id: i64,
    pub file_id: i64,
    pub database: &'static str,
    pub created: &'static str,
    pub guid: &'static str,
    pub kind: i64,
    pub path: String,
    pub handle: u64,
    /// Count, bytes, stall in milliseconds.
    pub read: [i64; 3],
    pub write: [i64; 3],
    pub queued: [i64; 2],
    pub size_bytes: i64,
}

/// The fault to simulate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trouble {
    #[default]
    None,
    /// Every query is answered with this error.
    Error(i32, &'static str),
    /// A query that contains this text gets a malformed answer.
    Garbled(&'static str),
    /// The connection ends in the middle of an answer.
    Cut,
    /// No query is answered.
    Hang,
    /// Answers arrive byte by byte.
    Trickle,
}

/// State that a test may read or change while the responder runs.
pub struct State {
    pub version: Version,
    pub started: &'static str,
    pub ms_ticks: u64,
    pub files: Vec<File>,
    /// Type, count, time, signal time.
    pub waits: Vec<(&'static str, i64, i64, i64)>,
    pub sees_names: bool,
    pub trouble: Trouble,
    pub login_error: Option<(i32, &'static str)>,
    pub route: Option<(&'static str, u16)>,
    /// The encryption of PRELOGIN: 0 off, 1 on, 2 not supported, 3 required.
    pub encryption: u8,
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Whether a connection is ended after each answer.
    pub is_forgetful: bool,
    pub requests: Vec<String>,
    pub logins: Vec<Login>,
    /// Whether each login and each request was encrypted.
    pub encrypted: (Vec<bool>, Vec<bool>),
    pub attentions: u32,
}

pub const PASSWORD: &str = "pass wörd;'\"";

pub struct Responder {
    pub port: u16,
    state: Arc<Mutex<State>>,
}

impl Responder {
    pub fn start(version: Version) -> Responder {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::new(version)));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for tcp in listener.incoming() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || {
                    // The client checks how it ends.
                    let _ = serve(tcp.unwrap(), &shared);
                });
            }
        });
        Responder { port, state }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn url(&self, options: &str) -> String {
        format!("sqlserver://watcher@127.0.0.1:{}/{options}", self.port)
    }
}

impl State {
    fn new(version: Version) -> State {
        State {
            version,
            started: "2026-11-20T08:00:00.123",
            ms_ticks: 90_000_000,
            files: Vec::new(),
            waits: Vec::new(),
            sees_names: true,
            trouble: Trouble::None,
            login_error: None,
            route: None,
            encryption: 2,
            tls: None,
            is_forgetful: false,
            requests: Vec::new(),
            logins: Vec::new(),
            encrypted: (Vec::new(), Vec::new()),
            attentions: 0,
        }
    }
}

fn serve(tcp: TcpStream, shared: &Mutex<State>) -> io::Result<()> {
    let mut peer = Peer { tcp, tls: None };
    let (kind, message) = wire::read_message(&mut peer)?;
    assert_eq!(kind, 0x12);
    let wish = wire::wish(&message);
    let (word, tls) = shared.lock().map(|state| (state.encryption, state.tls.clone())).unwrap();
    peer.write_all(&wire::packets(4, &wire::prelogin(word), 4096))?;
    let is_encrypted = wish != 2 && word != 2;
    if let Some(config) = tls.filter(|_| is_encrypted) {
        peer.encrypt(rustls::ServerConnection::new(config).unwrap())?;
    }
    let (kind, message) = wire::read_message(&mut peer)?;
    assert_eq!(kind, 0x10);
    let login = wire::login(&message);
    let answer = {
        let mut state = shared.lock().unwrap();
        let is_known = login.user == "watcher" && login.password == PASSWORD;
        state.logins.push(login);
        state.encrypted.0.push(peer.tls.is_some());
        match (state.login_error, state.route) {
            (Some((number, text)), _) => wire::error(number, 14, text),
            (None, _) if !is_known => wire::error(18456, 14, "Login failed for user 'watcher'."),
            (None, Some((host, port))) => wire::login_routed(host, port),
            (None, None) => wire::login_accepted(),
        }
    };
    if wish == 0 && word == 0 {
        peer.tls = None;
    }
    peer.write_all(&wire::packets(4, &answer, 4096))?;
    loop {
        let (kind, message) = wire::read_message(&mut peer)?;
        assert_eq!(kind, 1, "an SQL batch");
        let sql = wire::batch(&message);
        let (trouble, answer, is_forgetful) = {
            let mut state = shared.lock().unwrap();
            state.requests.push(sql.clone());
            state.encrypted.1.push(peer.tls.is_some());
            (state.trouble.clone(), state.answer(&sql), state.is_forgetful)
        };
        // Packets end anywhere within a row.
        let bytes = wire::packets(4, &answer, 600);
        match trouble {
            Trouble::Garbled(part) if sql.contains(part) => {
                peer.write_all(&wire::packets(4, &[0x33; 40], 600))?;
            }
            Trouble::None | Trouble::Error(..) | Trouble::Garbled(_) => peer.write_all(&bytes)?,
            Trouble::Cut => return peer.write_all(&bytes[..bytes.len() / 2]),
            Trouble::Trickle => {
                for byte in bytes {
                    peer.write_all(&[byte])?;
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
            Trouble::Hang => {
                let (kind, _) = wire::read_message(&mut peer)?;
                assert_eq!(kind, 6, "an attention");
                shared.lock().unwrap().attentions += 1;
                // Then the connection ends.
                assert_eq!(peer.read(&mut [0])?, 0);
                return Ok(());
            }
        }
        if is_forgetful {
            return Ok(());
        }
    }
}

impl State {
    fn answer(&self, sql: &str) -> Vec<u8> {
        let lacks: &[&str] = match self.version {
            Version::AzureDatabase => &["sys.master_files", "dm_os_volume_stats", "sys.dm_os_wait_stats"],
            _ => &["dm_db_wait_stats"],
        };
        if let Some(object) = lacks.iter().find(|object| sql.contains(**object)) {
            return wire::error(208, 16, &format!("Invalid object name '{object}'."));
        }
        if self.version < Version::V2014 && sql.contains("queued")
            || !self.has_pushed() && sql.contains("pushed")
        {
            return wire::error(207, 16, "Invalid column name.");
        }
        match (&self.trouble, sql) {
            _ if sql.contains("SERVERPROPERTY") => self.server(),
            (Trouble::Error(number, text), _) => wire::error(*number, 14, text),
            _ if sql.contains("dm_os_volume_stats") => self.volumes(),
            _ if sql.contains("dm_io_virtual_file_stats(NULL, NULL)") => self.file_stats(),
            _ if sql.contains("wait_stats") => self.wait_stats(),
            // The client's settings.
            _ => wire::done(0, 0),
        }
    }

    fn server(&self) -> Vec<u8> {
        let (version, edition) = match self.version {
            Version::V2012 => ("11.0.7507.2", 2),
            Version::V2014 => ("12.0.6449.1", 3),
            Version::V2019 => ("15.0.4385.2", 3),
            Version::V2022 => ("16.0.4135.4", 3),
            Version::AzureDatabase => ("12.0.2000.8", 5),
        };
        let text = |text: &str| Cell::Text(text.into());
        wire::table(
            &[
                ("version", Type::Text),
                ("engine_edition", Type::Int),
                ("server_name", Type::Text),
                ("login_name", Type::Text),
                ("user_name", Type::Text),
            ],
            &[vec![text(version), Cell::Int(edition), text("DB1"), text("watcher"), text("guest")]],
        )
    }

    fn has_pushed(&self) -> bool {
        self.version == Version::V2022
    }

    /// The documented columns, in their order, and those of the joins.
    fn file_stats(&self) -> Vec<u8> {
        use Type::{BigInt, Binary, Int, SmallInt, Text};
        let is_narrow = self.version < Version::V2019;
        let mut columns = vec![
            ("database_id", SmallInt),
            ("file_id", SmallInt),
            ("sample_ms", if is_narrow { Int } else { BigInt }),
            ("num_of_reads", BigInt),
            ("num_of_bytes_read", BigInt),
            ("io_stall_read_ms", BigInt),
            ("num_of_writes", BigInt),
            ("num_of_bytes_written", BigInt),
            ("io_stall_write_ms", BigInt),
            ("io_stall", BigInt),
            ("size_on_disk_bytes", BigInt),
            ("file_handle", Binary),
        ];
        if self.version >= Version::V2014 {
            columns.extend([("io_stall_queued_read_ms", BigInt), ("io_stall_queued_write_ms", BigInt)]);
        }
        if self.has_pushed() {
            columns.extend([("num_of_pushed_reads", BigInt), ("num_of_pushed_bytes_returned", BigInt)]);
        }
        let joined = [
            ("ms_ticks", BigInt),
            ("started", Text),
            ("database_name", Text),
            ("database_created", Text),
            ("file_guid", Text),
            ("file_type", Int),
            ("physical_name", Text),
            ("sees_names", Int),
        ];
        columns.extend(joined);
        let rows: Vec<_> = self.files.iter().map(|file| self.file_row(file)).collect();
        wire::table(&columns, &rows)
    }

    fn file_row(&self, file: &File) -> Vec<Cell> {
        let int = Cell::Int;
        let text = |text: &str| if text.is_empty() { Cell::Null } else { Cell::Text(text.into()) };
        let is_narrow = self.version < Version::V2019;
        let sample = if is_narrow { i64::from(self.ms_ticks as u32 as i32) } else { self.ms_ticks as i64 };
        let (read, write) = (file.read, file.write);
        let mut row = vec![int(file.database_id), int(file.file_id), int(sample)];
        row.extend([read[0], read[1], read[2], write[0], write[1], write[2], read[2] + write[2]].map(int));
        row.extend([int(file.size_bytes), Cell::Binary(file.handle.to_be_bytes().to_vec())]);
        if self.version >= Version::V2014 {
            row.extend(file.queued.map(int));
        }
        if self.has_pushed() {
            row.extend([7, 4096].map(int));
        }
        let is_named = self.sees_names || file.database_id <= 2;
        let named = |cell: Cell| if is_named { cell } else { Cell::Null };
        row.extend([int(self.ms_ticks as i64), text(self.started), text(file.database), text(file.created)]);
        row.extend([named(text(file.guid)), named(int(file.kind)), named(text(&file.path))]);
        row.push(int(self.sees_names.into()));
        row
    }

    fn volumes(&self) -> Vec<u8> {
        let row = |file: &File| {
            let mount = if file.path.starts_with("D:\\logs\\") { "D:\\logs\\" } else { "D:\\" };
            vec![Cell::Int(file.database_id), Cell::Int(file.file_id), Cell::Text(mount.into())]
        };
        let rows: Vec<_> = self.files.iter().map(row).collect();
        wire::table(
            &[("database_id", Type::Int), ("file_id", Type::Int), ("mount_point", Type::TextMax)],
            &rows,
        )
    }

    fn wait_stats(&self) -> Vec<u8> {
        let columns = [
            ("wait_type", Type::Text),
            ("waiting_tasks_count", Type::BigInt),
            ("wait_time_ms", Type::BigIntNull),
            ("signal_wait_time_ms", Type::BigInt),
        ];
        let cells = |(name, count, wait, signal): &(&str, i64, i64, i64)| {
            vec![Cell::Text((*name).into()), Cell::Int(*count), Cell::Int(*wait), Cell::Int(*signal)]
        };
        let rows: Vec<_> = self.waits.iter().filter(|wait| wait.1 > 0).map(cells).collect();
        wire::table(&columns, &rows)
    }
}
