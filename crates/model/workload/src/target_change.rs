use crate::format_bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A change that another program made to a target while a load ran on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetChange {
    /// The file or device, as it was opened.
    pub path: String,
    /// Kind of change.
    pub change: TargetChangeKind,
}

/// Kinds of [`TargetChange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TargetChangeKind {
    /// Nothing has its name any more: it was removed, renamed or unmounted.
    Removed,
    /// Another file or device has its name.
    Replaced,
    /// The device is gone, or goes as soon as no process has it open.
    Detached,
    /// It became shorter.
    Cut {
        /// Bytes before.
        was_bytes: u64,
        /// Bytes now.
        is_bytes: u64,
    },
    /// Blocks of it were freed: reads of them come from no storage.
    Emptied {
        /// Allocated bytes before.
        was_bytes: u64,
        /// Allocated bytes now.
        is_bytes: u64,
    },
}

impl TargetChange {
    /// Whether I/Os may have reached no storage. Otherwise they went on to the blocks of what was opened.
    pub fn invalidates(&self) -> bool {
        matches!(self.change, TargetChangeKind::Cut { .. } | TargetChangeKind::Emptied { .. })
    }
}

impl fmt::Display for TargetChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        let was_opened = "the figures are of what was opened, which no longer has that name";
        match self.change {
            TargetChangeKind::Removed => {
                write!(f, "{path} was removed, renamed or unmounted while the load ran: {was_opened}")
            }
            TargetChangeKind::Replaced => {
                write!(f, "{path} was replaced by another file or device while the load ran: {was_opened}")
            }
            TargetChangeKind::Detached => {
                write!(f, "{path} was detached while the load ran: the figures are of a device that is gone")
            }
            TargetChangeKind::Cut { was_bytes, is_bytes } => {
                let (was, is) = (format_bytes(was_bytes), format_bytes(is_bytes));
                write!(f, "{path} was cut from {was} to {is} by another program while the load ran")
            }
            TargetChangeKind::Emptied { was_bytes, is_bytes } => {
                let (was, is) = (format_bytes(was_bytes), format_bytes(is_bytes));
                write!(
                    f,
                    "{path} had {was} of blocks and now has {is}: another program freed them while the load ran, and \
                     reads of them come from no storage"
                )
            }
        }
    }
}
