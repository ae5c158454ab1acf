//! What servers call what is in their files, for a source that sees files only.
//!
//! ```text
//! Postgres::telling(names) ──> FileNames ──> Process::asking(names): FileIdentity::object
//! ```

use crate::postgres::Cluster;
use filestats::Sample;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Names that are shared by sources of one machine. Clones are one.
#[derive(Clone, Default)]
pub struct FileNames(Arc<Mutex<Vec<Arc<Cluster>>>>);

impl FileNames {
    /// What is in a file, as far as any of the servers knows now.
    pub fn object(&self, path: &Path) -> Option<String> {
        self.objects(&[path]).pop().flatten()
    }

    /// A server that may be asked; again, it takes the place of the earlier connection and keeps its names.
    pub(crate) fn add(&self, cluster: Cluster) {
        let mut clusters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match clusters.iter().find(|known| known.is_same(&cluster)) {
            Some(known) => known.take_over(&cluster),
            None => clusters.push(Arc::new(cluster)),
        }
    }

    /// Writes into each sample what is in its file.
    pub(crate) fn name(&self, samples: &mut [Sample]) {
        let paths: Vec<&Path> = samples.iter().map(|sample| Path::new(&sample.file.path)).collect();
        let objects = self.objects(&paths);
        for (sample, object) in samples.iter_mut().zip(objects) {
            sample.file.object = object;
        }
    }

    /// Several servers may know of a file: its cluster, connected to one database and to another.
    fn objects(&self, paths: &[&Path]) -> Vec<Option<String>> {
        let clusters = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut objects: Vec<Option<crate::postgres::Object>> = vec![None; paths.len()];
        for cluster in clusters {
            let now = Instant::now();
            cluster.ask(paths, now);
            for (object, path) in objects.iter_mut().zip(paths) {
                if object.as_ref().is_none_or(|object| !object.is_named) {
                    let this = cluster.object(path);
                    *object = this.filter(|this| this.is_named || object.is_none()).or(object.take());
                }
            }
        }
        objects.into_iter().map(|object| object.map(|object| object.name)).collect()
    }
}

impl std::fmt::Debug for FileNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileNames").finish_non_exhaustive()
    }
}
