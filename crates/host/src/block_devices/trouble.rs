use super::{BlockDevices, mapper_table, read, read_number};
use crate::DeviceNumber;
use std::path::Path;
use workload::{DeviceFacts, DeviceKind, DeviceTrouble};

/// States that the devices of a chain report and that make their I/Os slow or fail: md arrays in sysfs, thin pools to root.
pub fn device_troubles(chain: &[DeviceFacts]) -> Vec<DeviceTrouble> {
    BlockDevices::host().troubles(chain)
}

impl BlockDevices {
    pub(super) fn troubles(&self, chain: &[DeviceFacts]) -> Vec<DeviceTrouble> {
        let mut troubles = Vec::new();
        for device in chain {
            let Some(number) = DeviceNumber::parse(&device.number) else { continue };
            match device.kind {
                DeviceKind::Md => {
                    let directory = self.directory(number).unwrap_or_default();
                    troubles.extend(of_array(&directory.join("md"), &device.name));
                }
                DeviceKind::Dm => {
                    let states = self.mapper.and_then(|control| mapper_table::read_state(control, number));
                    let blocks = states.iter().flatten().find_map(mapper_table::blocks_of_full_pool);
                    troubles.extend(
                        blocks.map(|blocks| DeviceTrouble::PoolFull { device: device.name.clone(), blocks }),
                    );
                }
                _ => {}
            }
        }
        troubles
    }
}

fn of_array(md: &Path, device: &str) -> Vec<DeviceTrouble> {
    let mut troubles = Vec::new();
    let idle = ["idle", "frozen"];
    if let Some(action) = read(&md.join("sync_action")).filter(|action| !idle.contains(&action.as_str())) {
        // "1024 / 4096" sectors, or "none".
        let completed = read(&md.join("sync_completed")).unwrap_or_default();
        let parts = completed.split_once(" / ");
        let done = parts.and_then(|(done, all)| Some(done.parse::<f64>().ok()? / all.parse::<f64>().ok()?));
        let done = done.filter(|done| (0.0..=1.0).contains(done));
        troubles.push(DeviceTrouble::Rebuilding { device: device.into(), action, done });
    }
    if let Some(missing) = read_number(&md.join("degraded")).filter(|missing| *missing > 0) {
        troubles.push(DeviceTrouble::MembersMissing { device: device.into(), missing });
    }
    troubles
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_array_says_what_it_does_and_lacks() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        let found = || of_array(directory.path(), "md0").iter().map(ToString::to_string).collect::<Vec<_>>();
        write("sync_action", "idle\n");
        write("degraded", "0\n");
        assert_eq!(found(), [""; 0]);
        write("sync_action", "recover\n");
        write("sync_completed", "1024 / 4096\n");
        write("degraded", "1\n");
        assert_eq!(
            found(),
            ["md0 rebuilds or checks its members (recover, 25 % done)", "md0 lacks a member"]
        );
        write("sync_completed", "none\n");
        write("degraded", "2\n");
        assert_eq!(found(), ["md0 rebuilds or checks its members (recover)", "md0 lacks 2 members"]);
    }
}
