use crate::error::SourceFault;

/// Why a block device cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The text is no device number.
    #[error("'{0}' is not a device number; give MAJOR:MINOR as lsblk prints it, such as 254:0")]
    NotADeviceNumber(String),
    /// The kernel keeps no statistics of the device.
    #[error("cannot watch device {number}: /proc/diskstats has no line for it")]
    NoSuchDevice {
        /// Its number or name.
        number: String,
    },
}

impl SourceFault for DeviceError {
    fn remedy(&self) -> Option<&'static str> {
        match self {
            DeviceError::NoSuchDevice { .. } => Some("lsblk -o NAME,MAJ:MIN for the devices there are"),
            DeviceError::NotADeviceNumber(_) => None,
        }
    }
}
