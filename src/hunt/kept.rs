//! Which spikes stand in `run.json` whole: as many as there is room for, the largest where there are more. Pure.

use crate::bundle::run::Spike;

/// Spikes that are kept.
const SPIKES: usize = 2_000;

/// Slices of all of them together: a document that can be read again has room for no more.
const SLICES: usize = 200_000;

/// The list of a run's spikes while it grows.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    slices: usize,
    /// Spikes that were let go for larger ones, or found no room.
    pub dropped: u64,
    unsorted: bool,
}

impl Kept {
    /// Adds a spike to the list; the least are let go while it is too long.
    pub fn add(&mut self, list: &mut Vec<Spike>, spike: Spike) {
        self.unsorted = true;
        self.slices += spike.slices.len();
        list.push(spike);
        while list.len() > SPIKES || (self.slices > SLICES && list.len() > 1) {
            let Some(least) = (0..list.len()).min_by_key(|&at| list[at].latency_ns) else { return };
            self.slices -= list.swap_remove(least).slices.len();
            self.dropped += 1;
        }
    }

    /// Puts the list in order of time.
    pub fn sort(&mut self, list: &mut [Spike]) {
        if std::mem::take(&mut self.unsorted) {
            list.sort_by_key(|spike| (spike.actual_ns, spike.cpu));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::run::Slice;
    use crate::units::Nanos;

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
        let (mut kept, mut list) = (Kept::default(), Vec::new());
        (0..SPIKES as i64 + 10).for_each(|latency| kept.add(&mut list, spike(latency, 1)));
        assert_eq!((list.len(), kept.dropped), (SPIKES, 10));
        kept.sort(&mut list);
        assert_eq!((list[0].latency_ns.0, list[SPIKES - 1].latency_ns.0), (SPIKES as i64 + 9, 10));
    }

    #[test]
    fn spikes_of_many_slices_leave_room_for_fewer() {
        let (mut kept, mut list) = (Kept::default(), Vec::new());
        (1..=5).for_each(|latency| kept.add(&mut list, spike(latency, SLICES / 4)));
        assert_eq!((list.len(), kept.dropped), (4, 1));
        kept.add(&mut list, spike(9, 2 * SLICES));
        assert_eq!((list.len(), list[0].latency_ns.0), (1, 9), "one is always kept");
    }
}
