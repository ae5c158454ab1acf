//! Objects in the files of PostgreSQL servers, for sources that see only files.
//!
//! ```text
//! Postgres::publishing_names(names) ──> FileNames ──> Process::using_names(names): FileIdentity::object
//!                                       cluster.rs        the names of one server's relations, looked up when needed
//!                                       relation_file.rs  which relation a file belongs to, by its path
//! ```

mod cluster;
mod relation_file;

pub(crate) use cluster::Cluster;
pub(crate) use relation_file::{FileLookup, LookupResult};

use cluster::Object;
use filestats::Sample;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Names that the sources of one machine share. A clone shares them too.
#[derive(Clone, Default)]
pub struct FileNames(Arc<Mutex<Vec<Arc<Cluster>>>>);

impl FileNames {
    /// The object that a file holds, if one of the servers knows it now.
    pub fn object(&self, path: &Path) -> Option<String> {
        self.objects(&[path]).pop().flatten()
    }

    /// Adds a server. A server and database that are known already replace the connection and keep the names.
    pub(crate) fn add(&self, cluster: Cluster) {
        let mut clusters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match clusters.iter().find(|known| known.is_same(&cluster)) {
            Some(known) => known.reconnect(cluster),
            None => clusters.push(Arc::new(cluster)),
        }
    }

    /// Writes into each sample the object that its file holds.
    pub(crate) fn fill_in(&self, samples: &mut [Sample]) {
        let paths: Vec<&Path> = samples.iter().map(|sample| Path::new(&sample.file.path)).collect();
        let objects = self.objects(&paths);
        for (sample, object) in samples.iter_mut().zip(objects) {
            if sample.file.object != object {
                sample.file_mut().object = object;
            }
        }
    }

    /// A file may belong to several servers of the list: one cluster, connected to two databases.
    fn objects(&self, paths: &[&Path]) -> Vec<Option<String>> {
        let clusters = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut objects: Vec<Option<Object>> = vec![None; paths.len()];
        for cluster in clusters {
            cluster.look_up(paths, Instant::now());
            for (object, path) in objects.iter_mut().zip(paths) {
                if object.as_ref().is_none_or(|object| !object.is_named) {
                    let candidate = cluster.object(path);
                    *object = candidate.filter(|new| new.is_named || object.is_none()).or(object.take());
                }
            }
        }
        objects.into_iter().map(|object| object.map(|object| object.name)).collect()
    }
}
