//! Sums of timerlat's samples in one context of one CPU, and the slots of its timer.

use crate::measure::block::{CpuBuffers, DrainedBlock, LatencySample};
use crate::measure::total::Total;
use crate::probe::timerlat::TimerlatSample;
use host::clock;
use model::run::CpuRun;
use model::units::{Cpu, Nanos};
use model::vocabulary::Quantity;

/// Sums of samples that no block record has.
pub struct TimerlatSums {
    buffers: CpuBuffers,
    slots: TimerlatSlots,
    start: Nanos,
    until: Nanos,
}

impl TimerlatSums {
    /// Sums of timers with that interval.
    pub fn new(interval: Nanos) -> TimerlatSums {
        let (buffers, slots) = (CpuBuffers::new(0), TimerlatSlots::new(interval));
        TimerlatSums { buffers, slots, start: Nanos(i64::MAX), until: Nanos(0) }
    }

    /// Empties the sums; timers that were due before `start` do not count.
    pub fn begin(&mut self, start: Nanos) {
        self.buffers.begin(start);
        self.slots = TimerlatSlots::new(self.slots.interval);
        (self.start, self.until) = (start, start);
    }

    /// Counts a sample.
    pub fn take(&mut self, sample: TimerlatSample) {
        if sample.expected() >= self.start {
            self.until = sample.time;
            self.slots.count(sample, &self.buffers);
        }
    }

    /// Entry of `run.json`; with the missed slots only if they are `planned`.
    pub fn document(&self, cpu: Cpu, measures: Quantity, planned: bool) -> CpuRun {
        let mut block = DrainedBlock::default();
        self.buffers.take_last(self.until, &mut block);
        let interval = if planned { self.slots.interval } else { Nanos(0) };
        let mut total = Total::new(cpu, interval, self.start);
        total.add_block(&block, clock::wall_offset());
        let until_mono_ns = Some(self.until);
        CpuRun { measures: measures.into(), until_mono_ns, ..total.document() }
    }
}

/// Slots of the tracer's timer.
#[derive(Debug)]
pub struct TimerlatSlots {
    interval: Nanos,
    /// Time at which the first one was due.
    first: Option<Nanos>,
    /// Number of the last one.
    slot: u64,
    pub cycles: u64,
    /// Latency of the last sample.
    latency: Nanos,
}

impl TimerlatSlots {
    pub fn new(interval: Nanos) -> TimerlatSlots {
        TimerlatSlots { interval, first: None, slot: 0, cycles: 0, latency: Nanos(0) }
    }

    /// Number of a sample's slot.
    fn number(&mut self, sample: TimerlatSample) -> u64 {
        let first = *self.first.get_or_insert(sample.expected());
        let since = (sample.expected() - first).0 + self.interval.0 / 2;
        (1 + (since.max(0) / self.interval.0) as u64).max(self.slot + 1)
    }

    /// Counts a sample, and the slots that passed before the thread could wait for them; returns
    /// the number of its slot.
    pub fn count(&mut self, sample: TimerlatSample, buffers: &CpuBuffers) -> u64 {
        let number = self.number(sample);
        let block = buffers.current();
        let missed = number - self.slot - 1;
        if missed > 0 {
            // The last of them was due right before the thread looked.
            let least = self.interval.0.saturating_mul(missed as i64 - 1);
            let first = Nanos((self.latency - self.interval).0.max(least));
            block.count_missed(first, self.interval, missed);
        }
        (self.slot, self.latency) = (number, sample.latency);
        self.cycles += 1;
        block.count(sample.latency);
        block.keep(LatencySample { latency: sample.latency, cycle: number, time: sample.time });
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::timerlat::TimerlatContext;

    const MS: i64 = 1_000_000;

    fn counted(samples: &[(i64, i64)]) -> CpuRun {
        let mut sums = TimerlatSums::new(Nanos(MS));
        sums.begin(Nanos(5));
        for &(due, latency) in samples {
            // The record is a little younger than the read of the clock.
            let time = Nanos(due + latency + 400);
            let context = TimerlatContext::Thread;
            sums.take(TimerlatSample { time, latency: Nanos(latency), context, thread: 7 });
        }
        sums.document(Cpu(0), Quantity::Wakeup, true)
    }

    #[test]
    fn slots_that_a_late_wake_up_skipped_are_missed() {
        // The second is 2.5 intervals late, so that two slots passed before the next.
        let due = [10 * MS + 77, 11 * MS + 77, 14 * MS + 77];
        let late = 2 * MS + MS / 2;
        let run = counted(&[(due[0], 9_000), (due[1], late), (due[2], 8_000)]);
        assert_eq!((run.cycles, run.missed, run.scheduled), (Some(3), Some(2), Some(5)));
        assert_eq!((run.max_ns, run.worst[0].cycle), (Some(Nanos(late)), Some(2)));
        assert_eq!(run.sum_ns, Some(9_000 + late + 8_000));
        assert_eq!(run.check(), Ok(()));
    }

    #[test]
    fn samples_that_come_in_each_interval_miss_nothing() {
        let samples: Vec<(i64, i64)> = (0..500).map(|at| (at * MS, 5_000 + at * 13 % 700)).collect();
        let run = counted(&samples);
        assert_eq!((run.cycles, run.missed), (Some(500), Some(0)));
        // A timer that was due before the start does not count.
        assert_eq!(counted(&[(-MS, 2 * MS), (MS, 5_000)]).cycles, Some(1));
    }
}
