//! `headroom sources discover` on real servers and programs: each is found with a source that `headroom check` takes, and what is no
//! server of anybody's is not trusted.

mod hostile_servers;
mod mute_memory;

use programs::{Headroom, Scenario};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testbed::{LoopDisk, MariadbServer, PostgresServer};

fn discover(headroom: &Headroom, more: &[&str]) -> Vec<Value> {
    let scan = headroom.json(&[&["sources", "discover", "--sample", "200ms"], more].concat());
    scan["databases"].as_array().unwrap().clone()
}

#[track_caller]
fn with_pid(found: &[Value], pid: u32) -> &Value {
    let one = found.iter().find(|one| one["pid"] == pid);
    one.unwrap_or_else(|| panic!("{pid} is not among {found:#?}"))
}

/// The source that was printed is one that `check` watches; the directory that it finds by it.
#[track_caller]
fn check_takes(headroom: &Headroom, database: &Value) -> PathBuf {
    let source = database["source"].as_str().unwrap_or_else(|| panic!("no source: {database:#}"));
    let answer = headroom.json(&["check", "--duration", "1s", "--source", source]);
    assert_eq!(answer["source"], source);
    answer["target_path"].as_str().unwrap().into()
}

fn mounts(database: &Value) -> Vec<&str> {
    database["volumes"].as_array().unwrap().iter().map(|volume| volume["mount"].as_str().unwrap()).collect()
}

fn mount_with_role<'a>(database: &'a Value, role: &str) -> &'a str {
    let volumes = database["volumes"].as_array().unwrap();
    let has_role = |volume: &&Value| volume["roles"].as_array().unwrap().contains(&role.into());
    volumes.iter().find(has_role).unwrap_or_else(|| panic!("{role}: {database:#}"))["mount"].as_str().unwrap()
}

/// The first process of a server.
fn postmaster(server: &PostgresServer) -> u32 {
    server.processes()[0]
}

#[test]
fn two_postgres_servers_are_told_apart_with_sources_that_check_takes() {
    let (Some(first), Some(second)) = (PostgresServer::start(15), PostgresServer::start(15)) else { return };
    let headroom = Headroom::new();
    let found = discover(&headroom, &[]);
    for server in [&first, &second] {
        let one = with_pid(&found, postmaster(server));
        assert_eq!(
            (one["engine"].as_str(), one["version"].as_str()),
            (Some("postgres"), Some("15")),
            "{one:#}"
        );
        assert_eq!(one["name"], server.data_directory().to_str().unwrap(), "{one:#}");
        let source = one["source"].as_str().unwrap();
        assert!(
            source.starts_with("postgres:") && source.contains(&format!("port={}", server.port())),
            "{one:#}"
        );
        assert!(one["lacks"].to_string().contains("ALTER SYSTEM SET track_io_timing"), "{one:#}");
        assert_eq!(one["refused"], serde_json::json!([]), "{one:#}");
        assert_eq!(check_takes(&headroom, one), server.data_directory());
    }
}

