//! The slots of the log file: which virtual log file each holds, and which may be reused.

use pagestore_counters::Certificate;

/// Slots that transactions leave to checkpoints.
pub(crate) const SPARE_SLOTS: usize = 1;

/// The state of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Filled with zeros and never used.
    Unused,
    /// Recovery may need it, or it is being written.
    Active { vlf: u32, parity: u32 },
    /// It may be reused.
    Reusable { vlf: u32, parity: u32, certificate: Option<Certificate> },
}

/// All slots.
#[derive(Clone, Debug, Default)]
pub(crate) struct VlfTable {
    slots: Vec<Slot>,
}

/// Parity values, flipped at every use of a slot.
const PARITIES: [u32; 2] = [64, 128];

impl VlfTable {
    pub(crate) fn new(slots: Vec<Slot>) -> Self {
        Self { slots }
    }

    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Adds slots at the end of the log file, filled with zeros.
    pub(crate) fn grow(&mut self, slots: usize) {
        self.slots.extend(std::iter::repeat_n(Slot::Unused, slots));
    }

    /// The number of slots that could be taken now.
    pub(crate) fn available(&self) -> usize {
        self.slots.iter().filter(|slot| !matches!(slot, Slot::Active { .. })).count()
    }

    /// Takes a slot for virtual log file `vlf`; returns the slot and its parity.
    pub(crate) fn take(&mut self, vlf: u32) -> Option<(usize, u32)> {
        let index = self
            .slots
            .iter()
            .enumerate()
            .filter_map(|(index, slot)| match slot {
                Slot::Active { .. } => None,
                // Prefer the slot that was used longest ago, then unused slots.
                Slot::Reusable { vlf, .. } => Some((*vlf, index)),
                Slot::Unused => Some((u32::MAX, index)),
            })
            .min()?
            .1;
        let parity = match self.slots[index] {
            Slot::Reusable { parity, .. } | Slot::Active { parity, .. } if parity == PARITIES[0] => {
                PARITIES[1]
            }
            _ => PARITIES[0],
        };
        self.slots[index] = Slot::Active { vlf, parity };
        Some((index, parity))
    }

    /// The slot of an active virtual log file.
    pub(crate) fn slot_of(&self, vlf: u32) -> Option<usize> {
        self.slots.iter().position(|slot| matches!(slot, Slot::Active { vlf: active, .. } if *active == vlf))
    }

    /// The parity of a slot's last use; 0 if it was never used.
    pub(crate) fn parity(&self, slot: usize) -> u32 {
        match self.slots[slot] {
            Slot::Unused => 0,
            Slot::Active { parity, .. } | Slot::Reusable { parity, .. } => parity,
        }
    }

    /// Frees the slots that the certificate covers; returns how many.
    pub(crate) fn free(&mut self, certificate: Certificate) -> usize {
        let mut freed = 0;
        for slot in &mut self.slots {
            if let Slot::Active { vlf, parity } = *slot
                && vlf < certificate.redo.vlf()
            {
                *slot = Slot::Reusable { vlf, parity, certificate: Some(certificate) };
                freed += 1;
            }
        }
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Lsn;

    #[test]
    fn a_slot_is_reusable_only_when_redo_begins_in_a_later_virtual_log_file() {
        let mut table = VlfTable::new(vec![Slot::Unused; 3]);
        assert_eq!(table.take(1), Some((0, 64)));
        assert_eq!(table.take(2), Some((1, 64)));
        let certificate = |redo| Certificate { redo, pages: 1, generation: 1 };
        assert_eq!(table.free(certificate(Lsn::new(1, 99, 1))), 0);
        assert_eq!(table.free(certificate(Lsn::new(2, 8, 1))), 1);
        assert_eq!(table.take(3), Some((0, 128)), "the freed one first, its parity flipped");
        assert_eq!((table.slot_of(1), table.slot_of(2)), (None, Some(1)));
        assert_eq!(table.take(4), Some((2, 64)));
        assert_eq!(table.take(5), None);
    }
}
