//! Servers that lie, break off, hang or send without end, of each protocol: each costs its own source an error within the
//! deadline, and neither memory, nor the process, nor another source's figures.

mod mysql;
mod postgres;
mod sqlserver;

use collect::{FileNames, Source, SourceError};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Bound on the time of a source, with a margin for a busy machine.
const LIMIT: Duration = Duration::from_secs(5 + 3);
/// Of the whole process, while three tests run: the service may have 256 MiB for one recording.
const MEMORY_KIB_MAX: u64 = 384 << 10;
/// So that an allocation of a size that a server made up fails at once.
const ADDRESS_SPACE_BYTES_MAX: u64 = 8 << 30;

static PANICS: AtomicU32 = AtomicU32::new(0);

/// A server's handling of a connection.
type Serve = fn(&mut TcpStream) -> io::Result<()>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Error,
    /// The figures are absurd, but figures.
    Any,
}

#[derive(Clone, Copy)]
struct Behaviour {
    name: &'static str,
    /// Of the connection text.
    options: &'static str,
    outcome: Outcome,
    serve: Serve,
}

fn fails(name: &'static str, serve: Serve) -> Behaviour {
    Behaviour { name, options: "", outcome: Outcome::Error, serve }
}

fn with(options: &'static str, behaviour: Behaviour) -> Behaviour {
    Behaviour { options, ..behaviour }
}

fn survives(name: &'static str, serve: Serve) -> Behaviour {
    Behaviour { name, options: "", outcome: Outcome::Any, serve }
}

/// A server on its port.
fn start(serve: Serve) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            let mut tcp = tcp.unwrap();
            // The client closes the connection: that ends it.
            std::thread::spawn(move || serve(&mut tcp));
        }
    });
    port
}

type Open = fn(u16, &str) -> Result<Box<dyn Source>, SourceError>;

/// Tries all behaviours, while another source is read.
fn try_all(behaviours: &[Behaviour], open: Open) {
    count_panics();
    let other = collect::parse_source("devices:").unwrap();
    let mut other = other.open(&[], &FileNames::default()).unwrap();
    for behaviour in behaviours {
        let port = start(behaviour.serve);
        let options = behaviour.options;
        let hostile = std::thread::spawn(move || {
            let began = Instant::now();
            let read = open(port, options).and_then(|mut source| source.snapshot().map(drop));
            (read, began.elapsed())
        });
        loop {
            other.snapshot().expect("another source");
            if hostile.is_finished() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let (read, took) = hostile.join().unwrap();
        let name = behaviour.name;
        assert_eq!(PANICS.load(Relaxed), 0, "{name}: a panic");
        assert!(took < 2 * LIMIT, "{name}: {took:?}");
        match read {
            Ok(()) => assert!(behaviour.outcome == Outcome::Any, "{name}: it is believed"),
            Err(error) => {
                eprintln!("{name}: {error} ({took:?})");
                assert!(error.to_string().contains(&format!("127.0.0.1:{port}")), "{name}: {error}");
            }
        }
        assert!(memory_kib() < MEMORY_KIB_MAX, "{name}: {} MiB", memory_kib() >> 10);
    }
}

fn count_panics() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let bytes = Some(ADDRESS_SPACE_BYTES_MAX);
    setrlimit(Resource::As, Rlimit { current: bytes, maximum: bytes }).unwrap();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Relaxed);
        before(info);
    }));
}

/// The most that this process had so far.
fn memory_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn silent(tcp: &mut TcpStream) -> io::Result<()> {
    io::copy(tcp, &mut io::sink()).map(drop)
}

fn close(_: &mut TcpStream) -> io::Result<()> {
    Ok(())
}

fn another_protocol(tcp: &mut TcpStream) -> io::Result<()> {
    tcp.write_all(b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n")?;
    silent(tcp)
}

/// Sends the bytes again and again until the client closes.
fn endlessly(tcp: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    let many = bytes.repeat((64 << 10) / bytes.len() + 1);
    loop {
        tcp.write_all(&many)?;
    }
}

fn slowly(tcp: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    for byte in bytes.iter().cycle() {
        tcp.write_all(&[*byte])?;
        std::thread::sleep(Duration::from_millis(150));
    }
    Ok(())
}

fn take(tcp: &mut TcpStream, bytes: usize) -> io::Result<Vec<u8>> {
    let mut taken = vec![0; bytes];
    tcp.read_exact(&mut taken)?;
    Ok(taken)
}

/// Terminal escapes, and no UTF-8.
const UGLY: &[u8] = b"\x1b]0;owned\x07\x1b[2J\xff\xfe\x80 hello";
