//! Results of experiments for people and programs, made of the parts that Headroom's own reports are made of. Pure.
//!
//! ```text
//! CommitStudy ──── text, json, html, charts     rows committed in batches
//! RecoverStudy ─── text, json, html, charts     crashed engines opened again
//! Footprint ────── text, json                   the data that a query moves
//! ```

pub mod charts;
pub mod html;
pub mod json;
pub mod text;
