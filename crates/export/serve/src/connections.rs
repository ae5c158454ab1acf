//! Open connections, by class, and the choice of the one that gives way to a new one.
//!
//! ```text
//! accept ─> Waiting ─ a request that is allowed ─> Page | Metrics | Stream       each with a bound of its own
//! ```
//!
//! A connection keeps the class of its newest request, so that open streams and slow readers of pages leave the places of
//! scrapes alone. When all places of a class are in use, the oldest connection of the address with the most gives way.
//! Streams are long: they give way only to an address that has fewer, and the next one is refused.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use tokio::task::AbortHandle;

/// Connections without an allowed request: in their handshake, silent, or refused.
pub const CONNECTIONS_MAX: usize = 32;
/// Connections whose newest request is for a page or its data: a browser opens up to six.
pub const PAGES_MAX: usize = 32;
/// Connections that scrape: few servers do, and each answer may take megabytes.
pub const SCRAPES_MAX: usize = 16;
/// Streams of events: each open tab has one.
pub const STREAMS_MAX: usize = 64;

/// The use of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Waiting,
    Page,
    Metrics,
    Stream,
}

impl Class {
    /// That of a request.
    pub fn from_path(path: &str) -> Class {
        match path {
            "/metrics" => Class::Metrics,
            "/api/v1/stream" => Class::Stream,
            _ => Class::Page,
        }
    }

    fn most(self) -> usize {
        match self {
            Class::Waiting => CONNECTIONS_MAX,
            Class::Page => PAGES_MAX,
            Class::Metrics => SCRAPES_MAX,
            Class::Stream => STREAMS_MAX,
        }
    }
}

/// The open connections.
#[derive(Default)]
pub(crate) struct Connections(Mutex<Table>);

#[derive(Default)]
struct Table {
    /// Those of a class are in the order of their newest requests.
    open: Vec<Open>,
    next: u64,
}

#[derive(Clone, Debug)]
struct Open {
    number: u64,
    address: IpAddr,
    class: Class,
    task: Option<AbortHandle>,
}

impl Connections {
    /// A place for a new connection.
    pub fn begin(&self, address: IpAddr) -> u64 {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = table.next;
        table.next += 1;
        table.open.push(Open { number, address, class: Class::Waiting, task: None });
        end(table.make_room(number, Class::Waiting));
        number
    }

    /// Sets the task that is aborted when the connection gives way.
    pub fn set_task(&self, number: u64, task: AbortHandle) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = table.open.iter_mut().find(|open| open.number == number) {
            open.task = Some(task);
        }
    }

    /// A place of another class for a connection; whether there is one.
    pub fn enter(&self, number: u64, class: Class) -> bool {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entered = table.enter(number, class);
        let is_entered = entered.is_some();
        end(entered.flatten());
        is_entered
    }

    /// A connection that is closed.
    pub fn end(&self, number: u64) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.open.retain(|open| open.number != number);
    }
}

fn end(gives_way: Option<Open>) {
    if let Some(task) = gives_way.and_then(|open| open.task) {
        task.abort();
    }
}

impl Table {
    /// The connection that gives way, if one must; `None` where it is refused.
    fn enter(&mut self, number: u64, class: Class) -> Option<Option<Open>> {
        let at = self.open.iter().position(|open| open.number == number)?;
        let address = self.open[at].address;
        if class == Class::Stream && self.open[at].class != class && self.count(class) >= class.most() {
            let streams = || self.open.iter().filter(|open| open.class == class);
            let of = |address: IpAddr| streams().filter(|open| open.address == address).count();
            let most = streams().map(|open| of(open.address)).max();
            // With one stream less and one more, the address that gives way still has no fewer.
            if most.unwrap_or(0) < of(address) + 2 {
                return None;
            }
        }
        let open = self.open.remove(at);
        self.open.push(Open { class, ..open });
        Some(self.make_room(number, class))
    }

    fn count(&self, class: Class) -> usize {
        self.open.iter().filter(|open| open.class == class).count()
    }

