//! One attempt to deliver a notification.

use crate::Notification;
use push::{Endpoint, Headers, Outcome};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const JSON: Headers = &[("content-type", "application/json")];
/// A command that runs longer is killed with the processes that it started, and counts as failed.
const COMMAND_LONGEST: Duration = Duration::from_secs(30);
/// How often it is looked whether a command has ended.
const NAP: Duration = Duration::from_millis(20);

/// Sends JSON.
pub fn post(to: &Endpoint, document: &Value) -> Outcome {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Outcome::Failed { why: error.to_string(), not_before: None },
    };
    let outcome = runtime.block_on(push::post(to, JSON, document.to_string().into_bytes()));
    // A name that is still being resolved is not waited for.
    runtime.shutdown_background();
    outcome
}

/// Runs a program with the document on its standard input.
pub fn run(program: &Path, notification: &Notification) -> Outcome {
    let mut command = Command::new(program);
    command.env("HEADROOM_INCIDENT", notification.id.to_string());
    command.env("HEADROOM_EVENT", notification.happened.word());
    match run_within(COMMAND_LONGEST, command, notification.document.to_string()) {
        Ok(status) if status.success() => Outcome::Taken,
        Ok(status) => Outcome::Failed { why: format!("it ended with {status}"), not_before: None },
        Err(why) => Outcome::Failed { why, not_before: None },
    }
}

/// Runs a command in a process group of its own, which is ended after the limit.
fn run_within(limit: Duration, mut command: Command, text: String) -> Result<ExitStatus, String> {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0);
    let mut child = command.spawn().map_err(|error| format!("cannot start it: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        // In a thread of its own: a program that reads nothing would be waited for. One that ends first closes the pipe.
        thread::spawn(move || drop(input.write_all(text.as_bytes())));
    }
    let until = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if Instant::now() < until => thread::sleep(NAP),
            Ok(None) => {
                // It may end by itself just now. Programs that it started are of its process group, unless they left it.
                if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                let _ = child.wait();
                return Err(format!("it ran longer than {} s and was killed", limit.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_command_that_runs_too_long_is_ended_with_what_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let pid_file = dir.path().join("pid");
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo $! >\"$0\"; wait"]).arg(&pid_file);
        let why = run_within(Duration::from_millis(500), command, String::new()).unwrap_err();
        assert!(why.contains("was killed"), "{why}");
        let pid = fs::read_to_string(pid_file).unwrap().trim().parse().unwrap();
        let until = Instant::now() + Duration::from_secs(5);
        // A process that has ended and that its new parent has not waited for yet counts as ended.
        while host::start_ticks(pid).is_some() {
            assert!(Instant::now() < until, "{pid} still runs");
            thread::sleep(NAP);
        }
    }
}
