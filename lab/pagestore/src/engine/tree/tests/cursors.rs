//! Cursors, bounds, removal by condition and the number of entries, against an ordered map.

use super::{all, key, store};
use crate::engine::tree::node::{NodeFormat, NodeKind, NodeMut};
use crate::{Durability, Error, Pages, Store, Table, Tables, WriteTx};
use crashlab::Chance;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Makes the nodes of a new store those of version 1.
fn make_version_1(store: &Store) {
    let mut tx = store.write().unwrap();
    let catalog = tx.catalog().unwrap();
    let owner = crate::format::page::owner(&tx.page(catalog).unwrap());
    NodeMut::format(tx.any_page_mut(catalog).unwrap(), NodeKind::Leaf, NodeFormat::Plain, owner);
    tx.commit(Durability::Full).unwrap();
}

fn owned((key, value): (&[u8], &[u8])) -> (Vec<u8>, Vec<u8>) {
    (key.to_vec(), value.to_vec())
}

fn from_map(entry: Option<(&Vec<u8>, &Vec<u8>)>) -> Option<(Vec<u8>, Vec<u8>)> {
    entry.map(|(key, value)| (key.clone(), value.clone()))
}

/// A bound at one of the keys, or between two.
fn draw_bound(chance: &mut Chance) -> Bound<Vec<u8>> {
    let mut at = key(chance.below(300) as u16);
    if chance.once_in(3) {
        at.push(b'0');
    }
    match chance.below(3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(at),
        _ => Bound::Excluded(at),
    }
}

fn draw_value(chance: &mut Chance) -> Vec<u8> {
    let bytes = if chance.once_in(4) { chance.below(900) } else { chance.below(40) };
    vec![chance.draw() as u8; bytes as usize]
}

