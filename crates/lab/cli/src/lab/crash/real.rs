//! kill -9 on a real file system, for as long as is asked.

use pagestore::kill::{self, Killing, Part};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use storage::Target;
use terminal::{Done, FINE, Failure, Output, bad_news, interrupt, kept, workspace};

/// What is killed: this program again.
pub fn child(store: &Path, words: &[String]) -> Done {
    let (Some(part), Ok(way)) = (Part::named(&words[0]), words[1].parse()) else {
        return Err(Failure::usage("--child is for headroom itself"));
    };
    kill::child(store, part, kill::recovery(way)).map_err(|error| {
        Failure::new(format_args!("cannot use the store in {}: {error}", store.display()))
    })?;
    Ok(FINE)
}

/// Where a store that was found wrong can be kept: an earlier one of a process of this number is evidence too.
fn free_name(directory: &Path) -> PathBuf {
    let own = format!("headroom-crash-{}", std::process::id());
    let names = std::iter::once(own.clone()).chain((2..).map(|number: u64| format!("{own}-{number}")));
    let mut places = names.map(|name| directory.join(name));
    places.find(|place| place.symlink_metadata().is_err()).expect("there are enough numbers")
}

pub fn run(directory: &Path, lasting: Duration, history: Option<&Path>, out: &mut Output) -> Done {
    let cannot = |error: &dyn std::fmt::Display| {
        Failure::new(format_args!("cannot keep a store in {}: {error}", directory.display())).with_remedy(
            "an existing directory that can be written and has room, on the file system in question",
        )
    };
    let target = Target::open(directory)?;
    let mut history = kept::open_to_write(history)?;
    interrupt::install();
    let workspace = workspace::open(target.path(), &mut history, out)?;
    let store = workspace.entry("lab-crash");
    let program = std::env::current_exe().map_err(|error| cannot(&error))?;
    let seed = u64::from(std::process::id());
    let mut killing = Killing::create(&store, seed).map_err(|error| cannot(&error))?;
    let begun = Instant::now();
    let mut failed = None;
    while begun.elapsed() < lasting && !interrupt::requested() && failed.is_none() {
        let killed = killing.killed;
        out.progress(
            format_args!("{} kills, {} commits held", killed.kills, killed.commits),
            Some(lasting.saturating_sub(begun.elapsed())),
        );
        let again = |part: Part, way: usize| {
            let mut command = Command::new(&program);
            command.args(["lab", "crash", "--real"]).arg(&store);
            command.args(["--child", part.name(), &way.to_string()]);
            // Ctrl-C on a terminal is for us alone: what ends by itself is a failure of the store.
            command.process_group(0);
            servers::ends_with_thread(&mut command, libc::SIGKILL);
            command
        };
        failed = killing.round(again).err();
    }
    let (killed, seconds) = (killing.killed, begun.elapsed().as_secs_f64());
    let mut kept = None;
    if failed.is_some() {
        // It is evidence: out of the way of the next headroom, which removes what it finds.
        let place = free_name(target.path());
        match std::fs::rename(&store, &place) {
            Ok(()) => kept = Some(place),
            Err(error) => {
                out.warn(format_args!("cannot move the store to {}: {error}", place.display()));
                kept = Some(store);
            }
        }
    }
    if kept.as_ref().is_some_and(|kept| kept.starts_with(workspace.path())) {
        // With the evidence in it.
        std::mem::forget(workspace);
    } else {
        workspace::remove(workspace, out)?;
    }
    if interrupt::requested() {
        out.warn("ended early: what held until then is printed");
    }
    out.answer(
        |_| {
            let held = format!(
                "{} processes killed, {} of them during recovery, {seconds:.1} s\n{} commits that were acknowledged \
                 are there; {} delayed ones are not, within their bound\n",
                killed.kills, killed.in_recovery, killed.commits, killed.delayed_lost
            );
            match failed.as_ref().zip(kept.as_ref()) {
                Some((what, kept)) => {
                    format!("{held}\nfailed: {what}\nthe store is left in {}\n", kept.display())
                }
                None => held,
            }
        },
        || {
            serde_json::json!({
                "kills": killed.kills,
                "in_recovery": killed.in_recovery,
                "commits": killed.commits,
                "delayed_lost": killed.delayed_lost,
                "seconds": seconds,
                "failure": failed,
                "store": kept,
            })
        },
    );
    Ok(if failed.is_some() { bad_news() } else { FINE })
}