    /// Removes the connection that gives way to one that is already in the table.
    fn make_room(&mut self, number: u64, class: Class) -> Option<Open> {
        if self.count(class) <= class.most() {
            return None;
        }
        let others = self.open.iter().filter(|open| open.class == class && open.number != number);
        let others: Vec<(u64, IpAddr)> = others.map(|open| (open.number, open.address)).collect();
        let addresses: Vec<IpAddr> = others.iter().map(|(_, address)| *address).collect();
        let closed = others.get(to_close(&addresses))?.0;
        let at = self.open.iter().position(|open| open.number == closed)?;
        Some(self.open.remove(at))
    }
}

/// The connection to close for a new one: the oldest of the address with the most connections.
fn to_close(addresses: &[IpAddr]) -> usize {
    let count = |address: &IpAddr| addresses.iter().filter(|other| *other == address).count();
    // `max_by_key` returns the last maximum: in reverse order, the oldest.
    (0..addresses.len()).rev().max_by_key(|at| count(&addresses[*at])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: u8) -> IpAddr {
        [10, 0, 0, number].into()
    }

    #[test]
    fn the_oldest_connection_of_the_address_with_the_most_is_closed() {
        let close = |hosts: &[u8]| {
            let addresses: Vec<IpAddr> = hosts.iter().copied().map(host).collect();
            to_close(&addresses)
        };
        assert_eq!(close(&[1, 2, 2, 3]), 1);
        assert_eq!(close(&[3, 3, 1, 1]), 0);
        assert_eq!(close(&[1]), 0);
    }

    impl Connections {
        fn numbers(&self, class: Class) -> Vec<u64> {
            let table = self.0.lock().unwrap();
            table.open.iter().filter(|open| open.class == class).map(|open| open.number).collect()
        }

        fn request(&self, address: IpAddr, class: Class) -> Option<u64> {
            let number = self.begin(address);
            let entered = self.enter(number, class);
            if !entered {
                self.end(number);
            }
            entered.then_some(number)
        }
    }

    #[test]
    fn classes_have_separate_bounds() {
        let connections = Connections::default();
        let scrape = connections.request(host(1), Class::Metrics).unwrap();
        for _ in 0..STREAMS_MAX {
            connections.request(host(2), Class::Stream).unwrap();
        }
        for _ in 0..2 * PAGES_MAX {
            connections.request(host(2), Class::Page).unwrap();
            connections.begin(host(2));
        }
        assert_eq!(connections.numbers(Class::Metrics), [scrape]);
        assert_eq!(connections.numbers(Class::Stream).len(), STREAMS_MAX);
        assert_eq!(connections.numbers(Class::Page).len(), PAGES_MAX);
        assert_eq!(connections.numbers(Class::Waiting).len(), CONNECTIONS_MAX);
    }

    #[test]
    fn a_new_request_makes_a_connection_the_youngest() {
        let connections = Connections::default();
        let numbers: Vec<u64> =
            (0..SCRAPES_MAX).map(|_| connections.request(host(1), Class::Metrics).unwrap()).collect();
        assert!(connections.enter(numbers[0], Class::Metrics));
        connections.request(host(2), Class::Metrics).unwrap();
        let left = connections.numbers(Class::Metrics);
        assert!(left.contains(&numbers[0]) && !left.contains(&numbers[1]), "{left:?}");
    }

    #[test]
    fn a_stream_too_many_is_refused_unless_another_address_has_more() {
        let connections = Connections::default();
        let first = connections.request(host(1), Class::Stream).unwrap();
        for _ in 1..STREAMS_MAX {
            connections.request(host(1), Class::Stream).unwrap();
        }
        assert_eq!(connections.request(host(1), Class::Stream), None);
        // The other one's first stream: the oldest gives way.
        connections.request(host(2), Class::Stream).unwrap();
        let streams = connections.numbers(Class::Stream);
        assert!(streams.len() == STREAMS_MAX && !streams.contains(&first), "{streams:?}");
        // Until both have the same number.
        let entered =
            (0..STREAMS_MAX).filter(|_| connections.request(host(2), Class::Stream).is_some()).count();
        assert_eq!(1 + entered, STREAMS_MAX / 2);
    }

    #[test]
    fn a_connection_that_gave_way_gets_no_place() {
        let connections = Connections::default();
        let first = connections.begin(host(1));
        for _ in 0..CONNECTIONS_MAX {
            connections.begin(host(1));
        }
        assert!(!connections.enter(first, Class::Page));
    }
}
