//! Agents that run, each with a database on a disk of its own.

use crate::servers::free_port;
use programs::{Headroom, Running, Scenario};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testbed::LoopDisk;

/// Shorter than the defaults, so that the tests take less time.
const QUICK: [&str; 4] = ["--window", "20s", "--every", "2s"];
/// Long on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// A database on a disk of its own, and the agent that judges it.
pub struct Node {
    agent: Child,
    port: u16,
    _database: Running,
    // After what uses it.
    pub disk: LoopDisk,
    pub headroom: Headroom,
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.agent.kill();
        let _ = self.agent.wait();
    }
}

impl Node {
    /// With further arguments for the agent; `None`, after saying so, where there are no loop devices.
    pub fn set_up(further: &[&str]) -> Option<Node> {
        let mut disk = LoopDisk::new(1 << 30)?;
        let dir = disk.format_and_mount().to_owned();
        let headroom = Headroom::new();
        headroom.json(&["measure", "--quick", "--size", "128M", dir.to_str().unwrap()]);
        let database = dir.join("shop.db");
        let running = Scenario::prepare("idle", &database).start("idle", 600);
        let source = format!("sqlite:{}", database.display());
        let port = free_port();
        let address = format!("127.0.0.1:{port}");
        let mut command = headroom.command(&["agent", "--source", &source, "--listen", &address]);
        // The name that a server which scrapes it gives it.
        command.args(["--instance", &address]);
        let mut agent =
            command.args(QUICK).args(further).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(agent.stderr.take().unwrap()).lines().map(Result::unwrap);
        lines.find(|line| line.contains("metrics at http://")).unwrap();
        std::thread::spawn(move || lines.for_each(|line| println!("  {line}")));
        Some(Node { agent, port, _database: running, disk, headroom })
    }

    /// Ends the agent as systemd does.
    pub fn end_agent(&mut self) {
        let status = Command::new("kill").args(["-TERM", &self.agent.id().to_string()]).status();
        assert!(status.unwrap().success());
        self.agent.wait().unwrap();
    }

    pub fn instance(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

/// A program that is ended with the test.
pub struct Ended(pub Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until it is so; fails with what was last seen.
#[track_caller]
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> Result<(), String>) {
    let began = Instant::now();
    loop {
        match is_so() {
            Ok(()) => return println!("{what} after {:.0?}", began.elapsed()),
            Err(seen) => assert!(began.elapsed() < PATIENCE, "not {what}: {seen}"),
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}
