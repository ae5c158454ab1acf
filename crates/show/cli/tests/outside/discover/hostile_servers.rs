//! Programs that look like servers, never answer, and attack who connects to them.

use super::{Writer, host_user, with_pid};
use programs::Headroom;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testbed::PostgresServer;

/// A user without rights, and its group: Debian's numbers.
const NOBODY: u32 = 65_534;
/// Mute servers: more than are tried at the same time.
const MUTE: usize = 96;
/// One of them in each process, as servers of their own: the process that starts them ends. They end with their standard input.
const MUTE_SERVERS: &str = "
import os, socket, sys
for at in range(int(sys.argv[2])):
    if os.fork() == 0:
        place = sys.argv[1] + '/' + str(at)
        os.mkdir(place)
        os.chdir(place)
        server = socket.socket(socket.AF_UNIX)
        server.bind(place + '/.s.PGSQL.5432')
        server.listen()
        os.write(1, b'ready\\n')
        os.read(0, 1)
        os._exit(0)
";
/// Its socket is also at the end of a chain of links, each of which takes the kernel long. It signals all threads of the
/// programs that the process argv[2] starts.
const ATTACKER: &str = "
import os, signal, socket, sys, threading, time
place, parent = sys.argv[1], sys.argv[2]
os.mkdir(place + '/run')
name = 'run'
for at in range(30):
    os.symlink('run/../' * 500 + name, place + '/' + str(at))
    name = str(at)
servers = [socket.socket(socket.AF_UNIX) for _ in range(2)]
for server, path in zip(servers, (place + '/run/.s.PGSQL.5432', place + '/29/.s.PGSQL.5433')):
    server.bind(path)
    os.chmod(path, 0o777)
    server.listen()
def hang_up(server):
    while True:
        server.accept()[0].close()
for server in servers:
    threading.Thread(target=hang_up, args=(server,), daemon=True).start()
def children():
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            if pid != str(os.getpid()) and open('/proc/' + pid + '/stat', errors='replace').read().rpartition(')')[2].split()[1] == parent:
                yield pid
        except OSError:
            pass
os.write(1, b'ready\\n')
while True:
    victims, until = list(children()), time.monotonic() + 0.02
    while time.monotonic() < until:
        for pid in victims:
            try:
                for thread in os.listdir('/proc/' + pid + '/task'):
                    try:
                        os.kill(int(thread), signal.SIGSTOP)
                        os.kill(int(thread), signal.SIGKILL)
                    except OSError:
                        pass
            except OSError:
                pass
";

/// Python with the name of a server, in a directory that every user may enter; it prints `lines` lines once it runs.
struct Pretender {
    place: TempDir,
    child: Child,
    /// Its children end when it is closed.
    _input: Option<ChildStdin>,
}

