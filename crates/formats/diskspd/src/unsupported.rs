//! Settings of diskspd without a counterpart on Linux or in Headroom: reported by name, never ignored silently.

use crate::profile::{CacheMode, FlushMode, Profile};
use crate::usage::UsageError;

/// Event tracing: `-e...`, `<ETW>`.
pub(crate) fn event_tracing(flag: &str) -> UsageError {
    UsageError::new(flag, "event tracing is Windows' own", "run perf or bpftrace beside the load")
}

/// Named events: `-ys...`.
pub(crate) fn named_event(flag: &str) -> UsageError {
    let instead = match flag.as_bytes().get(2) {
        Some(b'p' | b'e') => "end a run with Ctrl-C, or kill -INT and its process id",
        _ => "start runs from one script, and wait for each other there",
    };
    UsageError::new(flag, "named events are Windows' own", instead)
}

/// The unsupported settings of a profile, each once.
pub fn list(profile: &Profile) -> Vec<UsageError> {
    let mut found: Vec<UsageError> = Vec::new();
    let mut add = |yes: bool, flag: &str, why: &str, instead: &str| {
        if yes && !found.iter().any(|one| one.what == flag) {
            found.push(UsageError::new(flag, why, instead));
        }
    };
    for span in &profile.time_spans {
        let completion = "completion routines are Windows' own; rings serve completions in the thread itself";
        add(span.completion_routines, "-x", completion, "leave it out");
        for cpu in span.affinity.iter().filter(|cpu| cpu.group > 0) {
            let flag = format!("-ag{},{}", cpu.group, cpu.processor);
            add(true, &flag, "Linux has no processor groups", "number CPUs through, as in -a0,64");
        }
        for target in &span.targets {
            let remote = "the cache of a file server cannot be distinguished from the local one";
            add(target.cache == CacheMode::RemoteOnly, "-Sr", remote, "use -Su, or -Sb for both caches");
            let memory = "cache lines of persistent memory are not flushed one by one";
            add(target.flush == Some(FlushMode::NonVolatileMemory), "-Nn", memory, "use -Nv, which is msync");
            let drain = target.flush == Some(FlushMode::NonVolatileMemoryNoDrain);
            add(drain, "-Ni", memory, "use -Nv, which is msync");
            let temporary = "no such hint exists";
            add(target.hint_temporary, "-ft", temporary, "name a file on tmpfs to keep it in memory");
            let threads = "threads of a pool that serve some targets only are not implemented";
            add(!target.thread_targets.is_empty(), "<ThreadTargets>", threads, "use -F without, or -t");
        }
    }
    found
}

/// Removes from a profile what [`list`] lists, so that it describes what runs. `-Sr` becomes `-Sb`, `-Nn` and
/// `-Ni` become `-Nv`, CPUs of other groups are left out.
pub fn remove(profile: &mut Profile) {
    for span in &mut profile.time_spans {
        span.completion_routines = false;
        span.affinity.retain(|cpu| cpu.group == 0);
        for target in &mut span.targets {
            if target.cache == CacheMode::RemoteOnly {
                target.cache = CacheMode::Cached;
            }
            target.flush = target.flush.map(|_| FlushMode::ViewOfFile);
            target.hint_temporary = false;
            target.thread_targets.clear();
        }
    }
}
