//! The slots of the log file: which virtual log file each holds, and which may be reused.

use pagestore_counters::Certificate;

/// Slots that transactions leave to checkpoints.
pub(crate) const SPARE_SLOTS: usize = 1;

/// The state of a slot, which is filled with zeros before its first use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The virtual log file of its last use; 0: none.
    pub vlf: u32,
    /// The parity of its last use; 0: none.
    pub parity: u32,
    /// Recovery may need it, or it is being written; otherwise it may be reused.
    pub is_active: bool,
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
        self.slots.extend(std::iter::repeat_n(Slot::default(), slots));
    }

    /// The number of slots up to the last one that is active.
    pub(crate) fn used_end(&self) -> usize {
        self.slots.iter().rposition(|slot| slot.is_active).map_or(0, |last| last + 1)
    }

    /// Removes the slots from this one on; none of them may be active.
    pub(crate) fn truncate(&mut self, slots: usize) {
        assert!(self.used_end() <= slots, "what recovery may need stays");
        self.slots.truncate(slots);
    }

    /// The number of slots that could be taken now.
    pub(crate) fn available(&self) -> usize {
        self.available_below(self.slots.len())
    }

    /// As `available`, among the first `slots` slots.
    pub(crate) fn available_below(&self, slots: usize) -> usize {
        self.slots.iter().take(slots).filter(|slot| !slot.is_active).count()
    }

    /// Takes a slot for virtual log file `vlf`; returns the slot and its parity.
    pub(crate) fn take(&mut self, vlf: u32) -> Option<(usize, u32)> {
        let free = self.slots.iter_mut().enumerate().filter(|(_, slot)| !slot.is_active);
        // Prefer the slot that was used longest ago, then unused slots.
        let (index, slot) = free.min_by_key(|(_, slot)| if slot.vlf == 0 { u32::MAX } else { slot.vlf })?;
        let parity = if slot.parity == PARITIES[0] { PARITIES[1] } else { PARITIES[0] };
        *slot = Slot { vlf, parity, is_active: true };
        Some((index, parity))
    }

    /// The slot of an active virtual log file.
    pub(crate) fn slot_of(&self, vlf: u32) -> Option<usize> {
        self.slots.iter().position(|slot| slot.is_active && slot.vlf == vlf)
    }

    /// Frees the slots that the certificate covers; returns how many.
    pub(crate) fn free(&mut self, certificate: Certificate) -> usize {
        let mut freed = 0;
        let active = self.slots.iter_mut().filter(|slot| slot.is_active);
        for slot in active.filter(|slot| slot.vlf < certificate.redo.vlf()) {
            slot.is_active = false;
            freed += 1;
        }
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Lsn;

    #[test]
    fn slots_are_removed_from_the_end_and_only_those_that_are_not_active() {
        let mut table = VlfTable::new(vec![Slot::default(); 4]);
        assert!((1..=3).all(|vlf| table.take(vlf).is_some()));
        assert_eq!(table.used_end(), 3);
        table.free(Certificate { redo: Lsn::new(2, 8, 1), pages: 1, generation: 1 });
        assert_eq!(table.used_end(), 3, "slots that can be reused before an active one stay");
        table.truncate(3);
        assert_eq!(table.slots().len(), 3);
        assert_eq!(table.take(4), Some((0, 128)));
    }

    #[test]
    fn a_slot_is_reusable_only_when_redo_begins_in_a_later_virtual_log_file() {
        let mut table = VlfTable::new(vec![Slot::default(); 3]);
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
