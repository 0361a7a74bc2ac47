//! Wake-ups and cycles of followed threads, in blocks without gaps: a CPU's first block begins with
//! the run, each later one at the end of the last; full ones last a second. Pure.
//!
//! A killed run is read as its last checkpoint and the blocks after it; that is correct only if
//! each moment is in exactly one block. So block bounds follow the run's seconds, regardless of
//! when the housekeeping thread runs.

use std::collections::BTreeMap;

use crate::measure::block::{BLOCK_LENGTH, DrainedBlock, LatencySample};
use model::units::{Cpu, Nanos};

/// Blocks of all CPUs on which a followed thread ran.
pub struct FollowedBlocks {
    began: Nanos,
    /// End of the closed blocks and start of the open ones.
    until: Nanos,
    open: BTreeMap<Cpu, FollowedBlock>,
    closed: Vec<(Cpu, FollowedBlock)>,
}

/// Wake-ups and cycles on one CPU in one block.
#[derive(Default)]
pub struct FollowedBlock {
    pub wakeups: DrainedBlock,
    /// Longest response of the cycles that ended in the block.
    pub response: Option<Nanos>,
}

impl FollowedBlocks {
    /// Blocks of a run that starts at `began`.
    pub fn new(began: Nanos) -> FollowedBlocks {
        FollowedBlocks { began, until: began, open: BTreeMap::new(), closed: Vec::new() }
    }

    /// Start of the run.
    pub fn began(&self) -> Nanos {
        self.began
    }

    /// End of the closed blocks.
    pub fn until(&self) -> Nanos {
        self.until
    }

    /// Adds a wake-up; they come in order of time.
    ///
    /// One that is reported after its second was closed (another CPU's event may become readable a
    /// moment late) goes to the open block: it is counted once, with its own timestamp.
    pub fn add(&mut self, cpu: Cpu, sample: LatencySample) {
        self.open_at(cpu, sample.time).wakeups.add(sample);
    }

    /// Adds a cycle at its end, in order of time with the wake-ups.
    pub fn add_response(&mut self, cpu: Cpu, end: Nanos, response: Nanos) {
        let open = self.open_at(cpu, end);
        open.response = open.response.max(Some(response));
    }

    /// Open block of a CPU; closes blocks that are over at that time.
    fn open_at(&mut self, cpu: Cpu, time: Nanos) -> &mut FollowedBlock {
        self.close_elapsed(time);
        if !self.open.contains_key(&cpu) && self.until > self.began {
            // No followed thread ran there before: that time is a separate block.
            let wakeups = DrainedBlock { start: self.began, end: self.until, ..DrainedBlock::default() };
            self.closed.push((cpu, FollowedBlock { wakeups, response: None }));
        }
        self.open.entry(cpu).or_default()
    }

    /// Closes the seconds that are over at that time. Several seconds in which nothing was added
    /// become one block.
    pub fn close_elapsed(&mut self, now: Nanos) {
        let whole = now.0.saturating_sub(self.until.0) / BLOCK_LENGTH.0;
        if whole > 0 {
            self.close(self.until + BLOCK_LENGTH);
        }
        if whole > 1 {
            self.close(self.until + Nanos((whole - 1) * BLOCK_LENGTH.0));
        }
    }

    /// Closes everything at the run's end.
    pub fn finish(&mut self, end: Nanos) {
        self.close_elapsed(end);
        if end > self.until {
            self.close(end);
        }
    }

    /// Takes the blocks closed since the last call, those of each CPU in order.
    pub fn take(&mut self) -> Vec<(Cpu, FollowedBlock)> {
        std::mem::take(&mut self.closed)
    }

