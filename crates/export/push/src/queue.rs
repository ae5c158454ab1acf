//! The queue of requests to one server.

use std::collections::VecDeque;

/// The most bytes in the queue of one server; the newest request is queued whatever its size. It holds an hour of a server
/// with a few hundred classes of files.
pub const QUEUE_BYTES_MAX: usize = 8 << 20;

/// A queue of requests, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Queue {
    /// Adds a request and drops the oldest ones that no longer fit. Returns how many were dropped.
    pub fn add(&mut self, body: Vec<u8>) -> u64 {
        self.bytes += body.len();
        self.waiting.push_back(body);
        let mut dropped = 0;
        while self.bytes > QUEUE_BYTES_MAX && self.waiting.len() > 1 {
            self.take();
            dropped += 1;
        }
        dropped
    }

    /// Removes the oldest request.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let body = self.waiting.pop_front()?;
        self.bytes -= body.len();
        Some(body)
    }

    /// The number of requests.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Puts back a request that could not be sent. Returns false where it no longer fits.
    pub fn put_back(&mut self, body: Vec<u8>) -> bool {
        let fits = self.waiting.is_empty() || self.bytes + body.len() <= QUEUE_BYTES_MAX;
        if fits {
            self.bytes += body.len();
            self.waiting.push_front(body);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_drops_the_oldest_and_keeps_their_order() {
        let mut queue = Queue::default();
        let third = QUEUE_BYTES_MAX / 3;
        assert_eq!([1, 2, 3].map(|each| queue.add(vec![each; third])), [0, 0, 0]);
        assert_eq!(queue.add(vec![4; third]), 1);
        let oldest = queue.take().unwrap();
        assert_eq!(oldest[0], 2);
        assert!(queue.put_back(oldest));
        let first: Vec<u8> = std::iter::from_fn(|| queue.take()).map(|body| body[0]).collect();
        assert_eq!(first, [2, 3, 4]);
        assert_eq!(queue.bytes, 0);
    }

    #[test]
    fn the_newest_waits_however_large_and_what_was_under_way_gives_way_to_it() {
        let mut queue = Queue::default();
        queue.add(vec![1]);
        assert_eq!(queue.add(vec![2; QUEUE_BYTES_MAX + 1]), 1);
        assert!(!queue.put_back(vec![0]));
        assert_eq!(queue.take().unwrap()[0], 2);
    }
}