#[test]
fn as_root_a_server_with_peer_authentication_is_entered_as_its_own_user() {
    let Some(server) = PostgresServer::start(15) else { return };
    if host_user() != 0 {
        return eprintln!("skipped: another user is taken on by root only");
    }
    server.sql("ALTER ROLE root NOLOGIN");
    fs::write(server.data_directory().join("pg_hba.conf"), "local all all peer\n").unwrap();
    let reload = Command::new("kill").args(["-HUP", &postmaster(&server).to_string()]).status();
    assert!(reload.unwrap().success());
    let headroom = Headroom::new();
    let doctor = |source: &str| {
        let output = headroom.run(&["sources", "doctor", "--source", source]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    // Without requirepeer root is root, once the server has read its rules again.
    let plain = format!("postgres:{}", server.connection());
    let until = Instant::now() + Duration::from_secs(20);
    while !doctor(&plain).contains("Peer authentication failed") {
        assert!(Instant::now() < until, "{}", doctor(&plain));
    }
    let one = with_pid(&discover(&headroom, &[]), postmaster(&server)).clone();
    let source = one["source"].as_str().unwrap();
    assert!(source.contains("user=postgres") && source.contains("requirepeer=postgres"), "{one:#}");
    assert!(one["refused"][0]["source"].as_str().unwrap().contains("user=root"), "{one:#}");
    check_takes(&headroom, &one);
    let said = doctor(&source.replace("requirepeer=postgres", "requirepeer=daemon"));
    assert!(said.contains("is required"), "{said}");
}

fn host_user() -> u32 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").unwrap().uid()
}

#[test]
fn a_log_and_a_tablespace_on_volumes_of_their_own_are_found_there() {
    let disks = (LoopDisk::new(512 << 20), LoopDisk::new(256 << 20), LoopDisk::new(256 << 20));
    let (Some(mut first), Some(mut second), Some(mut third)) = disks else { return };
    let [data, log, space] =
        [&mut first, &mut second, &mut third].map(|disk| disk.format_and_mount().to_owned());
    let Some(mut server) = PostgresServer::start_in(15, &data) else { return };
    server.stop();
    let (wal, moved) = (server.data_directory().join("pg_wal"), log.join("wal"));
    fs::set_permissions(&log, fs::Permissions::from_mode(0o755)).unwrap();
    let copied = Command::new("cp").arg("-a").args([&wal, &moved]).status().unwrap();
    assert!(copied.success());
    fs::remove_dir_all(&wal).unwrap();
    symlink(&moved, &wal).unwrap();
    server.launch();
    let place = space.join("space");
    fs::create_dir(&place).unwrap();
    let owner = Command::new("chown").arg("--reference").args([server.data_directory(), &place]).status();
    assert!(owner.unwrap().success());
    fs::set_permissions(&space, fs::Permissions::from_mode(0o755)).unwrap();
    server.sql(&format!("CREATE TABLESPACE moved LOCATION '{}'", place.display()));
    let headroom = Headroom::new();
    headroom.json(&["measure", "--quick", "--size", "64M", log.to_str().unwrap()]);
    let found = discover(&headroom, &[]);
    let one = with_pid(&found, postmaster(&server));
    assert_eq!(mount_with_role(one, "data"), data.to_str().unwrap());
    assert_eq!(mount_with_role(one, "temp"), data.to_str().unwrap());
    assert_eq!(mount_with_role(one, "log"), log.to_str().unwrap());
    assert_eq!(mount_with_role(one, "tablespace"), space.to_str().unwrap());
    let volume = |mount: &Path| {
        let volumes = one["volumes"].as_array().unwrap();
        volumes.iter().find(|volume| volume["mount"] == mount.to_str().unwrap()).unwrap().clone()
    };
    let device = first.device().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(volume(&data)["device"], device.as_str(), "{one:#}");
    assert_eq!(volume(&data)["capability"], Value::Null, "{one:#}");
    assert!(volume(&log)["capability"]["age_s"].as_u64().unwrap() < 600, "{one:#}");
    let text = headroom.run(&["sources", "discover", "--sample", "100ms"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains(&format!("never measured: headroom measure {}", data.display())), "{text}");
    assert!(text.contains("measured less than a minute ago") || text.contains("minute"), "{text}");
}

#[test]
fn a_mariadb_server_is_found_with_a_source_that_check_takes() {
    let Some(mut server) = MariadbServer::start(None, &["performance_schema=ON", "log-bin=binlog"]) else {
        return;
    };
    let headroom = Headroom::new();
    let found = discover(&headroom, &[]);
    let one = with_pid(&found, server.pid());
    assert_eq!(one["engine"], "mariadb", "{one:#}");
    assert_eq!(one["name"], server.data_directory().to_str().unwrap(), "{one:#}");
    assert!(one["source"].as_str().unwrap().starts_with("mysql:socket="), "{one:#}");
    assert!(one["version"].as_str().unwrap().starts_with(|digit: char| digit.is_ascii_digit()), "{one:#}");
    assert_eq!(mounts(one).len(), 1, "{one:#}");
    mount_with_role(one, "log");
    assert_eq!(check_takes(&headroom, one), server.data_directory());
    // A restart is another one, and a server that has ended is not there.
    let pid = server.pid();
    server.restart();
    let found = discover(&headroom, &[]);
    with_pid(&found, server.pid());
    assert!(found.iter().all(|one| one["pid"] != pid), "{found:#?}");
}

#[test]
fn a_server_that_does_not_answer_is_observed_as_a_process() {
    let Some(server) = MariadbServer::start(None, &[]) else { return };
    server.freeze();
    let headroom = Headroom::new();
    let began = Instant::now();
    let found = discover(&headroom, &[]);
    let took = began.elapsed();
    server.thaw();
    let one = with_pid(&found, server.pid());
    assert!(one["refused"].to_string().contains("does not answer within"), "{one:#}");
    if one["source"] == Value::Null {
        return eprintln!("skipped: processes cannot be counted here: {}", one["refused"]);
    }
    assert_eq!(one["source"], format!("process:{}", server.pid()), "{one:#}");
    assert!(took < Duration::from_secs(30), "{took:?}");
    // Most of its files are those of its own tables.
    let directory = check_takes(&headroom, one);
    assert!(directory.starts_with(server.data_directory()), "{}", directory.display());
}

#[test]
fn a_sqlite_program_with_counters_is_found_by_its_database() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let database = place.path().join("shop it's.db");
    let running = Scenario::prepare("commits", &database).start("commits", 60);
    let headroom = Headroom::new();
    let found = discover(&headroom, &[]);
    let one = with_pid(&found, running.pid());
    assert_eq!(
        (one["engine"].as_str(), one["name"].as_str()),
        (Some("sqlite"), database.to_str()),
        "{one:#}"
    );
    assert_eq!(one["source"], format!("sqlite:{}", database.display()), "{one:#}");
    mount_with_role(one, "data");
    check_takes(&headroom, one);
}

/// A process, ended when dropped.
struct Writer(Child);

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_program_with_much_of_a_devices_io_is_found_and_one_with_less_is_not() {
    let Some(mut disk) = LoopDisk::new(256 << 20) else { return };
    let mount = disk.format_and_mount().to_owned();
    let script = format!(
        "import os\nfile = os.open('{}', os.O_WRONLY | os.O_CREAT)\nwhile True:\n  os.pwrite(file, b'x' * (1 << 20), 0); \
         os.fsync(file)\n",
        mount.join("written").display()
    );
    let python = Command::new("/usr/bin/python3").args(["-c", &script]).spawn().unwrap();
    let writer = Writer(python);
    let headroom = Headroom::new();
    std::thread::sleep(Duration::from_millis(500));
    let found =
        headroom.json(&["sources", "discover", "--sample", "2s"])["databases"].as_array().unwrap().clone();
    let one = with_pid(&found, writer.0.id());
    assert_eq!(one["engine"], "program", "{one:#}");
    assert!(one["share"]["share"].as_f64().unwrap() > 0.5, "{one:#}");
    let device = disk.device().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(one["share"]["device"], device.as_str(), "{one:#}");
    // Others are those of descriptors that it inherited.
    assert_eq!(mounts(one)[0], mount.to_str().unwrap(), "{one:#}");
    if one["source"] != Value::Null {
        check_takes(&headroom, one);
    }
    drop(writer);
    let idle = discover(&headroom, &[]);
    assert!(
        idle.iter().all(|one| one["volumes"].to_string().find(mount.to_str().unwrap()).is_none()),
        "{idle:#?}"
    );
}

/// A copy of a shell that a hostile user has named as a server, with hostile arguments.
fn pretender(place: &Path, name: &str, listens: Option<&Path>) -> Child {
    let program = place.join(name);
    fs::copy("/usr/bin/python3", &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let script = match listens {
        Some(socket) => format!(
            "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.bind({:?})\ns.listen()\ns.settimeout(30)\n\
             print('ready', flush=True)\nc = s.accept()[0]\nopen({:?}, 'wb').write(c.recv(4096))\n",
            socket.to_str().unwrap(),
            place.join("received").to_str().unwrap()
        ),
        None => "import sys\nprint('ready', flush=True)\nsys.stdin.read()\n".into(),
    };
    let mut command = Command::new(&program);
    command.args(["-c", &script, "-D", "/\x1b]0;owned\x07\n\u{202e}x", "\x1b[2J"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).current_dir(place);
    let mut child = command.spawn().unwrap();
    let mut first = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut first)
        .unwrap();
    assert_eq!(first.trim(), "ready");
    child
}

fn end(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn hostile_names_and_arguments_do_nothing_to_the_terminal() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let odd = place.path().join("a\x1b]0;owned\x07\n\u{202e}b");
    fs::create_dir(&odd).unwrap();
    let child = pretender(&odd, "postgres", None);
    let headroom = Headroom::new();
    let output = headroom.run(&["sources", "discover", "--sample", "100ms"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let found = discover(&headroom, &[]);
    let pid = child.id();
    end(child);
    assert!(!text.contains(['\x1b', '\x07', '\u{202e}']), "{text:?}");
    assert!(text.contains(&format!("  {pid}  ")), "{text}");
    let name = with_pid(&found, pid)["name"].as_str().unwrap().to_owned();
    assert_eq!(PathBuf::from(name), fs::canonicalize(&odd).unwrap());
}

#[test]
fn a_socket_that_another_process_took_over_gets_no_login() {
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join(".s.PGSQL.5432");
    let child = pretender(place.path(), "postgres", Some(&socket));
    // Another process takes the name of the socket.
    fs::remove_file(&socket).unwrap();
    let planted = UnixListener::bind(&socket).unwrap();
    planted.set_nonblocking(true).unwrap();
    let headroom = Headroom::new();
    let found = discover(&headroom, &[]);
    let one = with_pid(&found, child.id()).clone();
    end(child);
    assert!(one["refused"].to_string().contains("and the server is process"), "{one:#}");
    let mut sent = Vec::new();
    while let Ok((mut client, _)) = planted.accept() {
        client.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let _ = std::io::Read::read_to_end(&mut client, &mut sent);
    }
    assert_eq!(sent, b"", "what was asked who listens has told nothing");
}

#[test]
fn a_server_in_another_mount_namespace_is_found_with_what_can_be_said() {
    let Some(mut disk) = LoopDisk::new(128 << 20) else { return };
    let mount = disk.format_and_mount().to_owned();
    let program = mount.join("mongod");
    fs::copy("/usr/bin/python3", &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(mount.join("data")).unwrap();
    let inner = tempfile::tempdir().unwrap();
    // As a container's volume: a directory of the host at another name.
    let script = format!(
        "mount --bind '{mount}/data' '{inner}' && exec '{mount}/mongod' -c 'import sys; f = open(\"{inner}/collection-0.wt\", \
         \"wb\"); print(\"ready\", flush=True); sys.stdin.read()'",
        mount = mount.display(),
        inner = inner.path().display()
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private", "bash", "-c", &script]);
    let mut child = unshare.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut first)
        .unwrap();
    if first.trim() != "ready" {
        end(child);
        return eprintln!("skipped: no mount namespace of its own here");
    }
    let headroom = Headroom::new();
    let found = discover(&headroom, &[]);
    let one = with_pid(&found, child.id()).clone();
    end(child);
    assert_eq!(one["engine"], "mongodb", "{one:#}");
    let volumes = one["volumes"].as_array().unwrap();
    let there = volumes.iter().find(|volume| volume["mount"] == mount.to_str().unwrap());
    let path = mount.join("data/collection-0.wt");
    assert_eq!(there.unwrap()["path"], path.to_str().unwrap(), "as the host names it: {one:#}");
}

#[test]
fn processes_that_end_during_the_scan_do_no_harm() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = place.path().join("postgres");
    fs::copy("/usr/bin/true", &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let script = format!("while :; do '{}'; done", program.display());
    let churn = Writer(Command::new("bash").args(["-c", &script]).spawn().unwrap());
    let headroom = Headroom::new();
    for _ in 0..5 {
        let output = headroom.run(&["sources", "discover", "--sample", "50ms", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
    drop(churn);
}

#[test]
fn wrong_usage_says_what_to_give() {
    let headroom = Headroom::new();
    for (arguments, word) in [
        (&["--share", "0"][..], "10%"),
        (&["--share", "101%"], "10%"),
        (&["--sample", "0s"], "1s"),
        (&["--sample", "1h"], "10m"),
    ] {
        let output = headroom.run(&[&["sources", "discover"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(word), "{arguments:?}: {said}");
    }
    let help = String::from_utf8(headroom.run(&["sources", "discover", "--help"]).stdout).unwrap();
    assert!(help.lines().count() < 40 && help.contains("Examples:"), "{help}");
}
