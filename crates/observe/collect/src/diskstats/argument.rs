//! `devices:[NAME,...]`.

use super::Devices;
use crate::error::SourceError;
use crate::file_names::FileNames;
use crate::redaction::quote_unless_secret;
use crate::source::{ArgumentError, Discovery, Source, SourceArgument, SourceKind};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Block devices of this host.
pub static KIND: SourceKind = SourceKind {
    schemes: &["devices"],
    help: "devices:[NAME,...]",
    forms: "devices:NAME,...",
    discovery: Discovery::Never,
    parse,
};

/// Kernel names; without any, all devices that did I/O.
struct DevicesArgument {
    names: Vec<String>,
}

/// "", "vda", "sdb,/dev/sdc".
fn parse(text: &str) -> Result<Arc<dyn SourceArgument>, ArgumentError> {
    let names = text.split(',').filter(|name| !name.is_empty());
    let kernel_name = |name: &str| {
        let below_dev = name.strip_prefix("/dev/").unwrap_or(name);
        let invalid = || {
            ArgumentError::Invalid(format!(
                "{} is no kernel name of a device; give devices: or devices:vda,dm-0 as lsblk -o KNAME has them",
                quote_unless_secret(name)
            ))
        };
        if below_dev.contains('/') { Err(invalid()) } else { Ok(below_dev.to_owned()) }
    };
    Ok(Arc::new(DevicesArgument { names: names.map(kernel_name).collect::<Result<_, _>>()? }))
}

impl SourceArgument for DevicesArgument {
    fn open(&self, _: &[PathBuf], _: &FileNames) -> Result<Box<dyn Source + Send>, SourceError> {
        Ok(Box::new(Devices::open(&self.names)?))
    }

    fn counts_only_devices(&self) -> bool {
        true
    }
}

impl fmt::Display for DevicesArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "devices:{}", self.names.join(","))
    }
}
