//! Names of containers, from the files of their runtimes.
//!
//! ```text
//! docker       /var/lib/docker/containers/ID/config.v2.json              Name: "/shop-db"
//! podman       /var/lib/containers/storage/overlay-containers/containers.json   names of each id
//! containerd   /run/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json   annotations of CRI
//! cri-o        /run/containers/storage/overlay-containers/ID/userdata/config.json    annotations of Kubernetes
//! ```
//! They belong to root, who alone may read most of them. The containers of other users' podman are not named.

use crate::membership::{Container, is_id};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A larger file is not read.
const BYTES_MAX: u64 = 4 << 20;

/// Fills in the name where the runtime's files below `root` ("/") have it.
pub(crate) fn name(container: &Container, root: &Path) -> Option<String> {
    if !is_id(&container.id) {
        return Some(container.id.clone());
    }
    let read = |path: String| read_json(&root.join(path));
    let id = &container.id;
    match container.runtime {
        "docker" => {
            let config = read(format!("var/lib/docker/containers/{id}/config.v2.json"))?;
            Some(config["Name"].as_str()?.trim_start_matches('/').to_owned())
        }
        "podman" => {
            let all = read("var/lib/containers/storage/overlay-containers/containers.json".into())?;
            let one = all.as_array()?.iter().find(|one| one["id"] == id.as_str())?;
            one["names"][0].as_str().map(str::to_owned)
        }
        "containerd" => {
            let config =
                read(format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{id}/config.json"))?;
            pod_name(
                &config["annotations"],
                [
                    "io.kubernetes.cri.sandbox-namespace",
                    "io.kubernetes.cri.sandbox-name",
                    "io.kubernetes.cri.container-name",
                ],
            )
        }
        "cri-o" => {
            let config =
                read(format!("run/containers/storage/overlay-containers/{id}/userdata/config.json"))?;
            pod_name(
                &config["annotations"],
                ["io.kubernetes.pod.namespace", "io.kubernetes.pod.name", "io.kubernetes.container.name"],
            )
        }
        _ => None,
    }
    .filter(|name| !name.is_empty())
}

/// "NAMESPACE/POD/CONTAINER", of those that are there.
fn pod_name(annotations: &Value, keys: [&str; 3]) -> Option<String> {
    let parts: Vec<&str> = keys.iter().filter_map(|key| annotations[*key].as_str()).collect();
    (!parts.is_empty()).then(|| parts.join("/"))
}

fn read_json(path: &PathBuf) -> Option<Value> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const ID: &str = "4f1c9bd2a7e84f1c9bd2a7e84f1c9bd2a7e84f1c9bd2a7e84f1c9bd2a7e84f1c";

    /// The files as docker 20, podman 4 and containerd 1.6 write them, shortened.
    #[test]
    fn each_runtimes_files_name_its_containers() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path.replace("ID", ID));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.replace("ID", ID)).unwrap();
        };
        let container = |runtime| Container { runtime, id: ID.into(), name: None };
        assert_eq!(name(&container("docker"), root.path()), None);
        write(
            "var/lib/docker/containers/ID/config.v2.json",
            r#"{"ID":"ID","Name":"/shop-db","State":{"Pid":7}}"#,
        );
        write(
            "var/lib/containers/storage/overlay-containers/containers.json",
            r#"[{"id":"0","names":["other"]},{"id":"ID","names":["pg"],"image":"x"}]"#,
        );
        write(
            "run/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json",
            r#"{"annotations":{"io.kubernetes.cri.sandbox-namespace":"prod","io.kubernetes.cri.sandbox-name":"pg-0",
                "io.kubernetes.cri.container-name":"postgres"}}"#,
        );
        write("run/containers/storage/overlay-containers/ID/userdata/config.json", "not json");
        assert_eq!(name(&container("docker"), root.path()).as_deref(), Some("shop-db"));
        assert_eq!(name(&container("podman"), root.path()).as_deref(), Some("pg"));
        assert_eq!(name(&container("containerd"), root.path()).as_deref(), Some("prod/pg-0/postgres"));
        assert_eq!(name(&container("cri-o"), root.path()), None);
        let machine = Container { runtime: "machine", id: "web".into(), name: None };
        assert_eq!(name(&machine, root.path()).as_deref(), Some("web"));
    }
}
