//! kill -9 on a real file system, for as long as is asked.

use crate::failure::Failure;
use crate::output::Output;
use crate::{Done, FINE, bad_news, interrupt};
use pagestore::kill::{self, Killing, Part};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

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

pub fn run(directory: &Path, lasting: Duration, out: &mut Output) -> Done {
    let cannot = |error: &dyn std::fmt::Display| {
        Failure::new(format_args!("cannot keep a store in {}: {error}", directory.display())).with_remedy(
            "an existing directory that can be written and has room, on the file system in question",
        )
    };
    let place = directory.join(format!("headroom-crash-{}", std::process::id()));
    std::fs::create_dir(&place).map_err(|error| cannot(&error))?;
    let store = place.join("store");
    let program = std::env::current_exe().map_err(|error| cannot(&error))?;
    let seed = u64::from(std::process::id());
    let mut killing = Killing::create(&store, seed).map_err(|error| {
        // Nothing was told to be there yet: of a full disk nothing is left behind.
        let _ = std::fs::remove_dir_all(&place);
        cannot(&error)
    })?;
    let begun = Instant::now();
    let mut failed = None;
    while begun.elapsed() < lasting && !interrupt::asked() && failed.is_none() {
        let killed = killing.killed;
        out.progress(
            format_args!("{} kills, {} commits held", killed.kills, killed.commits),
            Some(lasting.saturating_sub(begun.elapsed())),
        );
        let again = |part: Part, way: usize| {
            let mut command = Command::new(&program);
            command.args(["lab", "crash", "--real"]).arg(&store);
            command.args(["--child", part.name(), &way.to_string()]);
            command
        };
        failed = killing.round(again).err();
    }
    let (killed, seconds) = (killing.killed, begun.elapsed().as_secs_f64());
    if failed.is_none() {
        std::fs::remove_dir_all(&place).map_err(|error| cannot(&error))?;
    }
    out.answer(
        |_| {
            let held = format!(
                "{} processes killed, {} of them during recovery, {seconds:.1} s\n{} commits that were acknowledged \
                 are there; {} delayed ones are not, within their bound\n",
                killed.kills, killed.in_recovery, killed.commits, killed.delayed_lost
            );
            match &failed {
                Some(what) => format!("{held}\nfailed: {what}\nthe store is left in {}\n", store.display()),
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
            })
        },
    );
    Ok(if failed.is_some() { bad_news() } else { FINE })
}
