use filestats::{Delta, FileInterval, FileKind, Interval, Reason};
use serde::{Deserialize, Serialize};
use workload::Cap;

/// One short interval, all files of the database and the device below them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// When it ends, nanoseconds since 1970.
    pub ended_unix_ns: u64,
    /// What the sources say of the database's files.
    pub files: Vec<FileInterval>,
    /// What the kernel says of the device, everybody's I/O.
    pub device: Option<FileInterval>,
}

/// What was seen of a database and its storage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// In order of time.
    pub moments: Vec<Moment>,
    /// Throttles in force on the device while it was observed.
    pub caps: Vec<Cap>,
    /// Whether the database reads through the operating system's page cache, so that a fast read need not
    /// have reached the storage.
    pub page_cache: bool,
    /// Bytes of the database's data files at the end, where known.
    pub data_bytes: Option<u64>,
}

impl Moment {
    /// All files with a known interval, summed. `None` where none has one.
    pub fn database(&self) -> Option<Delta> {
        let known = self.files.iter().filter(|file| file.file.kind != FileKind::Device);
        known.filter_map(|file| file.interval.known()).cloned().reduce(|sum, file| sum.beside(&file))
    }

    /// The device's interval, where known.
    pub fn device(&self) -> Option<&Delta> {
        self.device.as_ref().and_then(|device| device.interval.known())
    }
}

impl Observation {
    /// One row for each file over all its known moments; a file without any has the last reason.
    pub fn files(&self) -> Vec<FileInterval> {
        let mut rows: Vec<FileInterval> = Vec::new();
        for file in self.moments.iter().flat_map(|moment| &moment.files) {
            match rows.iter_mut().find(|row| row.file.key() == file.file.key()) {
                None => rows.push(file.clone()),
                Some(row) => {
                    row.ended_unix_ns = file.ended_unix_ns;
                    row.interval = match (&row.interval, &file.interval) {
                        (Interval::Known(sum), Interval::Known(next)) => {
                            Interval::Known(sum.clone().followed_by(next))
                        }
                        (Interval::Known(sum), Interval::Unknown(_)) => Interval::Known(sum.clone()),
                        (Interval::Unknown(_), next) => next.clone(),
                    };
                }
            }
        }
        rows
    }

    /// Reasons for intervals that are unknown, other than a file that came or went.
    pub fn gaps(&self) -> impl Iterator<Item = Reason> + '_ {
        self.moments.iter().flat_map(|moment| &moment.files).filter_map(|file| match file.interval {
            Interval::Unknown(Reason::FirstSight | Reason::Gone) | Interval::Known(_) => None,
            Interval::Unknown(reason) => Some(reason),
        })
    }

    /// When the last moment ended, nanoseconds since 1970; 0 without moments.
    pub fn ended_unix_ns(&self) -> u64 {
        self.moments.last().map_or(0, |moment| moment.ended_unix_ns)
    }
}
