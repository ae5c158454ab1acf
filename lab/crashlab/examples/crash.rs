//! Runs the crash laboratory over many seeds: `cargo run --release -p crashlab --example crash -- [FIRST [SEEDS
//! [--brief]]]`. Prints what was verified; a failing seed is minimised (unless `--brief`) and printed, and the exit
//! status is 1.

use crashlab::{Lab, Outcome};
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, otherwise: u64| {
        arguments
            .get(index)
            .map_or(otherwise, |text| text.parse().expect("usage: crash [FIRST [SEEDS [--brief]]]"))
    };
    let (first, seeds) = (number(0, 0), number(1, 100));
    let minimise = !arguments.iter().any(|text| text == "--brief");
    let begun = Instant::now();
    let mut all = Outcome::default();
    for seed in first..first + seeds {
        match (Lab { seed, minimise, ..Lab::default() }).run() {
            Ok(done) => all.add(&done),
            Err(failure) => {
                println!("{failure}");
                std::process::exit(1);
            }
        }
    }
    println!("seeds {first} to {}: {all:?} in {:.1} s", first + seeds - 1, begun.elapsed().as_secs_f64());
}
