//! A first example: the orders of a shop. Shows tables, transactions, a stable snapshot, delayed commits, and
//! reopening the store.
//!
//! `cargo run -p pagestore --example shop [DIR]`: the store is created in a new directory there.

use pagestore::{Durability, Layout, Options, Result, Store, Table, Tables};
use std::path::Path;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let place = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, Into::into);
    let directory = place.join(format!("shop-{}.pages", std::process::id()));
    shop(&directory)?;
    println!("the store is in {}", directory.display());
    Ok(())
}

fn shop(directory: &Path) -> Result<()> {
    // A store is a directory. Its layout is chosen once; the options are chosen at every opening.
    let store = Store::create(directory, Layout::default(), Options::default())?;

    // All changes are made by transactions: completely, or not at all.
    let mut tx = store.write()?;
    let orders = tx.create_table("orders")?;
    let stock = tx.create_table("stock")?;
    tx.put(stock, b"pears", &10_u32.to_be_bytes())?;
    tx.put(stock, b"plums", &5_u32.to_be_bytes())?;
    tx.commit(Durability::Full)?;

    order(&store, orders, stock, "2026-11-22/1", "pears", 3)?;
    order(&store, orders, stock, "2026-11-22/2", "plums", 2)?;
    assert!(!order(&store, orders, stock, "2026-11-22/3", "plums", 4)?, "there are only three left");

    // A reader sees what was committed when it began, whatever is committed meanwhile, and blocks no writer.
    let snapshot = store.read()?;
    order(&store, orders, stock, "2026-11-23/1", "pears", 7)?;
    assert_eq!(left(&snapshot, stock, "pears")?, 7);
    assert_eq!(left(&store.read()?, stock, "pears")?, 0);
    drop(snapshot);

    // Keys are in order: a day's orders are a range.
    let reader = store.read()?;
    println!("orders of 22 November:");
    for entry in reader.range(orders, b"2026-11-22", Some(b"2026-11-23"))? {
        let (key, value) = entry?;
        println!("  {}  {}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value));
    }
    drop(reader);

    // If losing the last few milliseconds in a crash is acceptable, a delayed commit does not wait for the storage.
    // A later full commit, or `flush`, makes it durable with its own write.
    for visitor in 0..1000_u32 {
        let mut tx = store.write()?;
        tx.put(stock, b"visitors", &visitor.to_be_bytes())?;
        tx.commit(Durability::Delayed)?;
    }
    store.flush()?;
    let stats = store.stats();
    println!("{} commits took {} writes of the log", stats.commits, stats.log_writes);

    // Closing writes what is only in the log. Without it nothing is lost, but the next opening has more to do.
    store.close()?;
    let store = Store::open(directory, Options::default())?;
    let reader = store.read()?;
    let orders = reader.table("orders")?;
    println!("{} orders after opening again", reader.range(orders, b"", None)?.count());
    assert_eq!(reader.get(orders, b"2026-11-22/1")?, Some(b"3 pears".to_vec()));
    Ok(())
}

/// Takes an order, unless there is too little stock; then the transaction is dropped, which rolls it back.
fn order(store: &Store, orders: Table, stock: Table, number: &str, what: &str, count: u32) -> Result<bool> {
    let mut tx = store.write()?;
    tx.put(orders, number.as_bytes(), format!("{count} {what}").as_bytes())?;
    let Some(rest) = left(&tx, stock, what)?.checked_sub(count) else { return Ok(false) };
    tx.put(stock, what.as_bytes(), &rest.to_be_bytes())?;
    tx.commit(Durability::Full)?;
    Ok(true)
}

fn left(reader: &impl Tables, stock: Table, what: &str) -> Result<u32> {
    let value = reader.get(stock, what.as_bytes())?;
    Ok(value.and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_shop_runs_from_the_first_order_to_the_last() {
        let place = tempfile::tempdir().expect("a temporary directory");
        super::shop(&place.path().join("store")).expect("it runs");
    }
}
