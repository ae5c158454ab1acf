use std::fmt;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Major and minor number of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceNumber {
    /// The driver.
    pub major: u32,
    /// The device of that driver.
    pub minor: u32,
}

impl DeviceNumber {
    /// From `st_dev` or `st_rdev`.
    pub fn from_dev(dev: u64) -> DeviceNumber {
        DeviceNumber { major: libc::major(dev), minor: libc::minor(dev) }
    }

    /// Parses "254:0"; `None` for any other spelling.
    pub fn parse(text: &str) -> Option<DeviceNumber> {
        let (major, minor) = text.split_once(':')?;
        let number = DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? };
        (number.to_string() == text).then_some(number)
    }

    /// The number of the block device at `path`; `None` if there is none.
    pub fn for_block_device(path: &Path) -> Option<DeviceNumber> {
        let metadata = fs::metadata(path).ok()?;
        metadata.file_type().is_block_device().then(|| DeviceNumber::from_dev(metadata.rdev()))
    }

    /// From the kernel's own `dev_t`.
    pub fn from_kernel_form(dev: u32) -> DeviceNumber {
        DeviceNumber { major: dev >> 20, minor: dev & ((1 << 20) - 1) }
    }

    /// The kernel's own `dev_t`, with 20 bits of minor; `None` where the number does not fit.
    pub fn kernel_form(self) -> Option<u32> {
        (self.major < 1 << 12 && self.minor < 1 << 20).then_some(self.major << 20 | self.minor)
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_kernels_own_spelling_is_a_number() {
        assert_eq!(DeviceNumber::parse("254:0"), Some(DeviceNumber { major: 254, minor: 0 }));
        for text in ["", "sda", "254", "254:", "254:0:0", "-1:0", "+1:0", "01:0", " 1:0", "1:4294967296"] {
            assert_eq!(DeviceNumber::parse(text), None, "{text}");
        }
        assert_eq!(DeviceNumber { major: 8, minor: 17 }.kernel_form(), Some(0x0080_0011));
        assert_eq!(DeviceNumber { major: 4096, minor: 0 }.kernel_form(), None);
    }
}
