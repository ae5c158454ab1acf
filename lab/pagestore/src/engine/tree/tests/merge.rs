//! Leaves that removals have left sparse.

use super::super::position::{Position, Target};
use super::{all, store};
use crate::{Durability, Error, Layout, Options, Store, Table, Tables, WriteTx};
use crashlab::{Chance, SimDisk};
use pagestore_disk::FileId;
use std::ops::Bound;
use std::sync::Arc;

/// Bytes in use of each leaf, in order.
fn leaves(tx: &WriteTx<'_>, table: Table) -> Vec<usize> {
    let mut at = Position::find(tx, table, Target::First).unwrap();
    let mut leaves = Vec::new();
    loop {
        leaves.push(at.node().unwrap().used());
        if !at.move_to_leaf(tx, Target::First).unwrap() {
            return leaves;
        }
    }
}

/// A table of 3,000 rows that were inserted in no order, and its keys in another one.
fn filled(tx: &mut WriteTx<'_>) -> (Table, Vec<[u8; 4]>) {
    let table = tx.create_table("t").unwrap();
    let (mut chance, mut keys) = (Chance::new(5), (0..3000_u32).map(u32::to_be_bytes).collect::<Vec<_>>());
    let mut shuffle = |keys: &mut Vec<[u8; 4]>| {
        (1..keys.len()).for_each(|at| keys.swap(at, chance.below(at as u64 + 1) as usize));
    };
    shuffle(&mut keys);
    for key in &keys {
        tx.put(table, key, &[7; 150]).unwrap();
    }
    shuffle(&mut keys);
    (table, keys)
}

fn is_odd(key: &[u8]) -> bool {
    !key[3].is_multiple_of(2)
}

fn assert_half_is_left_in_fewer_leaves(tx: &WriteTx<'_>, table: Table, before: usize) {
    let after = leaves(tx, table);
    assert!(after.len() * 10 < before * 7, "{} of {before} leaves, {after:?}", after.len());
    let left: Vec<_> = all(tx, table).into_iter().map(|(key, _)| key).collect();
    let expected: Vec<_> = (0..3000_u32).map(u32::to_be_bytes).filter(|key| !is_odd(key)).collect();
    assert_eq!(left, expected);
    assert_eq!(tx.len(table).unwrap(), 1500);
}

#[test]
fn removed_one_by_one_in_any_order() {
    let store = store(1 << 24);
    let mut tx = store.write().unwrap();
    let (table, keys) = filled(&mut tx);
    let before = leaves(&tx, table).len();
    for key in keys.iter().filter(|key| is_odd(&key[..])) {
        assert!(tx.delete(table, key).unwrap());
    }
    assert_half_is_left_in_fewer_leaves(&tx, table, before);
}

#[test]
fn removed_by_a_cursor_or_by_condition() {
    let by_cursor = |tx: &mut WriteTx<'_>, table: Table| {
        let mut cursor = tx.cursor_mut(table).unwrap();
        while let Some((key, _)) = cursor.next().unwrap() {
            if is_odd(key) {
                cursor.delete().unwrap();
            }
        }
    };
    let backward = |tx: &mut WriteTx<'_>, table: Table| {
        let mut cursor = tx.cursor_mut(table).unwrap();
        while let Some((key, _)) = cursor.previous().unwrap() {
            if is_odd(key) {
                cursor.delete().unwrap();
            }
        }
    };
    let retained = |tx: &mut WriteTx<'_>, table: Table| {
        assert_eq!(tx.retain(table, |key, _| !is_odd(key)).unwrap(), 1500);
    };
    let extracted = |tx: &mut WriteTx<'_>, table: Table| {
        let all = (Bound::Unbounded, Bound::Unbounded);
        assert_eq!(tx.extract_if(table, all, |key, _| is_odd(key)).unwrap().count(), 1500);
    };
    let ways: [fn(&mut WriteTx<'_>, Table); 4] = [by_cursor, backward, retained, extracted];
    for remove in ways {
        let store = store(1 << 24);
        let mut tx = store.write().unwrap();
        let (table, _) = filled(&mut tx);
        let before = leaves(&tx, table).len();
        remove(&mut tx, table);
        assert_half_is_left_in_fewer_leaves(&tx, table, before);
    }
}

#[test]
fn a_merged_leaf_has_room_for_more() {
    let store = store(1 << 24);
    let mut tx = store.write().unwrap();
    let (table, keys) = filled(&mut tx);
    let mut before = leaves(&tx, table);
    for key in keys {
        tx.delete(table, &key).unwrap();
        let now = leaves(&tx, table);
        // One leaf fewer: the one that took the entries is where they differ.
        if now.len() < before.len() && now.len() > 1 {
            let at = now.iter().zip(&before).take_while(|(now, before)| now == before).count();
            let most = now.get(at).copied().unwrap_or(0);
            assert!(most <= (4096 - 56) * 3 / 4, "{most}");
        }
        before = now;
    }
    assert_eq!(all(&tx, table), []);
}

fn of_log(log_bytes: u64) -> (Arc<SimDisk>, Options) {
    let options = Options {
        background: false,
        cache_bytes: 32 << 20,
        log_limit_bytes: log_bytes,
        checkpoint_bytes: u64::MAX,
        ..Options::default()
    };
    (Arc::new(SimDisk::new()), options)
}

// The second changes 170 bytes of each of 1,700 pages. Whole pages would be 7 MiB, for which the log has no space.
#[test]
fn removal_by_condition_requests_as_much_log_as_its_changes_take() {
    let (disk, options) = of_log(16 << 20);
    let layout = Layout { vlf_bytes: 1 << 20, vlfs: 4, ..Layout::default() };
    let store = Store::create_on(disk, layout, options, 1).unwrap();
    let table = store.transact(Durability::Full, |tx| tx.create_table("t")).unwrap();
    // In order: the pages are full.
    let fill = |tx: &mut WriteTx<'_>| {
        (0..40_000_u32).try_for_each(|row| tx.put(table, &row.to_be_bytes(), &[7; 150]))
    };
    store.transact(Durability::Full, fill).unwrap();
    store.checkpoint().unwrap();
    store.transact(Durability::Full, |tx| tx.retain(table, |key, _| key[3] % 16 > 0)).unwrap();
    let before = store.stats();
    store.transact(Durability::Full, |tx| tx.retain(table, |key, _| key[3] % 16 > 1)).unwrap();
    let after = store.stats();
    assert_eq!((after.vlfs, after.checkpoints), (before.vlfs, before.checkpoints));
    assert!(after.log_write_bytes - before.log_write_bytes < 1 << 20);
}

