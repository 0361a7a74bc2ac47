//! Spikes that a run lists in full: as many as there is space for, the largest if there are more.
//! Pure.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use model::run::Spike;
use model::sort::CompactSort;
use model::units::Nanos;

/// Maximum number of spikes in the list of a run.
const SPIKES: usize = 2_000;
/// Maximum number of slices of all of them.
const SLICES: usize = 200_000;
/// Maximum size in bytes: a longer document could not be read again.
const BYTES: u64 = 64 << 20;

/// Space of a spike, and its key.
#[derive(Debug)]
pub struct KeptSpike<T> {
    latency: Nanos,
    slices: usize,
    bytes: u64,
    /// The spike, or its place.
    pub what: T,
}

impl<T> KeptSpike<T> {
    /// Space of a spike whose text has this number of bytes.
    pub fn of(spike: &Spike, bytes: usize, what: T) -> KeptSpike<T> {
        KeptSpike { latency: spike.latency_ns, slices: spike.slices.len(), bytes: bytes as u64, what }
    }
}

impl<T> Ord for KeptSpike<T> {
    fn cmp(&self, other: &KeptSpike<T>) -> Ordering {
        self.latency.cmp(&other.latency)
    }
}

impl<T> PartialOrd for KeptSpike<T> {
    fn partial_cmp(&self, other: &KeptSpike<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for KeptSpike<T> {
    fn eq(&self, other: &KeptSpike<T>) -> bool {
        self.latency == other.latency
    }
}

impl<T> Eq for KeptSpike<T> {}

/// Spikes in the list.
#[derive(Debug)]
pub struct Room<T> {
    places: BinaryHeap<Reverse<KeptSpike<T>>>,
    slices: usize,
    bytes: u64,
}

impl<T> Default for Room<T> {
    fn default() -> Room<T> {
        Room { places: BinaryHeap::new(), slices: 0, bytes: 0 }
    }
}

impl<T> Room<T> {
    /// True if a spike of that latency may fit: none does if the list is full of spikes that are at
    /// least as late.
    pub fn takes(&self, latency: Nanos) -> bool {
        self.places.len() < SPIKES || self.places.peek().is_some_and(|least| least.0.latency < latency)
    }

    /// Adds a spike. Returns the displaced ones, the least first, possibly with this one; one spike
    /// always stays.
    pub fn add(&mut self, place: KeptSpike<T>) -> Vec<T> {
        (self.slices, self.bytes) = (self.slices + place.slices, self.bytes + place.bytes);
        self.places.push(Reverse(place));
        let mut gone = Vec::new();
        while self.places.len() > SPIKES
            || (self.places.len() > 1 && (self.slices > SLICES || self.bytes > BYTES))
        {
            let Some(Reverse(least)) = self.places.pop() else { break };
            (self.slices, self.bytes) = (self.slices - least.slices, self.bytes - least.bytes);
            gone.push(least.what);
        }
        gone
    }

    /// Total size of the texts in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of spikes.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// All spikes, unordered.
    pub fn into_all(self) -> Vec<T> {
        self.places.into_iter().map(|place| place.0.what).collect()
    }

    /// Calls for each spike, unordered, to read or change it; its latency and size stay.
    pub fn each(&mut self, mut f: impl FnMut(&mut T)) {
        let mut places = std::mem::take(&mut self.places).into_vec();
        places.iter_mut().for_each(|place| f(&mut place.0.what));
        self.places = places.into();
    }
}

impl Room<Spike> {
    /// Adds a spike whose text has this number of bytes; returns the number of dropped spikes.
    pub fn put(&mut self, spike: Spike, bytes: usize) -> u64 {
        let sizes = KeptSpike::of(&spike, bytes, ());
        let KeptSpike { latency, slices, bytes, .. } = sizes;
        self.add(KeptSpike { latency, slices, bytes, what: spike }).len() as u64
    }

    /// List of the spikes in order of time.
    pub fn into_list(self) -> Vec<Spike> {
        let mut list = self.into_all();
        list.compact_sort_by_key(|spike| (spike.actual_ns, spike.cpu));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::Slice;

    fn spike(latency: i64, slices: usize) -> Spike {
        Spike {
            latency_ns: Nanos(latency),
            actual_ns: Nanos(-latency),
            slices: vec![Slice::default(); slices],
            ..Spike::default()
        }
    }

    #[test]
    fn the_largest_stay_in_order_of_time() {
        let mut room = Room::default();
        let gone: u64 = (0..SPIKES as i64 + 10).map(|latency| room.put(spike(latency, 1), 1)).sum();
        assert_eq!((room.len(), gone), (SPIKES, 10));
        assert_eq!([10, 11].map(|latency| room.takes(Nanos(latency))), [false, true]);
        let list = room.into_list();
        assert_eq!((list[0].latency_ns.0, list[SPIKES - 1].latency_ns.0), (SPIKES as i64 + 9, 10));
    }

    #[test]
    fn spikes_of_many_slices_or_bytes_leave_room_for_fewer() {
        for (slices, bytes) in [(SLICES / 4, 1), (1, BYTES as usize / 4)] {
            let mut room = Room::default();
            let gone: u64 = (1..=5).map(|latency| room.put(spike(latency, slices), bytes)).sum();
            assert_eq!((room.len(), gone), (4, 1));
            assert_eq!(room.put(spike(9, 5 * slices), 5 * bytes), 4);
            assert_eq!(room.into_list()[0].latency_ns.0, 9, "one is always kept");
        }
    }
}
