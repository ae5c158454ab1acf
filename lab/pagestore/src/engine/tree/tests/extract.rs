//! Removal by condition, leaf by leaf, in trees of several levels.

use super::{all, store};
use crate::{Durability, Error, Layout, Options, Pages, Store, Table, Tables, WriteTx};
use crashlab::{Chance, SimDisk};
use pagestore_disk::FileId;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Which entries a removal chooses.
#[derive(Clone, Copy, Debug)]
enum Choice {
    All,
    None,
    /// Anywhere, this share of ten.
    Some(u64),
    /// Runs of this many neighbours, and as many that stay: whole leaves become empty.
    Runs(u64),
    /// All but one of so many.
    AllBut(u64),
}

impl Choice {
    fn is_chosen(self, key: &[u8]) -> bool {
        let number = u64::from(u32::from_be_bytes(key[..4].try_into().unwrap()));
        match self {
            Self::All => true,
            Self::None => false,
            Self::Some(share) => number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 10 < share,
            Self::Runs(length) => number / length % 2 == 0,
            Self::AllBut(one) => !number.is_multiple_of(one),
        }
    }
}

fn choices() -> impl Strategy<Value = Choice> {
    prop_oneof![
        1 => Just(Choice::All),
        1 => Just(Choice::None),
        3 => (1..10_u64).prop_map(Choice::Some),
        3 => (1..200_u64).prop_map(Choice::Runs),
        2 => (2..400_u64).prop_map(Choice::AllBut),
    ]
}

/// Keys whose length decides how many levels the tree has.
fn key(number: u32, bytes: usize) -> Vec<u8> {
    let mut key = number.to_be_bytes().to_vec();
    key.resize(bytes, 7);
    key
}

fn fill(tx: &mut WriteTx<'_>, table: Table, model: &mut Model, chance: &mut Chance, key_bytes: usize) {
    for _ in 0..chance.below(1200) {
        let key = key(chance.below(1500) as u32, key_bytes);
        let value = vec![chance.draw() as u8; chance.below(200) as usize];
        tx.put(table, &key, &value).unwrap();
        model.insert(key, value);
    }
}

fn bound(chance: &mut Chance, key_bytes: usize) -> Bound<Vec<u8>> {
    let at = key(chance.below(1500) as u32, key_bytes);
    match chance.below(4) {
        0 => Bound::Included(at),
        1 => Bound::Excluded(at),
        _ => Bound::Unbounded,
    }
}

fn is_within(key: &[u8], from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> bool {
    let is_after = match from {
        Bound::Unbounded => true,
        Bound::Included(from) => key >= &from[..],
        Bound::Excluded(from) => key > &from[..],
    };
    is_after
        && match to {
            Bound::Unbounded => true,
            Bound::Included(to) => key <= &to[..],
            Bound::Excluded(to) => key < &to[..],
        }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn whatever_is_chosen_the_rest_is_that_of_an_ordered_map(
        seed in any::<u64>(), choices in proptest::collection::vec(choices(), 6),
        key_bytes in prop_oneof![Just(4_usize), Just(40), Just(500)], small in any::<bool>(),
    ) {
        // With the small cache transactions set pages aside.
        let store = store(if small { 1 << 16 } else { 1 << 24 });
        let (mut chance, mut model) = (Chance::new(seed), Model::new());
        let table = store.transact(Durability::Full, |tx| tx.create_table("t")).unwrap();
        for choice in choices {
            let mut tx = store.write().unwrap();
            fill(&mut tx, table, &mut model, &mut chance, key_bytes);
            let (from, to) = (bound(&mut chance, key_bytes), bound(&mut chance, key_bytes));
            let at_most = if chance.once_in(2) { usize::MAX } else { chance.below(300) as usize };
            let expected: Vec<_> = model
                .iter()
                .filter(|(key, _)| is_within(key, &from, &to) && choice.is_chosen(key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .take(at_most)
                .collect();
            if chance.once_in(2) {
                let bounds = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
                let extracted = tx.extract_if(table, bounds, |key, _| choice.is_chosen(key)).unwrap();
                let extracted: Vec<_> = extracted.take(at_most).map(Result::unwrap).collect();
                prop_assert_eq!(&extracted, &expected);
                expected.iter().for_each(|(key, _)| drop(model.remove(key)));
            } else {
                let removed = tx.retain(table, |key, _| !choice.is_chosen(key)).unwrap();
                let before = model.len();
                model.retain(|key, _| !choice.is_chosen(key));
                prop_assert_eq!(removed, (before - model.len()) as u64);
            }
            let left: Vec<_> = model.clone().into_iter().collect();
            prop_assert_eq!(tx.len(table).unwrap(), left.len() as u64);
            prop_assert_eq!(all(&tx, table), left.clone());
            tx.commit(Durability::Delayed).unwrap();
            prop_assert_eq!(all(&store.read().unwrap(), table), left);
        }
    }
}

/// A table of 2,000 entries.
fn filled(store: &Store) -> Table {
    store
        .transact(Durability::Full, |tx| {
            let table = tx.create_table("t")?;
            (0..2000).try_for_each(|number| tx.put(table, &key(number, 40), &[7; 60]))?;
            Ok(table)
        })
        .unwrap()
}

fn numbers(reader: &impl Tables, table: Table) -> Vec<u32> {
    let number = |(key, _): (Vec<u8>, _)| u32::from_be_bytes(key[..4].try_into().unwrap());
    all(reader, table).into_iter().map(number).collect()
}

#[test]
fn what_was_returned_is_removed_when_it_is_dropped_in_the_middle_of_a_leaf_and_the_condition_saw_no_more() {
    let store = store(1 << 24);
    let table = filled(&store);
    let mut tx = store.write().unwrap();
    let mut seen = 0;
    let everything = (Bound::Unbounded, Bound::Unbounded);
    let mut extracted = tx
        .extract_if(table, everything, |key, _| {
            seen += 1;
            key[3] % 2 == 1
        })
        .unwrap();
    for expected in 0..10 {
        let (key, value) = extracted.next_entry().unwrap().unwrap();
        assert_eq!((key[3], value), (2 * expected + 1, &[7; 60][..]));
    }
    drop(extracted);
    assert_eq!(seen, 20);
    let left: Vec<_> = (0..20).step_by(2).chain(20..2000).collect();
    assert_eq!((numbers(&tx, table), tx.len(table).unwrap()), (left.clone(), left.len() as u64));
    tx.commit(Durability::Full).unwrap();
    assert_eq!(numbers(&store.read().unwrap(), table), left);
}

#[test]
fn a_condition_that_panics_leaves_removed_what_it_had_chosen_before() {
    let store = store(1 << 24);
    let table = filled(&store);
    for is_retain in [false, true] {
        let mut tx = store.write().unwrap();
        let condition = |key: &[u8]| {
            let number = u32::from_be_bytes(key[..4].try_into().unwrap());
            assert!(number != 777, "the condition panics");
            number.is_multiple_of(3)
        };
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            if is_retain {
                tx.retain(table, |key, _| !condition(key)).map(drop)
            } else {
                let everything = (Bound::Unbounded, Bound::Unbounded);
                tx.extract_if(table, everything, |key, _| condition(key))?
                    .try_for_each(|entry| entry.map(drop))
            }
        }));
        assert!(panicked.is_err());
        let left: Vec<_> = (0..2000).filter(|number| *number >= 777 || number % 3 != 0).collect();
        assert_eq!((numbers(&tx, table), tx.len(table).unwrap()), (left.clone(), left.len() as u64));
    }
}