impl Pretender {
    fn start(script: &str, argument: &str, lines: usize, user: Option<u32>) -> Pretender {
        let place = tempfile::tempdir().unwrap();
        let all = if user.is_some() { 0o777 } else { 0o755 };
        fs::set_permissions(place.path(), fs::Permissions::from_mode(all)).unwrap();
        let program = place.path().join("postgres");
        fs::copy("/usr/bin/python3", &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new(&program);
        command.args(["-c", script]).arg(place.path()).arg(argument).current_dir(place.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        let mut child = command.spawn().unwrap();
        let ready = BufReader::new(child.stdout.take().unwrap()).lines().take(lines);
        assert_eq!(ready.filter(|line| line.as_ref().is_ok_and(|line| line == "ready")).count(), lines);
        let input = child.stdin.take();
        Pretender { place, child, _input: input }
    }

    fn path(&self) -> &Path {
        self.place.path()
    }
}

impl Drop for Pretender {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `headroom` with these arguments, unable to load BPF programs: that takes many seconds on a busy machine, and is tried where a
/// server cannot be entered.
fn without_bpf(headroom: &Headroom, arguments: &[&str]) -> Command {
    let command = headroom.command(arguments);
    if host_user() != 0 {
        return command;
    }
    let mut limited = Command::new("setpriv");
    limited.args(["--bounding-set", "-bpf,-perfmon,-sys_admin"]);
    limited.arg(command.get_program()).args(command.get_args());
    limited
}

fn discover(headroom: &Headroom) -> Vec<Value> {
    let output =
        without_bpf(headroom, &["sources", "discover", "--sample", "200ms", "--json"]).output().unwrap();
    let scan: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    scan["databases"].as_array().unwrap().clone()
}

#[test]
fn mute_servers_delay_no_scan_and_all_are_listed() {
    let server = PostgresServer::start(15);
    let crowd = Pretender::start(MUTE_SERVERS, &MUTE.to_string(), MUTE, None);
    let headroom = Headroom::new();
    headroom.run(&["version"]);
    let (found, took, text) = std::thread::scope(|scope| {
        let text = scope.spawn(|| {
            without_bpf(&headroom, &["sources", "discover", "--sample", "200ms"]).output().unwrap().stdout
        });
        let began = Instant::now();
        let found = discover(&headroom);
        (found, began.elapsed(), String::from_utf8(text.join().unwrap()).unwrap())
    });
    println!("{took:?} beside {MUTE} mute servers");
    // 4 s on an idle machine, and 26 s where eight were tried at a time.
    assert!(took < Duration::from_secs(12), "{took:?}");
    let place = crowd.path().to_str().unwrap();
    let mute: Vec<&Value> =
        found.iter().filter(|one| one["name"].as_str().unwrap().starts_with(place)).collect();
    assert_eq!(mute.len(), MUTE);
    for one in mute {
        let why = one["refused"][0]["error"].as_str().unwrap();
        assert!(why.contains("does not answer within") || why.starts_with("not tried"), "{one:#}");
        assert!(text.contains(&format!("  {}  ", one["pid"])), "{one:#}");
    }
    assert!(text.contains("it does not answer within"), "{text}");
    if let Some(server) = server {
        let one = with_pid(&found, super::postmaster(&server));
        assert!(one["source"].as_str().unwrap().starts_with("postgres:"), "{one:#}");
        assert_eq!((&one["version"], &one["refused"]), (&"15".into(), &serde_json::json!([])), "{one:#}");
    }
}

/// Waits until it ends; it must neither be stopped nor take long.
#[track_caller]
fn end_of(child: Child) -> ExitStatus {
    let mut child = Writer(child);
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(status) = child.0.try_wait().unwrap() {
            return status;
        }
        assert!(!is_stopped(&child.0), "it was stopped");
        assert!(Instant::now() < until, "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_stopped(child: &Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:\tT"))
}

#[test]
fn the_user_of_a_found_server_neither_ends_nor_stops_this_program() {
    if host_user() != 0 {
        return eprintln!("skipped: only root connects as other users");
    }
    let headroom = Headroom::new();
    headroom.run(&["version"]);
    let attacker = Pretender::start(ATTACKER, &std::process::id().to_string(), 1, Some(NOBODY));
    let place = attacker.path().display();
    let source = |directory: &str, port: u16| {
        format!(
            "postgres:host={place}/{directory} port={port} user=nobody requirepeer=nobody dbname=postgres"
        )
    };
    let (plain, links) = (source("run", 5432), source("29", 5433));
    let start = |arguments: &[&str]| {
        without_bpf(&headroom, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut agent = Writer(start(&["agent", "--listen", "127.0.0.1:0"]));
    for _ in 0..3 {
        assert_eq!(end_of(start(&["sources", "discover", "--sample", "50ms"])).code(), Some(0), "discover");
    }
    for source in [&plain, &links] {
        for arguments in [
            &["sources", "doctor", "--source", source][..],
            &["check", "--duration", "1s", "--source", source],
        ] {
            let status = end_of(start(arguments));
            assert_eq!(status.signal(), None, "{arguments:?}");
        }
    }
    assert!(agent.0.try_wait().unwrap().is_none() && !is_stopped(&agent.0), "the agent");
    drop(agent);
    let found = discover(&headroom);
    let refused = with_pid(&found, attacker.child.id())["refused"].to_string();
    assert!(refused.contains("which user nobody made; name its target"), "{refused}");
}
