//! Judges kept observations again: `cargo run --release -p verdict --example judge FILE...`, each written by
//! `headroom check --keep-observation FILE`. Prints one line of JSON for each: file, verdict, headroom, low, high, reason.

use capability::Capability;
use serde::Deserialize;
use std::error::Error;
use verdict::Observation;

#[derive(Deserialize)]
struct Kept {
    observation: Observation,
    capability: Option<Capability>,
}

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args().skip(1) {
        let kept: Kept = serde_json::from_slice(&std::fs::read(&path)?)?;
        let level = filestats::ServiceLevel::OLTP;
        let verdict = verdict::judge(&kept.observation, kept.capability.as_ref(), &level);
        let line = serde_json::json!({
            "file": path,
            "verdict": verdict.verdict,
            "headroom": verdict.headroom,
            "low": verdict.headroom_low,
            "high": verdict.headroom_high,
            "reason": verdict.headroom_reason,
        });
        println!("{line}");
    }
    Ok(())
}
