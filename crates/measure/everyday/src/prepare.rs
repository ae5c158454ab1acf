use crate::plan::ORDERS_PER_CUSTOMER;
use crate::{Error, Plan, Random, database};
use rusqlite::{Connection, params};
use std::path::Path;

const PAGE_BYTES: u32 = 4096;
const PROFILE_BYTES: usize = 240;
const NOTE_BYTES: usize = 340;
/// Customers between two calls of the progress.
const PROGRESS_EVERY: u64 = 1_000;

const TABLES: &str = "
    CREATE TABLE customers (
        id            INTEGER PRIMARY KEY,
        name          TEXT NOT NULL,
        email         TEXT NOT NULL,
        balance_cents INTEGER NOT NULL,
        profile       BLOB NOT NULL
    );
    CREATE TABLE orders (
        id            INTEGER PRIMARY KEY,
        customer_id   INTEGER NOT NULL,
        reference     TEXT NOT NULL,
        placed_unix_s INTEGER NOT NULL,
        status        INTEGER NOT NULL,
        total_cents   INTEGER NOT NULL,
        note          BLOB NOT NULL
    );";
const INDEXES: &str = "
    CREATE INDEX customers_by_email ON customers (email);
    CREATE INDEX orders_by_customer ON orders (customer_id, placed_unix_s);
    CREATE INDEX orders_by_reference ON orders (reference);";

/// Makes the shop's database in a new file, in WAL mode, durable, and out of the page cache. `progress`
/// receives (customers made, customers in all).
///
/// # Errors
/// [`Error::Exists`] where there is such a file already; [`Error::Plan`].
pub fn prepare(path: &Path, plan: &Plan, progress: &mut dyn FnMut(u64, u64)) -> Result<(), Error> {
    plan.validate()?;
    database::create(path, plan.vfs.as_deref(), PAGE_BYTES, |connection| fill(connection, plan, progress))
}

fn fill(
    connection: &mut Connection,
    plan: &Plan,
    progress: &mut dyn FnMut(u64, u64),
) -> rusqlite::Result<()> {
    let mut random = Random::new(plan.seed);
    let transaction = connection.transaction()?;
    transaction.execute_batch(TABLES)?;
    {
        let mut customer = transaction.prepare("INSERT INTO customers VALUES (?, ?, ?, ?, ?)")?;
        let mut order = transaction.prepare(INSERT_ORDER)?;
        // One order of each customer in every round: the orders of a customer lie apart, as in a database that grew.
        for round in 0..ORDERS_PER_CUSTOMER {
            for id in 1..=plan.customers {
                if round == 0 {
                    let name = random.text(1);
                    let email = format!("{name}@example.com");
                    customer.execute(params![id as i64, name, email, 0, random.bytes(PROFILE_BYTES)])?;
                }
                let placed = round * plan.customers + id;
                insert_order(&mut order, id, placed, &mut random)?;
                let done = round * plan.customers + id;
                if done.is_multiple_of(PROGRESS_EVERY) {
                    progress(done / ORDERS_PER_CUSTOMER, plan.customers);
                }
            }
        }
    }
    transaction.execute_batch(INDEXES)?;
    transaction.commit()?;
    progress(plan.customers, plan.customers);
    Ok(())
}

pub(crate) const INSERT_ORDER: &str = "INSERT INTO orders (customer_id, reference, placed_unix_s, status, total_cents, note) \
     VALUES (?, ?, ?, 0, ?, ?)";

pub(crate) fn insert_order(
    insert: &mut rusqlite::Statement<'_>,
    customer: u64,
    placed_unix_s: u64,
    random: &mut Random,
) -> rusqlite::Result<()> {
    let total_cents = random.below(100_000) as i64;
    let (reference, note) = (random.text(2), random.bytes(NOTE_BYTES));
    insert.execute(params![customer as i64, reference, placed_unix_s as i64, total_cents, note]).map(drop)
}
