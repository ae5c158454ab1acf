use filestats::FileInterval;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// The files of a moment. A clone shares them until one of both changes: a window of moments is judged every few seconds, and
/// each judgement has its own list of moments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharedFiles(Arc<Vec<FileInterval>>);

impl Deref for SharedFiles {
    type Target = Vec<FileInterval>;

    fn deref(&self) -> &Vec<FileInterval> {
        &self.0
    }
}

impl DerefMut for SharedFiles {
    fn deref_mut(&mut self) -> &mut Vec<FileInterval> {
        Arc::make_mut(&mut self.0)
    }
}

impl From<Vec<FileInterval>> for SharedFiles {
    fn from(files: Vec<FileInterval>) -> SharedFiles {
        SharedFiles(Arc::new(files))
    }
}

impl From<SharedFiles> for Vec<FileInterval> {
    fn from(files: SharedFiles) -> Vec<FileInterval> {
        Arc::unwrap_or_clone(files.0)
    }
}

impl<'a> IntoIterator for &'a SharedFiles {
    type Item = &'a FileInterval;
    type IntoIter = std::slice::Iter<'a, FileInterval>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a mut SharedFiles {
    type Item = &'a mut FileInterval;
    type IntoIter = std::slice::IterMut<'a, FileInterval>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl Serialize for SharedFiles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SharedFiles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(SharedFiles::from)
    }
}
