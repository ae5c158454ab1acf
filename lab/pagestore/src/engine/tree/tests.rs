use super::node::{Node, NodeFormat, NodeKind, NodeMut};
use crate::{Durability, Layout, Options, PageNo, Pages, Store, Table, Tables};
use crashlab::Chance;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

mod cursors;
mod extract;
mod merge;
mod nodes;

fn store(cache_bytes: usize) -> Store {
    let layout = Layout { vlf_bytes: 1 << 20, vlfs: 8, ..Layout::default() };
    let options = Options { background: false, cache_bytes, ..Options::default() };
    Store::create_on(Arc::new(crashlab::SimDisk::new()), layout, options, 7).unwrap()
}

fn all(reader: &impl Tables, table: Table) -> Vec<(Vec<u8>, Vec<u8>)> {
    reader.range(table, &[], None).unwrap().map(Result::unwrap).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Put(u16, usize),
    Delete(u16),
    /// Neighbouring keys, in ascending or descending order.
    Run(u16, u16, bool),
    Commit,
    Rollback,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..300_u16, 0..984_usize).prop_map(|(key, bytes)| Step::Put(key, bytes)),
        3 => (0..300_u16).prop_map(|key| Step::Put(key, 0)),
        3 => (0..300_u16).prop_map(Step::Delete),
        2 => (0..300_u16, 0..40_u16, any::<bool>()).prop_map(|(from, count, up)| Step::Run(from, count, up)),
        1 => Just(Step::Commit),
        1 => Just(Step::Rollback),
    ];
    proptest::collection::vec(step, 1..400)
}

fn key(number: u16) -> Vec<u8> {
    // Keys of different lengths, whose order differs from that of the numbers.
    format!("{:x}", u32::from(number) * 7919).into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_table_is_an_ordered_map_whatever_is_done_to_it(steps in steps(), small in any::<bool>()) {
        // With the small cache transactions set pages aside.
        let store = store(if small { 1 << 16 } else { 1 << 24 });
        let mut tx = store.write().unwrap();
        let table = tx.create_table("t").unwrap();
        tx.commit(Durability::Full).unwrap();
        let (mut model, mut committed) = (BTreeMap::new(), BTreeMap::new());
        let mut tx = store.write().unwrap();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Put(row, bytes) => {
                    let value = vec![number as u8; bytes];
                    tx.put(table, &key(row), &value).unwrap();
                    model.insert(key(row), value);
                }
                Step::Run(from, count, up) => {
                    for step in 0..count {
                        let row = if up { from + step } else { from + count - step };
                        let key = format!("{row:04}").into_bytes();
                        let value = vec![number as u8; 100];
                        tx.put(table, &key, &value).unwrap();
                        model.insert(key, value);
                    }
                }
                Step::Delete(row) => {
                    let there = model.remove(&key(row)).is_some();
                    prop_assert_eq!(tx.delete(table, &key(row)).unwrap(), there);
                }
                Step::Commit => {
                    tx.commit(Durability::Delayed).unwrap();
                    committed = model.clone();
                    tx = store.write().unwrap();
                }
                Step::Rollback => {
                    tx.rollback().unwrap();
                    model = committed.clone();
                    tx = store.write().unwrap();
                }
            }
        }
        let expected: Vec<_> = model.clone().into_iter().collect();
        prop_assert_eq!(all(&tx, table), expected);
        for (key, value) in &model {
            prop_assert_eq!(tx.get(table, key).unwrap(), Some(value.clone()));
        }
        drop(tx);
        let expected: Vec<_> = committed.into_iter().collect();
        prop_assert_eq!(all(&store.read().unwrap(), table), expected);
    }
}

/// Lengths of entries: runs of empty, short, maximum and arbitrary ones.
fn draw_length(chance: &mut Chance, like: &mut u64, longest: usize) -> usize {
    if chance.once_in(1 << chance.clone().below(9)) {
        *like = chance.below(4);
    }
    match *like {
        0 => 0,
        1 => chance.below(12) as usize,
        2 => longest,
        _ => chance.below(longest as u64 + 1) as usize,
    }
}

/// The expected content of a node: keys and values of a leaf, or keys and the children below them of an inner node.
#[derive(Default)]
struct Entries {
    is_leaf: bool,
    all: Vec<(Vec<u8>, Vec<u8>)>,
    /// The child above all keys.
    last: [u8; 8],
}

impl Entries {
    /// An inner node's child at `index` was split: `entry` has its lower half.
    fn insert(&mut self, index: usize, entry: (Vec<u8>, Vec<u8>), upper: PageNo) {
        self.all.insert(index, entry);
        if !self.is_leaf {
            let upper = upper.0.to_le_bytes();
            match self.all.get_mut(index + 1) {
                Some(next) => next.1 = upper.to_vec(),
                None => self.last = upper,
            }
        }
    }

