//! kill -9 on a real file system, repeatedly, for a given time.

use crashlab::kill::{self, ChildRole, KillTest};
use serde_json::{Value, json};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use storage::Target;
use terminal::{Done, FINE, Failure, Output, interrupt, kept, problem_found};

/// The process that is killed: this program with `--child`.
pub fn child(store: &Path, words: &[String]) -> Done {
    let (Some(role), Ok(number)) = (ChildRole::from_name(&words[0]), words[1].parse()) else {
        return Err(Failure::usage("--child is for headroom itself"));
    };
    kill::run_child(store, role, kill::recovery_by_number(number)).map_err(|error| {
        Failure::new(format_args!("cannot use the store in {}: {error}", store.display()))
    })?;
    Ok(FINE)
}

/// A free name for a store that was found wrong. One of an earlier process with the same id is kept: it is evidence too.
fn free_name(directory: &Path) -> PathBuf {
    let own = format!("headroom-crash-{}", std::process::id());
    let names = std::iter::once(own.clone()).chain((2..).map(|number: u64| format!("{own}-{number}")));
    let mut places = names.map(|name| directory.join(name));
    places.find(|place| place.symlink_metadata().is_err()).expect("there are enough numbers")
}

/// The result of kills.
struct Kills {
    killed: kill::KillTotals,
    seconds: f64,
    failure: Option<String>,
    /// Where the store of a failure is left.
    store: Option<PathBuf>,
}

pub fn run(directory: &Path, duration: Duration, history: Option<&Path>, out: &mut Output) -> Done {
    let cannot = |error: &dyn std::fmt::Display| {
        Failure::new(format_args!("cannot keep a store in {}: {error}", directory.display())).with_remedy(
            "an existing directory that can be written and has room, on the file system in question",
        )
    };
    let target = Target::open(directory)?;
    let mut history = kept::open_to_write(history)?;
    interrupt::install();
    let mut workspace = crate::workspace::open(target.path(), &mut history, out)?;
    workspace.require_private_path()?;
    let store = workspace.entry("lab-crash");
    let program = std::env::current_exe().map_err(|error| cannot(&error))?;
    let seed = u64::from(std::process::id());
    let killing = KillTest::create(&store, seed).map_err(|error| cannot(&error))?;
    let mut kills = kill_repeatedly(killing, &program, &store, duration, out);
    if kills.failure.is_some() {
        // The store is evidence: it leaves the workspace, which the next headroom empties.
        let place = free_name(target.path());
        kills.store = Some(match std::fs::rename(&store, &place) {
            Ok(()) => place,
            Err(error) => {
                out.warn(format_args!("cannot move the store to {}: {error}", place.display()));
                store
            }
        });
    }
    if kills.store.as_ref().is_some_and(|store| store.starts_with(workspace.path())) {
        // The workspace stays, with the evidence in it.
        std::mem::forget(workspace);
    } else {
        terminal::workspace::remove(workspace, out)?;
    }
    if interrupt::requested() {
        out.warn("ended early: what held until then is printed");
    }
    out.answer(|_| kills.text(), || kills.json());
    Ok(if kills.failure.is_some() { problem_found() } else { FINE })
}

/// Starts and kills processes until the time is over, the first failure, or Ctrl-C.
fn kill_repeatedly(
    mut killing: KillTest,
    program: &Path,
    store: &Path,
    duration: Duration,
    out: &mut Output,
) -> Kills {
    let began = Instant::now();
    let mut failure = None;
    while began.elapsed() < duration && !interrupt::requested() && failure.is_none() {
        let killed = killing.totals;
        out.progress(
            format_args!("{} kills, {} commits held", killed.kills, killed.commits),
            Some(duration.saturating_sub(began.elapsed())),
        );
        let child = |role: ChildRole, recovery: usize| {
            let mut command = Command::new(program);
            command.args(["lab", "crash", "--real"]).arg(store);
            command.args(["--child", role.name(), &recovery.to_string()]);
            // Ctrl-C on a terminal must not reach it: a child that ends by itself is a failure of the store.
            command.process_group(0);
            servers::ends_with_thread(&mut command, libc::SIGKILL);
            command
        };
        failure = killing.round(child).err();
    }
    Kills { killed: killing.totals, seconds: began.elapsed().as_secs_f64(), failure, store: None }
}

impl Kills {
    fn text(&self) -> String {
        let Kills { killed, seconds, .. } = self;
        let held = format!(
            "{} processes killed, {} of them during recovery, {seconds:.1} s\n{} commits that were acknowledged \
             are there; {} delayed ones are not, within their bound\n",
            killed.kills, killed.in_recovery, killed.commits, killed.delayed_lost
        );
        match self.failure.as_ref().zip(self.store.as_ref()) {
            Some((what, store)) => {
                format!("{held}\nfailed: {what}\nthe store is left in {}\n", store.display())
            }
            None => held,
        }
    }

    fn json(&self) -> Value {
        json!({
            "kills": self.killed.kills,
            "in_recovery": self.killed.in_recovery,
            "commits": self.killed.commits,
            "delayed_lost": self.killed.delayed_lost,
            "seconds": self.seconds,
            "failure": self.failure,
            "store": self.store,
        })
    }
}
