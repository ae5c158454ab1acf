//! The live view of `headroom watch`.
//!
//! ```text
//! View::add(intervals) ─> state: files, devices, waits, past latencies ─> View::draw(frame)
//! View::press(key)     ─> sort, filter, pause, scroll, help, quit
//! ```
//!
//! `view` has the state and the layout, `files` the table of files, `panels` the devices above it and the waits below.
//!
//! It opens no terminal, reads no clock and no source: the tests draw into a buffer.

mod files;
mod latency_history;
mod panels;
mod view;

pub use view::{Answer, Key, View};
