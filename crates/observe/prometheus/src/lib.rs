//! A client of Prometheus' HTTP API: Prometheus, VictoriaMetrics, Mimir, Thanos.
//!
//! ```text
//! Client::new(endpoint)
//! ask(client, queries, at)     at most QUERIES_MAX, all at once, all at one time
//!   POST PREFIX/api/v1/query        query=...&time=...
//!   POST PREFIX/api/v1/query_range  query=...&start=...&end=...&step=...
//!   └─> Response: series, warnings, is_partial            answer.rs reads it, without I/O
//! ```
//!
//! The URL's path is a prefix that stays. An answer is bounded ([`ANSWER_BYTES_MAX`]) and must come in time. The
//! server's warnings about an incomplete answer are kept: Prometheus' `warnings`, `isPartial` of a VictoriaMetrics
//! cluster. Whatever it says instead of an answer is one of [`Error`]'s cases.

mod answer;
mod client;
mod error;

pub use answer::{Response, Series};
pub use client::{ANSWER_BYTES_MAX, Client, QUERIES_MAX, Query, ask};
pub use error::{Error, QueryError};
