//! The agent's state, kept for the live page, and the page's JSON API (docs/reference/page.md).
//!
//! ```text
//! the thread of a source ── each second ─────> Live::sampled()   a ring of 15 minutes for each database and volume
//!                        ── each judgement ──> Live::judged()    the last verdict; files, waits and users where asked for
//! the agent ── began, failed, gone ──────────> Live
//!
//! Api::question("series", "volume=...")          a checked request, its cost bounded, or why it is refused
//! Api::answer(question, wanted)                   Live + the history ─> JSON, until it is wanted no more
//! Api::shared_state(), Api::moments()            what a stream of events sends
//! ```
//!
//! Files, waits and users are reduced only while someone looks at them ([`Live::is_looked_at`]), and nothing else than the ring
//! is computed for a page that no one has open. Older data than the ring's come from the history: a row a minute, read by the
//! thread that answers and never by one that judges.
//!
//! It asks no source and writes nothing. An unknown figure is `null`, never 0.

mod about;
mod answer;
mod api;
mod capabilities;
mod curve;
mod details;
mod devices;
mod from_history;
mod incident_list;
mod instant;
mod live;
mod moments;
mod query;
mod question;
mod series;
mod state;
mod verdicts;

pub use about::About;
pub use answer::Answer;
pub use api::{Api, DETAILS_WITHIN, Wanted};
pub use details::Details;
pub use instant::Instant;
pub use live::{Database, Judged, Live};
pub use moments::Moments;
pub use question::Question;

/// The schema of the answer of `/api/v1/state`.
#[cfg(feature = "schema")]
pub fn state_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    generator.subschema_for::<state::StateNow>()
}