// A checkpoint after the changes were encoded makes images of them necessary, for which the log must have space.
#[test]
fn a_checkpoint_between_a_removal_by_condition_and_its_commit_does_no_harm() {
    let layout = Layout { vlf_bytes: 128 << 10, vlfs: 4, ..Layout::default() };
    for (log_bytes, has_space) in [(4 << 20, true), (768 << 10, false)] {
        let (disk, options) = of_log(log_bytes);
        let store = Store::create_on(disk.clone(), layout, options, 1).unwrap();
        let table = store.transact(Durability::Full, |tx| tx.create_table("t")).unwrap();
        let keys: Vec<_> = (0..3000_u32).map(u32::to_be_bytes).collect();
        for part in keys.chunks(500) {
            let fill = |tx: &mut WriteTx<'_>| part.iter().try_for_each(|key| tx.put(table, key, &[7; 150]));
            store.transact(Durability::Full, fill).unwrap();
            store.checkpoint().unwrap();
        }
        // The pages have records in the log, so that their next changes need no image.
        for part in keys.chunks(500) {
            let change = |tx: &mut WriteTx<'_>| part.iter().try_for_each(|key| tx.put(table, key, &[8; 150]));
            store.transact(Durability::Full, change).unwrap();
        }
        let mut tx = store.write().unwrap();
        assert_eq!(tx.retain(table, |key, _| key[3] % 8 > 0).unwrap(), 375);
        store.checkpoint().unwrap();
        let committed = tx.commit(Durability::Full);
        assert_eq!(committed.is_ok(), has_space, "{committed:?}");
        assert!(has_space || matches!(committed, Err(Error::LogFull { .. })), "{committed:?}");
        // The store goes on in any case.
        store.transact(Durability::Full, |tx| tx.put(table, b"more", b"")).unwrap();
        drop(store);
        let store = Store::open_on(Arc::new(SimDisk::holding(disk.files())), options).unwrap();
        let left: Vec<_> = all(&store.read().unwrap(), table).into_iter().map(|(key, _)| key).collect();
        let stays = |key: &&[u8; 4]| !has_space || !key[3].is_multiple_of(8);
        let kept = keys.iter().filter(stays).map(|key| key.to_vec());
        assert_eq!(left, kept.chain([b"more".to_vec()]).collect::<Vec<_>>());
    }
}

#[test]
fn entries_beside_a_leaf_that_cannot_be_read_can_be_removed() {
    let (disk, options) = of_log(128 << 20);
    let store = Store::create_on(disk.clone(), Layout::default(), options, 1).unwrap();
    let mut tx = store.write().unwrap();
    let (table, _) = filled(&mut tx);
    let mut at = Position::find(&tx, table, Target::First).unwrap();
    assert!(at.move_to_leaf(&tx, Target::First).unwrap());
    let damaged = at.leaf;
    assert!(at.move_to_leaf(&tx, Target::First).unwrap());
    let keys: Vec<_> = (0..at.node().unwrap().count())
        .map(|index| at.node().unwrap().key(index).unwrap().to_vec())
        .collect();
    assert!(keys.len() > 2);
    drop(at);
    tx.commit(Durability::Full).unwrap();
    store.checkpoint().unwrap();
    drop(store);
    let mut files = disk.files();
    files[FileId::Data as usize][damaged.0 as usize * 4096 + 100] ^= 1;
    let store = Store::open_on(Arc::new(SimDisk::holding(files)), options).unwrap();
    let mut tx = store.write().unwrap();
    for key in &keys[1..] {
        assert!(tx.delete(table, key).unwrap());
    }
    tx.commit(Durability::Full).unwrap();
    let reader = store.read().unwrap();
    assert!(reader.get(table, &keys[0]).unwrap().is_some() && reader.get(table, &keys[1]).unwrap().is_none());
}

// A cursor that loses its place would visit entries twice, or pass over some.
#[test]
fn a_cursor_keeps_its_place_while_its_leaf_merges_with_neighbours() {
    for (is_forward, share) in [(true, 2), (false, 2), (true, 3), (false, 3), (true, 5), (false, 5)] {
        let store = store(1 << 24);
        let mut tx = store.write().unwrap();
        let (table, _) = filled(&mut tx);
        let before = leaves(&tx, table).len();
        let mut cursor = tx.cursor_mut(table).unwrap();
        let mut visited = Vec::new();
        loop {
            let next = if is_forward { cursor.next() } else { cursor.previous() };
            let Some((key, _)) = next.unwrap() else { break };
            let number = u32::from_be_bytes(key.try_into().unwrap());
            visited.push(number);
            if number % share > 0 {
                assert!(cursor.delete().unwrap());
            }
        }
        if !is_forward {
            visited.reverse();
        }
        assert_eq!(visited, (0..3000).collect::<Vec<_>>(), "forward {is_forward}, all but one in {share}");
        assert!(leaves(&tx, table).len() < before);
    }
}
