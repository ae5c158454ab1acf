/// The pending events by time: a binary heap in one allocation.
///
/// Most events cause one new event (an I/O completes, the next is issued): the place of the event taken is left open for
/// the next one added, which costs one walk down the heap instead of two.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// Time in the upper 64 bits, the event in the lower ones.
    heap: Vec<u128>,
    /// The first was taken and its place is open.
    open: bool,
}

impl Events {
    pub fn with_capacity(events: usize) -> Events {
        Events { heap: Vec::with_capacity(events), open: false }
    }

    /// Adds an event. At the same time, smaller events come first.
    #[inline]
    pub fn push(&mut self, at_ns: u64, event: u64) {
        let key = (u128::from(at_ns) << 64) | u128::from(event);
        if self.open {
            self.open = false;
            self.sink(key);
            return;
        }
        let mut place = self.heap.len();
        self.heap.push(key);
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent] <= key {
                break;
            }
            self.heap[place] = self.heap[parent];
            place = parent;
        }
        self.heap[place] = key;
    }

    /// Takes the next event, with its time.
    #[inline]
    pub fn pop(&mut self) -> Option<(u64, u64)> {
        if self.open {
            self.open = false;
            let last = self.heap.pop()?;
            if !self.heap.is_empty() {
                self.sink(last);
            }
        }
        let first = *self.heap.first()?;
        self.open = true;
        Some(((first >> 64) as u64, first as u64))
    }

    /// Fills the first place with `key`, and moves it down to its place.
    #[inline]
    fn sink(&mut self, key: u128) {
        let heap = &mut self.heap[..];
        let len = heap.len();
        let mut place = 0;
        let mut child = 1;
        while child + 1 < len {
            child += usize::from(heap[child + 1] < heap[child]);
            if heap[child] >= key {
                heap[place] = key;
                return;
            }
            heap[place] = heap[child];
            place = child;
            child = 2 * place + 1;
        }
        if child < len && heap[child] < key {
            heap[place] = heap[child];
            place = child;
        }
        heap[place] = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    proptest! {
        #[test]
        fn events_come_in_order_whatever_was_added_between(
            steps in prop::collection::vec(prop::option::weighted(0.6, (0_u64..50, 0_u64..1000)), 0..300),
        ) {
            let (mut events, mut plain) = (Events::default(), BinaryHeap::new());
            for step in steps {
                match step {
                    Some((at, what)) => {
                        events.push(at, what);
                        plain.push(Reverse((at, what)));
                    }
                    None => prop_assert_eq!(events.pop(), plain.pop().map(|Reverse(next)| next)),
                }
            }
            while let Some(Reverse(next)) = plain.pop() {
                prop_assert_eq!(events.pop(), Some(next));
            }
            prop_assert_eq!(events.pop(), None);
        }
    }
}