    fn close(&mut self, end: Nanos) {
        for (&cpu, open) in &mut self.open {
            let FollowedBlock { wakeups, response } = std::mem::take(open);
            let wakeups = DrainedBlock { start: self.until, end, ..wakeups };
            self.closed.push((cpu, FollowedBlock { wakeups, response }));
        }
        self.until = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const T0: i64 = 7_123_456_789;

    fn sample(time: i64) -> LatencySample {
        LatencySample { latency: Nanos(1_000), cycle: 0, time: Nanos(time) }
    }

    fn spans(blocks: &[(Cpu, FollowedBlock)]) -> Vec<(u32, i64, i64, u64)> {
        let ms = |time: Nanos| (time.0 - T0) / 1_000_000;
        let span = |(cpu, taken): &(Cpu, FollowedBlock)| {
            (cpu.0, ms(taken.wakeups.start), ms(taken.wakeups.end), taken.wakeups.cycles)
        };
        blocks.iter().map(span).collect()
    }

    #[test]
    fn a_second_has_the_longest_response_of_the_cycles_that_ended_in_it() {
        let mut blocks = FollowedBlocks::new(Nanos(T0));
        let at = |ms: i64| Nanos(T0 + ms * 1_000_000);
        blocks.add(Cpu(1), sample(at(10).0));
        blocks.add_response(Cpu(1), at(20), Nanos(300));
        blocks.add_response(Cpu(1), at(30), Nanos(200));
        // The thread has moved: that CPU has a block from the beginning as well.
        blocks.add_response(Cpu(2), at(1_400), Nanos(900));
        blocks.finish(at(2_500));
        let found = blocks.take();
        let told: Vec<(u32, Option<i64>)> =
            found.iter().map(|(cpu, block)| (cpu.0, block.response.map(|span| span.0))).collect();
        let wanted = [(1, Some(300)), (2, None), (1, None), (2, Some(900)), (1, None), (2, None)];
        assert_eq!(told, wanted);
    }

    #[test]
    fn seconds_are_the_run_s_whenever_they_are_closed() {
        let mut blocks = FollowedBlocks::new(Nanos(T0));
        let at = |ms: i64| T0 + ms * 1_000_000;
        blocks.add(Cpu(1), sample(at(10)));
        blocks.close_elapsed(Nanos(at(999)));
        assert!(blocks.take().is_empty());
        // Closed late, after a wake-up of the next second.
        blocks.add(Cpu(1), sample(at(1_576)));
        blocks.close_elapsed(Nanos(at(1_600)));
        // Another CPU that appears later was watched from the start.
        blocks.add(Cpu(0), sample(at(2_400)));
        blocks.close_elapsed(Nanos(at(5_100)));
        blocks.finish(Nanos(at(5_300)));
        assert_eq!(blocks.until(), Nanos(at(5_300)));
        assert_eq!(
            spans(&blocks.take()),
            [
                (1, 0, 1_000, 1),
                (1, 1_000, 2_000, 1),
                (0, 0, 2_000, 0),
                (0, 2_000, 3_000, 1),
                (1, 2_000, 3_000, 0),
                (0, 3_000, 5_000, 0),
                (1, 3_000, 5_000, 0),
                (0, 5_000, 5_300, 0),
                (1, 5_000, 5_300, 0),
            ]
        );
    }

    #[test]
    fn a_run_of_whole_seconds_has_no_empty_block_at_its_end() {
        let mut blocks = FollowedBlocks::new(Nanos(T0));
        blocks.add(Cpu(0), sample(T0 + 5));
        blocks.finish(Nanos(T0 + 2 * BLOCK_LENGTH.0));
        blocks.finish(Nanos(T0 + 2 * BLOCK_LENGTH.0));
        assert_eq!(spans(&blocks.take()), [(0, 0, 1_000, 1), (0, 1_000, 2_000, 0)]);
    }

    proptest! {
        #[test]
        fn blocks_touch_and_lose_nothing(
            steps in prop::collection::vec(
                (0u32..4, 0i64..3_000_000_000, any::<bool>(), -2_000_000i64..0),
                0..60,
            ),
        ) {
            let (mut blocks, mut now) = (FollowedBlocks::new(Nanos(T0)), T0);
            let (mut all, mut counted) = (Vec::new(), [0u64; 4]);
            for (cpu, wait, wake, late) in steps {
                now += wait;
                if wake {
                    blocks.add(Cpu(cpu), sample(now + late));
                    counted[cpu as usize] += 1;
                } else {
                    blocks.close_elapsed(Nanos(now));
                    all.append(&mut blocks.take());
                }
            }
            blocks.finish(Nanos(now));
            all.append(&mut blocks.take());
            for cpu in 0..4 {
                let own = all.iter().filter(|block| block.0 == Cpu(cpu)).map(|block| &block.1.wakeups);
                let own: Vec<_> = own.collect();
                prop_assert_eq!(own.iter().map(|block| block.cycles).sum::<u64>(), counted[cpu as usize]);
                prop_assert!(own.windows(2).all(|pair| pair[0].end == pair[1].start));
                prop_assert!(own.windows(2).all(|pair| pair[0].start < pair[0].end));
                prop_assert!(own.first().is_none_or(|first| first.start.0 == T0));
                prop_assert!(own.last().is_none_or(|last| last.end == blocks.until()));
            }
        }
    }
}
