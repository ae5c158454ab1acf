//! Finds the commit that `headroom --version` prints: `HEADROOM_SOURCE_COMMIT`, else the one that git has checked out.

use std::process::Command;

/// Digits of a commit's number.
const DIGITS: &str = "--short=12";

fn main() {
    println!("cargo::rerun-if-env-changed=HEADROOM_SOURCE_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let given = std::env::var("HEADROOM_SOURCE_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(checked_out).unwrap_or_else(|| "unknown".into());
    println!("cargo::rustc-env=HEADROOM_COMMIT={commit}");
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=HEADROOM_TARGET={target}");
    let profile = std::env::var("PROFILE").unwrap_or_default();
    println!("cargo::rustc-env=HEADROOM_PROFILE={profile}");
}

/// `None` outside of git, and in a repository of which this source is no part.
fn checked_out() -> Option<String> {
    // Both change where another commit is checked out; the latter where a commit is made on a branch.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let file = git(&["rev-parse", "--git-path", name])?;
        if std::path::Path::new(&file).exists() {
            println!("cargo::rerun-if-changed={file}");
        }
    }
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    git(&["rev-parse", DIGITS, "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
