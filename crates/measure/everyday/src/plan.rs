use crate::Error;
use std::time::Duration;

/// Orders made for each customer.
pub(crate) const ORDERS_PER_CUSTOMER: u64 = 5;

/// How large the shop is and how busy.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Customers; each has five orders and takes about 2.6 KiB with them and their indexes.
    pub customers: u64,
    /// Clients, each with a thread and a connection of its own.
    pub clients: u32,
    /// Transactions a second, all clients together. They are paced: where the storage is slow, some come
    /// late or not at all, and the pace never makes up for them.
    pub transactions_per_s: f64,
    /// How long the clients run.
    pub duration: Duration,
    /// The SQLite VFS that connections are opened through; `None` is the default one.
    pub vfs: Option<String>,
    /// Seed of every random choice.
    pub seed: u64,
}

/// Counts of the clients' work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Transactions.
    pub transactions: u64,
    /// Updates, each one commit.
    pub updates: u64,
    /// Inserts, each one commit.
    pub inserts: u64,
    /// Transactions that were left out because the ones before took too long.
    pub left_out: u64,
}

impl Default for Plan {
    /// About 150 MiB, four clients, 50 transactions a second for two minutes.
    fn default() -> Self {
        Plan {
            customers: 60_000,
            clients: 4,
            transactions_per_s: 50.0,
            duration: Duration::from_secs(120),
            vfs: None,
            seed: 1,
        }
    }
}

impl Plan {
    /// Most clients of one plan.
    pub const CLIENTS_MAX: u32 = 1_024;

    pub(crate) fn validate(&self) -> Result<(), Error> {
        let refuse = |what, value: String, accepted| Err(Error::Plan { what, value, accepted });
        if self.customers == 0 || self.customers > 1 << 32 {
            return refuse("customers", self.customers.to_string(), "1 to 4294967296");
        }
        if self.clients == 0 || self.clients > Self::CLIENTS_MAX {
            return refuse("clients", self.clients.to_string(), "1 to 1024");
        }
        if !(self.transactions_per_s > 0.0 && self.transactions_per_s <= 1e6) {
            let value = self.transactions_per_s.to_string();
            return refuse("transactions a second", value, "a number above 0, up to 1000000");
        }
        Ok(())
    }

    /// The most space that its database takes with its log, an index rebuild included.
    pub fn bytes_max(&self) -> u64 {
        const CUSTOMER_BYTES: u64 = 512;
        const ORDER_BYTES: u64 = 768;
        self.customers.saturating_mul(CUSTOMER_BYTES + ORDERS_PER_CUSTOMER * ORDER_BYTES)
    }

    /// Time between the transactions of one client.
    pub(crate) fn pause(&self) -> Duration {
        Duration::from_secs_f64((f64::from(self.clients) / self.transactions_per_s).min(86_400.0))
    }
}

impl Counts {
    pub(crate) fn merge(&mut self, other: &Counts) {
        self.transactions += other.transactions;
        self.updates += other.updates;
        self.inserts += other.inserts;
        self.left_out += other.left_out;
    }
}