/// Whether the bounds enclose nothing, whatever the keys; `BTreeMap::range` panics then.
fn is_inverted(from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> bool {
    let (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) =
        (from, to)
    else {
        return false;
    };
    low > high || low == high && !matches!((from, to), (Bound::Included(_), Bound::Included(_)))
}

fn check_ranges(reader: &impl Tables, table: Table, model: &Model, chance: &mut Chance) {
    assert_eq!(reader.len(table).unwrap(), model.len() as u64);
    assert_eq!(reader.is_empty(table).unwrap(), model.is_empty());
    assert_eq!(reader.first(table).unwrap(), from_map(model.first_key_value()));
    assert_eq!(reader.last(table).unwrap(), from_map(model.last_key_value()));
    let (from, to) = (draw_bound(chance), draw_bound(chance));
    let bounds = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
    let inside: Vec<_> = if is_inverted(&from, &to) {
        Vec::new()
    } else {
        model.range((from.clone(), to.clone())).map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let mut range = reader.range_within(table, bounds).unwrap();
    // From both ends, in a random order.
    let (mut front, mut back) = (Vec::new(), Vec::new());
    loop {
        let is_front = chance.once_in(2);
        let next = if is_front { range.next() } else { range.next_back() };
        let Some(next) = next else { break };
        if is_front { front.push(next.unwrap()) } else { back.push(next.unwrap()) }
    }
    assert!(range.next().is_none() && range.next_back().is_none());
    front.extend(back.into_iter().rev());
    assert_eq!(front, inside, "{from:?} to {to:?}");
}

/// A walk with deletions and changes. The cursor is on the key `on`, or between the keys below `on` and the others.
fn walk(tx: &mut WriteTx<'_>, table: Table, model: &mut Model, chance: &mut Chance) {
    let start = draw_bound(chance);
    let mut cursor = tx.cursor_mut(table).unwrap();
    let mut on = if chance.once_in(2) {
        let found = cursor.seek(start.as_ref().map(Vec::as_slice)).unwrap().map(owned);
        assert_eq!(found, from_map(model.range((start, Bound::Unbounded)).next()));
        found.map(|(key, _)| key)
    } else {
        let found = cursor.seek_back(start.as_ref().map(Vec::as_slice)).unwrap().map(owned);
        assert_eq!(found, from_map(model.range((Bound::Unbounded, start)).next_back()));
        found.map(|(key, _)| key)
    };
    for _ in 0..chance.below(60) {
        let Some(at) = on.clone() else { break };
        let is_forward = !chance.once_in(3);
        match chance.below(4) {
            0 => {
                assert!(cursor.delete().unwrap());
                model.remove(&at);
                assert!(!cursor.delete().unwrap() && cursor.entry().unwrap().is_none());
            }
            1 => {
                let value = draw_value(chance);
                assert!(cursor.put(&value).unwrap());
                assert_eq!(cursor.entry().unwrap().map(owned), Some((at.clone(), value.clone())));
                model.insert(at.clone(), value);
            }
            _ => {}
        }
        let (found, expected) = if is_forward {
            let expected = model.range((Bound::Excluded(at), Bound::Unbounded)).next();
            (cursor.next().unwrap().map(owned), from_map(expected))
        } else {
            let expected = model.range((Bound::Unbounded, Bound::Excluded(at))).next_back();
            (cursor.previous().unwrap().map(owned), from_map(expected))
        };
        assert_eq!(found, expected);
        on = found.map(|(key, _)| key);
    }
}

fn remove_some(tx: &mut WriteTx<'_>, table: Table, model: &mut Model, chance: &mut Chance) {
    let is_chosen = |key: &[u8], share: u64| key.iter().map(|byte| u64::from(*byte)).sum::<u64>() % 7 < share;
    let share = chance.below(8);
    match chance.below(5) {
        0 => {
            let removed = tx.retain(table, |key, _| !is_chosen(key, share)).unwrap();
            let before = model.len();
            model.retain(|key, _| !is_chosen(key, share));
            assert_eq!(removed, (before - model.len()) as u64);
        }
        1 => {
            let (from, to) = (draw_bound(chance), draw_bound(chance));
            let bounds = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
            let at_most = chance.below(200) as usize;
            let extracted = tx.extract_if(table, bounds, |key, _| is_chosen(key, share)).unwrap();
            let extracted: Vec<_> = extracted.take(at_most).map(Result::unwrap).collect();
            let expected: Vec<_> = if is_inverted(&from, &to) {
                Vec::new()
            } else {
                let inside = model.range((from, to)).filter(|(key, _)| is_chosen(key, share));
                inside.take(at_most).map(|(key, value)| (key.clone(), value.clone())).collect()
            };
            assert_eq!(extracted, expected);
            extracted.iter().for_each(|(key, _)| drop(model.remove(key)));
        }
        2 => (0..chance.below(40)).for_each(|_| assert_eq!(tx.pop_first(table).unwrap(), model.pop_first())),
        3 => (0..chance.below(40)).for_each(|_| assert_eq!(tx.pop_last(table).unwrap(), model.pop_last())),
        _ => walk(tx, table, model, chance),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn cursors_bounds_removals_and_the_number_of_entries_are_those_of_an_ordered_map(
        seed in any::<u64>(), small in any::<bool>(), is_old in any::<bool>(),
    ) {
        let store = store(if small { 1 << 16 } else { 1 << 24 });
        if is_old {
            make_version_1(&store);
        }
        let mut chance = Chance::new(seed);
        let table = store.transact(Durability::Full, |tx| tx.create_table("t")).unwrap();
        let (mut model, mut committed) = (Model::new(), Model::new());
        for _ in 0..12 {
            let mut tx = store.write().unwrap();
            for _ in 0..chance.below(300) {
                let (key, value) = (key(chance.below(300) as u16), draw_value(&mut chance));
                tx.put(table, &key, &value).unwrap();
                model.insert(key, value);
            }
            for _ in 0..chance.below(4) {
                remove_some(&mut tx, table, &mut model, &mut chance);
                check_ranges(&tx, table, &model, &mut chance);
            }
            if chance.once_in(4) {
                drop(tx);
                model = committed.clone();
            } else {
                tx.commit(Durability::Delayed).unwrap();
                committed = model.clone();
            }
            if chance.once_in(3) {
                store.checkpoint().unwrap();
            }
            let reader = store.read().unwrap();
            check_ranges(&reader, table, &committed, &mut chance);
            prop_assert_eq!(all(&reader, table), committed.clone().into_iter().collect::<Vec<_>>());
            for (key, value) in &committed {
                let found = reader.get_ref(table, key).unwrap();
                prop_assert_eq!(found.as_deref(), Some(&value[..]));
            }
        }
    }
}

#[test]
fn the_number_of_entries_is_that_of_each_transaction_and_costs_no_reading() {
    let store = store(1 << 24);
    let table = store.transact(Durability::Full, |tx| tx.open_or_create_table("t")).unwrap();
    assert_eq!(store.transact(Durability::Full, |tx| tx.open_or_create_table("t")).unwrap(), table);
    let put = |tx: &mut WriteTx<'_>, from: u32, to: u32| {
        (from..to).for_each(|key| tx.put(table, &key.to_be_bytes(), b"x").unwrap());
    };
    let mut tx = store.write().unwrap();
    put(&mut tx, 0, 5000);
    tx.commit(Durability::Full).unwrap();
    let before = store.read().unwrap();
    let mut tx = store.write().unwrap();
    put(&mut tx, 4000, 6000);
    assert!(tx.delete(table, &7_u32.to_be_bytes()).unwrap());
    assert!(!tx.delete(table, &7_u32.to_be_bytes()).unwrap());
    assert_eq!((tx.len(table).unwrap(), before.len(table).unwrap()), (5999, 5000));
    drop(tx);
    assert_eq!(store.read().unwrap().len(table).unwrap(), 5000, "it was rolled back");
    let mut tx = store.write().unwrap();
    tx.drop_table("t").unwrap();
    let table = tx.create_table("t").unwrap();
    assert_eq!(tx.len(table).unwrap(), 0);
    tx.put(table, b"a", b"b").unwrap();
    tx.commit(Durability::Full).unwrap();
    assert_eq!(store.read().unwrap().len(table).unwrap(), 1);
}

#[test]
fn a_store_of_version_1_takes_its_longer_entries_and_others_are_refused() {
    for (is_old, limit) in [(true, 1000), (false, 994)] {
        let store = store(1 << 24);
        if is_old {
            make_version_1(&store);
        }
        let mut tx = store.write().unwrap();
        let table = tx.create_table("t").unwrap();
        tx.put(table, b"k", &vec![1; limit - 1]).unwrap();
        let refused = tx.put(table, b"k", &vec![1; limit]);
        assert!(
            matches!(refused, Err(Error::TooLong { limit: stated, .. }) if stated == limit),
            "{refused:?}"
        );
        let mut cursor = tx.cursor_mut(table).unwrap();
        cursor.first().unwrap();
        assert!(matches!(cursor.put(&vec![1; limit]), Err(Error::TooLong { .. })));
        assert_eq!(
            cursor.entry().unwrap().map(|(_, value)| value.len()),
            Some(limit - 1),
            "it is where it was"
        );
    }
}

#[test]
fn a_store_of_version_1_is_compacted_too() {
    let store = store(1 << 24);
    make_version_1(&store);
    let mut tx = store.write().unwrap();
    let table = tx.create_table("t").unwrap();
    for number in 0..4000_u32 {
        tx.put(table, &number.wrapping_mul(0x9e37_79b1).to_be_bytes(), &[7; 150]).unwrap();
    }
    tx.retain(table, |key, _| key[3].is_multiple_of(4)).unwrap();
    tx.commit(Durability::Full).unwrap();
    let (before, pages) = (all(&store.read().unwrap(), table), store.read().unwrap().page_count().unwrap());
    while !store.compact(16).unwrap().is_done {}
    let reader = store.read().unwrap();
    assert_eq!(all(&reader, table), before);
    let left = reader.page_count().unwrap();
    assert!(left * 2 < pages, "{pages} pages became {left}");
}
