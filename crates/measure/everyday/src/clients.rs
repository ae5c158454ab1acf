use crate::prepare::{INSERT_ORDER, insert_order};
use crate::{Counts, Error, Plan, Random, database};
use rusqlite::{Connection, TransactionBehavior, params};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The stop flag is polled at least this often.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Orders that a range read goes through.
const RANGE: u64 = 100;

/// Kind of a transaction.
#[derive(Clone, Copy, PartialEq)]
enum Transaction {
    PointRead,
    RangeRead,
    Update,
    Insert,
}

/// Numbers of rows.
#[derive(Clone, Copy)]
struct Shop {
    customers: u64,
    orders: u64,
}

/// Runs the clients until the plan's time is over or `stop` is set.
///
/// # Errors
/// Where the file is not one that [`crate::prepare`] made; the first error of a client, which stops all.
pub fn run(path: &Path, plan: &Plan, stop: &AtomicBool) -> Result<Counts, Error> {
    plan.validate()?;
    let fail = |source| Error::Sqlite { doing: "run the everyday workload", path: path.into(), source };
    let connections = (0..plan.clients)
        .map(|_| database::open(path, plan.vfs.as_deref()))
        .collect::<Result<Vec<Connection>, Error>>()?;
    let shop = Shop::read(&connections[0]).map_err(fail)?;
    let failed = AtomicBool::new(false);
    let started = Instant::now();
    let results: Vec<rusqlite::Result<Counts>> = thread::scope(|scope| {
        let clients: Vec<_> = connections
            .into_iter()
            .zip(0_u32..)
            .map(|(connection, number)| {
                let failed = &failed;
                scope.spawn(move || {
                    let stopped = || stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
                    let client = Client { connection, plan, shop, number, started };
                    let result = client.run(&stopped);
                    if result.is_err() {
                        failed.store(true, Ordering::Relaxed);
                    }
                    result
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().expect("a client does not panic")).collect()
    });
    let mut counts = Counts::default();
    for result in results {
        counts.merge(&result.map_err(fail)?);
    }
    Ok(counts)
}

/// One client: a connection and a thread.
struct Client<'a> {
    connection: Connection,
    plan: &'a Plan,
    shop: Shop,
    number: u32,
    started: Instant,
}

impl Client<'_> {
    /// Works until the plan's time is over or `stopped` returns true.
    fn run(mut self, stopped: &dyn Fn() -> bool) -> rusqlite::Result<Counts> {
        let Client { plan, started, .. } = self;
        let end = started + plan.duration;
        let pause = plan.pause();
        let mut random = Random::new(plan.seed ^ ((u64::from(self.number) + 1) << 32));
        let mut counts = Counts::default();
        // The clients start evenly spaced.
        let mut next = started + pause.mul_f64(f64::from(self.number) / f64::from(plan.clients));
        while sleep_until(next.min(end), stopped) && Instant::now() < end {
            let kind = Transaction::choose(&mut random);
            transact(&mut self.connection, kind, self.shop, &mut random)?;
            counts.transactions += 1;
            counts.updates += u64::from(kind == Transaction::Update);
            counts.inserts += u64::from(kind == Transaction::Insert);
            next += pause;
            // Transactions that could not start in time are skipped, not made up for. After the end none is due.
            let now = Instant::now().min(end);
            while next + pause < now {
                next += pause;
                counts.left_out += 1;
            }
        }
        Ok(counts)
    }
}

/// Sleeps until `then`; returns `false` as soon as `stopped` does.
fn sleep_until(then: Instant, stopped: &dyn Fn() -> bool) -> bool {
    loop {
        if stopped() {
            return false;
        }
        let left = then.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(POLL_INTERVAL));
    }
}

fn transact(
    connection: &mut Connection,
    kind: Transaction,
    shop: Shop,
    random: &mut Random,
) -> rusqlite::Result<()> {
    // A writer takes the lock at BEGIN: one that has read before cannot wait for it (SQLITE_BUSY_SNAPSHOT).
    let behavior = match kind {
        Transaction::PointRead | Transaction::RangeRead => TransactionBehavior::Deferred,
        Transaction::Update | Transaction::Insert => TransactionBehavior::Immediate,
    };
    let transaction = connection.transaction_with_behavior(behavior)?;
    let customer = 1 + random.below(shop.customers);
    let order = 1 + random.below(shop.orders);
    let charge = |cents: i64| {
        let update = "UPDATE customers SET balance_cents = balance_cents + ? WHERE id = ?";
        transaction.prepare_cached(update)?.execute(params![cents, customer as i64])
    };
    match kind {
        Transaction::PointRead => {
            let mut read = transaction.prepare_cached("SELECT name, profile FROM customers WHERE id = ?")?;
            read.query_row([customer as i64], |row| row.get::<_, Vec<u8>>(1))?;
            let mut latest = transaction.prepare_cached(
                "SELECT note FROM orders WHERE customer_id = ? ORDER BY placed_unix_s DESC LIMIT 5",
            )?;
            let notes = latest.query_map([customer as i64], |row| row.get::<_, Vec<u8>>(0))?;
            notes.collect::<rusqlite::Result<Vec<_>>>()?;
        }
        Transaction::RangeRead => {
            let mut read = transaction
                .prepare_cached("SELECT count(*), sum(total_cents) FROM orders WHERE id BETWEEN ? AND ?")?;
            let until = order.saturating_add(RANGE) as i64;
            read.query_row([order as i64, until], |row| row.get::<_, i64>(0))?;
        }
        Transaction::Update => {
            charge(1)?;
            let mut update =
                transaction.prepare_cached("UPDATE orders SET status = status + 1 WHERE id = ?")?;
            update.execute([order as i64])?;
        }
        Transaction::Insert => {
            let now_unix_s = host::unix_ns() / 1_000_000_000;
            let mut insert = transaction.prepare_cached(INSERT_ORDER)?;
            insert_order(&mut insert, customer, now_unix_s, random)?;
            charge(-100)?;
        }
    }
    transaction.commit()
}

impl Shop {
    fn read(connection: &Connection) -> rusqlite::Result<Shop> {
        let rows = |table| {
            let query = format!("SELECT coalesce(max(id), 0) FROM {table}");
            connection.query_row(&query, [], |row| row.get::<_, i64>(0)).map(i64::cast_unsigned)
        };
        Ok(Shop { customers: rows("customers")?, orders: rows("orders")? })
    }
}

impl Transaction {
    fn choose(random: &mut Random) -> Transaction {
        match random.below(100) {
            0..50 => Transaction::PointRead,
            50..60 => Transaction::RangeRead,
            60..85 => Transaction::Update,
            _ => Transaction::Insert,
        }
    }
}