#[test]
fn pages_that_change_again_after_a_removal_by_condition_are_recovered_as_they_were_committed() {
    let disk = Arc::new(SimDisk::new());
    let options = Options { background: false, ..Options::default() };
    let store = Store::create_on(disk.clone(), Layout::default(), options, 7).unwrap();
    let table = filled(&store);
    let mut tx = store.write().unwrap();
    tx.retain(table, |key, _| key[3].is_multiple_of(2)).unwrap();
    // In half of the leaves, and in some twice.
    for number in (1..1000).step_by(30).chain(1..20) {
        tx.put(table, &key(number, 40), &[8; 60]).unwrap();
    }
    tx.commit(Durability::Full).unwrap();
    let committed = all(&store.read().unwrap(), table);
    drop(store);
    let recovered = Store::open_on(Arc::new(SimDisk::holding(disk.files())), options).unwrap();
    let table = recovered.read().unwrap().table("t").unwrap();
    assert_eq!(all(&recovered.read().unwrap(), table), committed);
}

/// Extracts until the end or an error; returns the numbers of what was returned.
fn extract(
    tx: &mut WriteTx<'_>,
    table: Table,
    is_chosen: impl Fn(u32) -> bool,
) -> (Vec<u32>, Result<(), Error>) {
    let number = |key: &[u8]| u32::from_be_bytes(key[..4].try_into().unwrap());
    let mut returned = Vec::new();
    let all = (Bound::Unbounded, Bound::Unbounded);
    let mut extracted = match tx.extract_if(table, all, |key, _| is_chosen(number(key))) {
        Ok(extracted) => extracted,
        Err(error) => return (returned, Err(error)),
    };
    loop {
        match extracted.next_entry() {
            Ok(Some((key, _))) => returned.push(number(key)),
            Ok(None) => return (returned, Ok(())),
            Err(error) => return (returned, Err(error)),
        }
    }
}

#[test]
fn after_an_error_what_was_returned_is_gone_or_the_transaction_is_broken() {
    let options =
        || Options { background: false, publish: false, cache_bytes: 1 << 16, ..Options::default() };
    let disk = Arc::new(SimDisk::new());
    let layout = Layout { vlf_bytes: 1 << 20, vlfs: 8, ..Layout::default() };
    let store = Store::create_on(disk.clone(), layout, options(), 7).unwrap();
    filled(&store);
    let pages = store.read().unwrap().page_count().unwrap();
    store.close().unwrap();
    let files = disk.files();
    let (mut broken, mut intact) = (0, 0);
    // Whole leaves, and every other entry; each with one page that cannot be read.
    for page in 2..pages {
        for length in [1, 100] {
            let bytes = page * 4096..(page + 1) * 4096;
            let disk = SimDisk::holding(files.clone()).with_unreadable(FileId::Data, bytes);
            let store = Store::open_on(Arc::new(disk), options()).unwrap();
            let mut tx = store.write().unwrap();
            let Ok(table) = tx.table("t") else { continue };
            let (returned, done) = extract(&mut tx, table, |number| number / length % 2 == 0);
            assert!(matches!(done, Err(Error::Io { .. })), "page {page}: {done:?}");
            match tx.len(table) {
                Ok(left) => {
                    assert_eq!(left, 2000 - returned.len() as u64, "page {page}");
                    intact += 1;
                }
                Err(Error::TransactionBroken { .. }) => broken += 1,
                Err(error) => panic!("page {page}: {error}"),
            }
        }
    }
    assert!(intact > 20, "{intact} intact, {broken} broken");
}
