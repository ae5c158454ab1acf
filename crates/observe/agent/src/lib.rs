//! Judges each database on each of its volumes all the time, and keeps the judgements in the history.
//!
//! ```text
//! sources() every 30 s ─> a thread each: watcher.rs   Observer::sample() every second, judge_volumes() every few
//!                              │  judgement.rs        the verdict on the newest part and on the whole window
//!                              v  a bounded queue
//!                         agent.rs  Tracker::judged() ─> incidents ─┐
//!                                   changes, a row a minute        ─┴─> keeper.rs ─> History::save_judged()
//!                                   AgentState                     ───> /metrics
//!                              page::Live, by the threads: each moment, each judgement ───> the live page
//! ```
//!
//! Main path: [`Agent::run`] until its flag is set. The verdicts are those of `headroom check`: the same observer, the same
//! [`everyday::judge_volumes`]. A source that hangs or fails has a gap: no verdict, no incident, and no health.
//!
//! Privileges (`host::privileges`): BPF programs are loaded again whenever a database is found, so that they cannot be given up after
//! the start. Instead all other capabilities are, before the first thread begins; those for BPF are in effect in a thread
//! only while it loads programs or reads their tables; and the threads that read what other machines send (the HTTP server,
//! notifications, pushes) give up all, but for the files of TLS. A bug there acts without them.
//!
//! It puts no load on storage, and records no counters: that is what `headroom agent --record-only` is for.

mod agent;
mod capabilities;
mod devices;
mod event;
mod judgement;
mod keeper;
mod own_process;
mod watcher;

pub use agent::{Agent, Settings};
pub use event::Event;
pub use keeper::Keeper;

use collect::SourceArgument;
use std::sync::Arc;

/// A database to watch.
#[derive(Clone)]
pub struct WatchedSource {
    /// Name of the database in verdicts and incidents, without credentials. It stays equal whenever the database is found.
    pub identity: String,
    /// How to read it.
    pub argument: Arc<SourceArgument>,
}
