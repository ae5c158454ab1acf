//! Simulated against measured: the table of `scripts/bench simulate`. Needs root.
//!
//! ```text
//! storages   real ones of LUNs, alone, spanned and striped, each with its model: what the LUN was made with, and the
//!            way to it, measured on other LUNs; one more model is fitted to another storage's curve
//! cases      workloads, each on a real storage and in virtual time: the same phases, the same seeds
//! measuring  two rounds over all of them; what two rounds do not agree about is measured again
//! table      measured, simulated, how far off, and whether that is within the limit
//! ```
//!
//! Exit code 1 if anything is outside its limit.

mod cases;
mod measuring;
mod storages;
mod table;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // LUNs with a latency are served by a process of this very program.
    if let [lab, luns, serve, root, id] = &arguments[..]
        && [lab, luns, serve] == ["lab", "luns", "serve"]
    {
        let served = luns::serve(Path::new(root), id.parse().expect("a number"));
        return if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(3) };
    }
    let seconds: f64 = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(2.0);
    let real = match storages::Real::set_up() {
        Ok(real) => real,
        Err(error) => {
            eprintln!("cannot make the disks: {error}");
            return ExitCode::from(3);
        }
    };
    let cases = cases::all(&real, Duration::from_secs_f64(seconds));
    let sweeps = cases::sweeps(&real);
    let rows = measuring::rows(&real, &cases);
    let knees = measuring::knees(&real, &sweeps);
    if table::print(&rows, &knees) { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
