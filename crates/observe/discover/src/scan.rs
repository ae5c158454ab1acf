//! The result of a scan.

use crate::membership::Container;
use collect::discovery::{Engine, Role, RoleFile};
use host::DeviceNumber;
use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};

/// The users of storage found at one instant.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scan {
    /// When, in nanoseconds since 1970.
    pub taken_unix_ns: u64,
    /// The databases and programs, by engine and pid.
    pub databases: Vec<Database>,
    /// Things that could not be seen or were left out, and why.
    pub notes: Vec<String>,
}

/// Distinguishes a database from a later one of its pid, and the databases of one process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// The first process.
    pub pid: u32,
    /// When that started, in clock ticks since boot.
    pub start_ticks: u64,
    /// The file or directory of a database whose engine publishes counters.
    pub part: Option<String>,
}

/// A database, or a program with much I/O.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "DiscoveredDatabase"))]
pub struct Database {
    /// The engine; [`Engine::Program`] is here because of its I/O.
    #[serde(serialize_with = "engine_name")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub engine: Engine,
    /// Its first process.
    pub pid: u32,
    /// When that started, in clock ticks since boot.
    pub start_ticks: u64,
    /// The user that it runs as.
    pub user: u32,
    /// The cluster, the database's file, the container, the unit or the program, whichever is known first.
    pub name: String,
    /// The file name of its program.
    pub program: String,
    /// The systemd unit of its process.
    pub unit: Option<String>,
    /// The container of its process.
    pub container: Option<Container>,
    /// The version, where that is cheaply known.
    pub version: Option<String>,
    /// The best source that works, as `--source` takes it; `None` where none does. One that worked is kept while it does not answer.
    pub source: Option<String>,
    /// The better sources that did not work.
    pub refused: Vec<Refusal>,
    /// Figures that the source does not report, each with the line that grants it.
    pub lacks: Vec<String>,
    /// Where its files lie.
    pub volumes: Vec<Volume>,
    /// Its part of a device's I/O since the last scan, where it did any.
    pub share: Option<DeviceShare>,
    /// Facts that cannot be determined, and why.
    pub notes: Vec<String>,
    #[serde(skip)]
    pub(crate) part: Option<String>,
}

/// A source that does not work, as `doctor` reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refusal {
    /// As `--source` takes it.
    pub source: String,
    /// Why not.
    pub error: String,
    /// Details.
    pub facts: Vec<String>,
    /// The remedy, if there is one.
    pub remedy: Option<String>,
    /// Whether it stays until a user changes the cause.
    #[serde(skip)]
    pub(crate) is_final: bool,
}

impl Refusal {
    /// One without a remedy, which may pass.
    pub(crate) fn new(source: &str, error: String) -> Refusal {
        Refusal { source: source.to_owned(), error, facts: Vec::new(), remedy: None, is_final: false }
    }
}

/// A volume that holds files of a database.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "DiscoveredVolume"))]
pub struct Volume {
    /// The mount point on this host, or where `is_visible` is false, as the process sees it.
    pub mount: String,
    /// The name of its block device; `None` for a file system without one.
    pub device: Option<String>,
    /// "ext4".
    pub filesystem: String,
    /// Uses of the files on it.
    #[serde(serialize_with = "role_names")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub roles: Vec<Role>,
    /// A directory or file of the database on it, as this host names it.
    pub path: Option<String>,
    /// Whether a mount of this host shows it.
    pub is_visible: bool,
    /// Its capability, as the history knows it.
    pub capability: Option<KnownCapability>,
    #[serde(skip)]
    pub(crate) number: Option<DeviceNumber>,
}

/// A measurement of a volume in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KnownCapability {
    /// Its number in the history.
    pub id: i64,
    /// When it was measured, in nanoseconds since 1970.
    pub measured_unix_ns: u64,
    /// Seconds since then.
    pub age_s: u64,
}

/// A program's part of a device's I/O.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceShare {
    /// The name of the device.
    pub device: String,
    /// Its part of the bytes read and written, 0 to 1.
    pub share: f64,
    /// Bytes that it read and wrote a second, on all devices.
    pub bytes_per_s: f64,
}

impl Database {
    /// Identity that distinguishes it from every other database.
    pub fn identity(&self) -> Identity {
        Identity { pid: self.pid, start_ticks: self.start_ticks, part: self.part.clone() }
    }
}

/// Groups files by volume, in the order in which they were found.
pub(crate) fn volumes_of(files: &[RoleFile]) -> Vec<Volume> {
    let mut volumes: Vec<Volume> = Vec::new();
    for file in files {
        let (place, mount) = (&file.place, file.place.mount.to_string_lossy());
        let is_same = |volume: &&mut Volume| {
            volume.mount == mount
                && volume.number == place.device
                && volume.is_visible == place.path.is_some()
        };
        match volumes.iter_mut().find(is_same) {
            Some(known) if known.roles.contains(&file.role) => {}
            Some(known) => known.roles.push(file.role),
            None => volumes.push(Volume {
                mount: mount.into_owned(),
                device: place.device.and_then(host::device_name),
                filesystem: place.filesystem.clone(),
                roles: vec![file.role],
                path: place.path.as_deref().map(shown),
                is_visible: place.path.is_some(),
                capability: None,
                number: place.device,
            }),
        }
    }
    volumes.iter_mut().for_each(|volume| volume.roles.sort_unstable());
    volumes
}

/// The volume that a directory of this host lies on, with a role.
pub(crate) fn file_on_host(directory: &Path, role: Role) -> Option<RoleFile> {
    let directory: PathBuf = directory.into();
    let place = host::ProcessFiles::of_process(std::process::id()).place_of(&directory)?;
    place.is_stored().then_some(RoleFile { role, place })
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn engine_name<S: Serializer>(engine: &Engine, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(engine.name())
}

fn role_names<S: Serializer>(roles: &[Role], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(roles.iter().map(|role| role.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::FilePlace;

    #[test]
    fn files_of_one_volume_are_one_volume_with_all_their_roles() {
        let file = |role, mount: &str, visible: bool| RoleFile {
            role,
            place: FilePlace {
                path: visible.then(|| Path::new(mount).join("pg")),
                mount: mount.into(),
                filesystem: "xfs".into(),
                device: None,
            },
        };
        let files = [
            file(Role::Temp, "/data", true),
            file(Role::Data, "/data", true),
            file(Role::Log, "/wal", true),
            file(Role::Data, "/data", true),
            file(Role::Tablespace, "/hidden", false),
        ];
        let volumes = volumes_of(&files);
        let names: Vec<_> =
            volumes.iter().map(|volume| (volume.mount.as_str(), volume.roles.clone())).collect();
        assert_eq!(
            names,
            [
                ("/data", vec![Role::Data, Role::Temp]),
                ("/wal", vec![Role::Log]),
                ("/hidden", vec![Role::Tablespace])
            ]
        );
        assert_eq!((volumes[2].is_visible, volumes[2].path.as_deref()), (false, None));
        assert_eq!(volumes[1].path.as_deref(), Some("/wal/pg"));
    }
}
