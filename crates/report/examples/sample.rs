//! Writes the sample pages: `cargo run -p report --example sample -- DIRECTORY`.

#[path = "../tests/sample/mod.rs"]
mod sample;

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));
    let pages = [
        ("check.html", report::html::check(&sample::demand_exceeds())),
        ("capability.html", report::html::capability(&sample::capability())),
        ("check-healthy.html", report::html::check(&sample::healthy())),
        ("check-degraded.html", report::html::check(&sample::degraded())),
        ("check-serialized.html", report::html::check(&sample::serialized())),
        ("check-burst.html", report::html::check(&sample::burst())),
        ("check-restarted.html", report::html::check(&sample::restarted())),
    ];
    for (name, html) in pages {
        std::fs::write(directory.join(name), html)?;
    }
    Ok(())
}
