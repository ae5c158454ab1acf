//! The chosen processes that each source observes. A chosen process (a *root*) brings its descendants; the kernel's table
//! names the root of each (bpf/who.h). A root that descends from another one belongs to both.

use std::collections::{BTreeMap, BTreeSet};

/// The chosen processes of all sources.
#[derive(Debug, Default)]
pub(super) struct Roots {
    /// The nearest root that each root descends from.
    outer: BTreeMap<u32, Option<u32>>,
}

impl Roots {
    pub fn contains(&self, root: u32) -> bool {
        self.outer.contains_key(&root)
    }

    /// Adds a root that descends from `outer`. `descendants` are its own, among which may be other roots.
    pub fn add(&mut self, root: u32, outer: Option<u32>, descendants: &BTreeSet<u32>) {
        for (other, of_other) in &mut self.outer {
            if *other != root && descendants.contains(other) && *of_other == outer {
                *of_other = Some(root);
            }
        }
        self.outer.insert(root, outer.filter(|outer| *outer != root));
    }

    /// Removes a root. Returns the one that its processes belong to from now on.
    pub fn remove(&mut self, root: u32) -> Option<u32> {
        let outer = self.outer.remove(&root).flatten();
        for of_other in self.outer.values_mut().filter(|of_other| **of_other == Some(root)) {
            *of_other = outer;
        }
        outer
    }

    /// All roots that a process with this root belongs to.
    pub fn lineage(&self, root: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(self.contains(root).then_some(root), |root| *self.outer.get(root)?)
    }

    /// Whether a process with this root belongs to one of `wanted`.
    pub fn belongs(&self, root: u32, wanted: &BTreeSet<u32>) -> bool {
        self.lineage(root).any(|root| wanted.contains(&root))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_belongs_to_all_roots_that_it_descends_from_in_whatever_order_they_were_chosen() {
        let tree = |pids: &[u32]| pids.iter().copied().collect::<BTreeSet<u32>>();
        let wanted = |pid: u32| BTreeSet::from([pid]);
        // 1 -> 2 -> 3
        let mut outwards = Roots::default();
        outwards.add(3, None, &tree(&[3]));
        outwards.add(2, None, &tree(&[2, 3]));
        outwards.add(1, None, &tree(&[1, 2, 3]));
        let mut inwards = Roots::default();
        inwards.add(1, None, &tree(&[1, 2, 3]));
        inwards.add(2, Some(1), &tree(&[2, 3]));
        inwards.add(3, Some(2), &tree(&[3]));
        for mut roots in [outwards, inwards] {
            assert!([1, 2, 3].iter().all(|pid| roots.belongs(3, &wanted(*pid))));
            assert!(!roots.belongs(1, &wanted(2)) && !roots.belongs(9, &wanted(9)));
            assert_eq!(roots.remove(2), Some(1));
            assert!(roots.belongs(3, &wanted(1)) && !roots.belongs(3, &wanted(2)));
            assert_eq!((roots.remove(1), roots.remove(3)), (None, None));
        }
    }

    #[test]
    fn the_root_between_two_others_is_found() {
        let mut roots = Roots::default();
        roots.add(1, None, &BTreeSet::from([1, 2, 3]));
        roots.add(3, Some(1), &BTreeSet::from([3]));
        roots.add(2, Some(1), &BTreeSet::from([2, 3]));
        assert_eq!(roots.lineage(3).collect::<Vec<_>>(), [3, 2, 1]);
    }
}
