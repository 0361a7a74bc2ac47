//! Counts of `probe net`, which its threads add to and the end of the run reads.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::*};

use model::run::Packets;
use model::units::Nanos;

/// Adds one.
pub fn count(of: &AtomicU64) {
    of.fetch_add(1, AcqRel);
}

/// Sum, number and maximum of spans.
#[derive(Default)]
pub struct PacketSpans {
    number: AtomicI64,
    sum: AtomicI64,
    max: AtomicI64,
}

impl PacketSpans {
    pub fn add(&self, span: Nanos) {
        self.number.fetch_add(1, AcqRel);
        self.sum.fetch_add(span.0, AcqRel);
        self.max.fetch_max(span.0, AcqRel);
    }

    fn mean(&self) -> Option<Nanos> {
        let number = self.number.load(Acquire);
        (number > 0).then(|| Nanos(self.sum.load(Acquire) / number))
    }

    fn max(&self) -> Option<Nanos> {
        self.mean().map(|_| Nanos(self.max.load(Acquire)))
    }
}

/// Results of a thread.
#[derive(Default)]
pub struct PacketCounts {
    pub answered: AtomicU64,
    /// Packets without an answer within the time limit.
    pub over_time: AtomicU64,
    pub late: AtomicU64,
    pub reordered: AtomicU64,
    pub duplicates: AtomicU64,
    pub foreign: AtomicU64,
    pub unstamped: AtomicU64,
    pub send: PacketSpans,
    pub path: PacketSpans,
    pub receive: PacketSpans,
}

impl PacketCounts {
    pub fn read(&self) -> Packets {
        let (answered, late) = (self.answered.load(Acquire), self.late.load(Acquire));
        let over_time = self.over_time.load(Acquire);
        Packets {
            sent: answered + over_time,
            answered,
            lost: over_time.saturating_sub(late),
            late,
            reordered: self.reordered.load(Acquire),
            duplicates: self.duplicates.load(Acquire),
            foreign: self.foreign.load(Acquire),
            unstamped: self.unstamped.load(Acquire),
            send_mean_ns: self.send.mean(),
            send_max_ns: self.send.max(),
            path_mean_ns: self.path.mean(),
            path_max_ns: self.path.max(),
            receive_mean_ns: self.receive.mean(),
            receive_max_ns: self.receive.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_too_late_is_not_lost() {
        let of = PacketCounts::default();
        assert_eq!(of.read(), Packets::default());
        of.over_time.store(5, Release);
        count(&of.late);
        [10, 30].iter().for_each(|ns| of.path.add(Nanos(*ns)));
        let read = of.read();
        assert_eq!((read.lost, read.late), (4, 1));
        assert_eq!((read.path_mean_ns, read.path_max_ns), (Some(Nanos(20)), Some(Nanos(30))));
        assert_eq!(read.send_max_ns, None);
    }
}