    fn read(&mut self, page: &[u8]) {
        let node = Node::open(page, PageNo(1)).unwrap();
        assert!(node.count() > 0);
        for index in 0..node.count() {
            let child = || node.child(index).unwrap().0.to_le_bytes().to_vec();
            let value = if self.is_leaf { node.entry(index).unwrap().1.to_vec() } else { child() };
            self.all.push((node.key(index).unwrap().to_vec(), value));
        }
        if !self.is_leaf {
            self.last = node.child(node.count()).unwrap().0.to_le_bytes();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn a_full_node_is_divided_in_two_that_fit_whatever_the_lengths_of_its_entries(
        seed in any::<u64>(), kib in 2..5_u32, is_leaf in any::<bool>(), has_heads in any::<bool>(),
    ) {
        let format = if has_heads { NodeFormat::Heads } else { NodeFormat::Plain };
        let (page, page_bytes) = (PageNo(1), 1_usize << (10 + kib));
        let (longest, mut chance, mut like) = (format.entry_bytes_max(page_bytes), Chance::new(seed), 0);
        let mut bytes = vec![0; page_bytes];
        NodeMut::format(&mut bytes, if is_leaf { NodeKind::Leaf } else { NodeKind::Inner }, format, 16);
        let mut expected = Entries { is_leaf, ..Entries::default() };
        let halves = loop {
            let count = expected.all.len();
            let (index, length) = (
                chance.below(count as u64 + 1) as usize,
                draw_length(&mut chance, &mut like, longest),
            );
            let (lower, upper) = (PageNo(count as u64), PageNo(count as u64 + 2000));
            let key = vec![count as u8; if is_leaf { length.min(chance.below(9) as usize) } else { length }];
            let value = if is_leaf { vec![7; length - key.len()] } else { lower.0.to_le_bytes().to_vec() };
            let mut node = NodeMut::new(&mut bytes, page);
            let has_room = if is_leaf {
                node.insert_leaf(index, &key, &value).unwrap()
            } else {
                node.insert_inner(index, &key, lower, upper).unwrap()
            };
            expected.insert(index, (key.clone(), value.clone()), upper);
            if !has_room {
                let node = Node::open(&bytes, page).unwrap();
                break if is_leaf {
                    node.split_leaf(index, &key, &value).unwrap()
                } else {
                    node.split_inner(index, &key, lower, upper).unwrap()
                };
            }
        };
        // The halves together hold the previous entries and the new one.
        let mut found = Entries { is_leaf, ..Entries::default() };
        found.read(halves.left.as_ref().unwrap_or(&bytes));
        if is_leaf {
            let right = Node::open(&halves.right, page).unwrap();
            prop_assert_eq!(right.key(0).unwrap(), &halves.separator[..]);
        } else {
            found.all.push((halves.separator.clone(), found.last.to_vec()));
        }
        found.read(&halves.right);
        prop_assert_eq!((found.all, found.last), (expected.all, expected.last));
    }
}

#[test]
fn among_many_small_entries_and_two_large_ones_there_is_room_for_one_of_the_largest() {
    let store = store(1 << 24);
    let mut tx = store.write().unwrap();
    let table = tx.create_table("t").unwrap();
    for number in 0..288_u16 {
        tx.put(table, &number.to_be_bytes(), b"").unwrap();
    }
    for number in 60_000..60_002_u16 {
        tx.put(table, &number.to_be_bytes(), &[7; 861]).unwrap();
    }
    tx.put(table, &[0, 5, 1], &[9; 991]).unwrap();
    let entries = all(&tx, table);
    assert_eq!(entries.len(), 291);
    assert_eq!(entries[6], (vec![0, 5, 1], vec![9; 991]));
}

#[test]
fn a_range_begins_at_its_first_key_and_ends_before_its_last() {
    let store = store(1 << 24);
    let mut tx = store.write().unwrap();
    let table = tx.create_table("t").unwrap();
    for number in 0..5000_u32 {
        tx.put(table, &number.to_be_bytes(), b"x").unwrap();
    }
    let range = tx.range(table, &100_u32.to_be_bytes(), Some(&4000_u32.to_be_bytes())).unwrap();
    let keys: Vec<_> = range.map(|entry| u32::from_be_bytes(entry.unwrap().0.try_into().unwrap())).collect();
    assert_eq!(keys, (100..4000).collect::<Vec<_>>());
}

#[test]
fn pages_of_a_dropped_table_are_used_again() {
    let store = store(1 << 24);
    let mut pages = Vec::new();
    for round in 0..4 {
        let mut tx = store.write().unwrap();
        let table = tx.create_table("t").unwrap();
        for number in 0..2000_u32 {
            tx.put(table, &number.to_be_bytes(), &[round; 100]).unwrap();
        }
        assert_eq!(tx.tables().unwrap(), ["t"]);
        tx.drop_table("t").unwrap();
        pages.push(tx.page_count().unwrap());
        tx.commit(Durability::Full).unwrap();
    }
    assert_eq!(pages[0], pages[3]);
    assert!(store.read().unwrap().table("t").is_err());
}

#[test]
fn a_snapshot_reads_its_own_state_while_a_writer_commits() {
    let store = store(1 << 24);
    let mut tx = store.write().unwrap();
    let table = tx.create_table("t").unwrap();
    for number in 0..1000_u32 {
        tx.put(table, &number.to_be_bytes(), b"before").unwrap();
    }
    tx.commit(Durability::Full).unwrap();
    let snapshot = store.read().unwrap();
    for round in 0..5 {
        let mut tx = store.write().unwrap();
        for number in (round..1000_u32).step_by(3) {
            tx.put(table, &number.to_be_bytes(), b"after").unwrap();
            tx.delete(table, &(number + 1).to_be_bytes()).unwrap();
        }
        tx.commit(Durability::Full).unwrap();
        store.checkpoint().unwrap();
        assert!(all(&snapshot, table).iter().all(|(_, value)| value == b"before"));
        assert_eq!(all(&snapshot, table).len(), 1000);
    }
    assert!(all(&store.read().unwrap(), table).len() < 1000);
}
