//! `devices:[NAME,...]`.

use super::Devices;
use crate::redaction::quote_unless_secret;
use crate::source::{ArgumentError, Discovery, SourceArgument, SourceKind};

/// Block devices of this host.
pub static KIND: SourceKind = SourceKind {
    schemes: &["devices"],
    help: "devices:[NAME,...]",
    forms: "devices:NAME,...",
    discovery: Discovery::Never,
    parse,
    find: |_| Vec::new(),
};

/// Kernel names: "vda", "sdb,/dev/sdc"; without any, all devices that did I/O.
fn parse(text: &str) -> Result<SourceArgument, ArgumentError> {
    let kernel_name = |name: &str| match name.strip_prefix("/dev/").unwrap_or(name) {
        below_dev if below_dev.contains('/') => Err(ArgumentError::Invalid(format!(
            "{} is not a kernel name of a device; give devices: or devices:vda,dm-0 as lsblk -o KNAME has them",
            quote_unless_secret(name)
        ))),
        below_dev => Ok(below_dev.to_owned()),
    };
    let names = text.split(',').filter(|name| !name.is_empty()).map(kernel_name);
    let names: Vec<String> = names.collect::<Result<_, _>>()?;
    let shown = format!("devices:{}", names.join(","));
    Ok(SourceArgument {
        counts_only_devices: true,
        ..SourceArgument::new(shown, move |_, _| Devices::open(&names))
    })
}
