//! `probe spin`: a thread that reads the clock without a pause, and counts the gaps between reads.
//!
//! The clock is CLOCK_MONOTONIC through the vDSO, as everywhere in onbeat: the processor's counter
//! if the clocksource is one, in nanoseconds as calibrated by the kernel, on all machines.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::gaps::{ClockGap, GapFinder};
use crate::measure::block::{BLOCK_LENGTH, BlockSwap, CpuBuffers, DrainedBlock, LatencySample};
use crate::measure::cycle::{EndReason, LoopEnd, LoopParams, end_block, note_migration};
use crate::measure::prepare::{ThreadInfo, make_buffers, take_place};
use crate::measure::starvation::StarvationGuard;
use crate::measure::task::{MeasuringTask, ThreadBody, ThreadEnd};
use host::clock;
use host::rt::{self, CpuReader};
use model::error::Result;
use model::units::Nanos;

/// Length of the warm-up, which loads code and memory.
const WARM_UP: Nanos = Nanos(2_000_000);

/// Reads the clock; gaps of at least `over` are samples.
pub struct Spin {
    pub over: Nanos,
}

impl ThreadBody for Spin {
    fn run(&self, task: MeasuringTask) -> ThreadEnd {
        let cpu_reader = CpuReader::new();
        let found = self.prepare(task, &cpu_reader);
        task.count(found, |turn, buffers| {
            while clock::monotonic() < turn.params.start && !task.shared.stop.load(Relaxed) {
                clock::nanosleep_until(turn.params.start);
            }
            spin(&mut Counter, self.over, &turn.params, buffers, &cpu_reader, &task.shared.stop)
        })
    }
}

impl Spin {
    fn prepare(&self, task: MeasuringTask, cpu_reader: &CpuReader) -> Result<(ThreadInfo, Arc<CpuBuffers>)> {
        let own = task.own();
        let policy_refused = take_place(task.plan, own.cpu)?;
        let (buffers, lock_refused) = make_buffers(task.shared.late_capacity);
        let clock_read = clock::clock_read_cost();
        let start = clock::monotonic();
        let unbounded = LoopParams::unbounded(own.cpu, start);
        // Short gaps and the end of a block, so that each branch has run once.
        let block_end = start + Nanos(WARM_UP.0 / 2);
        let params = LoopParams { block_end, end: start + WARM_UP, ..unbounded };
        buffers.begin(start);
        spin(&mut Counter, Nanos(1), &params, &buffers, cpu_reader, &AtomicBool::new(false));
        buffers.take(&mut DrainedBlock::default());
        let info = ThreadInfo {
            thread: rt::thread_id(),
            policy_refused,
            lock_refused,
            clock_read,
            loop_cost: clock_read,
            // It uses its whole CPU: the plan is checked for that before threads start.
            cycle: Nanos(0),
            warmup: 0,
        };
        Ok((info, buffers))
    }
}

/// Clock of the loop, and the CPU time of reading it.
trait SpinClock {
    fn read(&mut self) -> Nanos;
    fn used(&self) -> Nanos;
}

struct Counter;

impl SpinClock for Counter {
    #[inline(always)]
    fn read(&mut self) -> Nanos {
        clock::monotonic()
    }

    fn used(&self) -> Nanos {
        clock::thread_cpu().unwrap_or_default()
    }
}

/// Reads the clock until the end or a stop. It does nothing else between two reads, and detects the
/// end from the clock: no other thread has to run for that.
#[inline(never)]
fn spin(
    clock: &mut impl SpinClock,
    over: Nanos,
    params: &LoopParams,
    buffers: &CpuBuffers,
    cpu_reader: &CpuReader,
    stop: &AtomicBool,
) -> LoopEnd {
    let began = clock.used();
    let first = clock.read();
    let mut starvation = StarvationGuard::new(first, began);
    let mut finder = GapFinder::new(over, first);
    let mut end = LoopEnd { ended: EndReason::Stopped, ..LoopEnd::at(params.start) };
    let mut block_end = params.block_end;
    loop {
        let now = clock.read();
        end.last = now;
        if let Some(gap) = finder.read(now) {
            if note(gap, finder.gaps, params, buffers) {
                end.ended = EndReason::Limit;
                break;
            }
        }
        if now >= params.end {
            end.ended = EndReason::Duration;
            break;
        }
        if now >= block_end {
            // A gap belongs to the block in which it began, whatever its length.
            let boundary = Nanos(now.0 - (now.0 - block_end.0) % BLOCK_LENGTH.0);
            let ended = end_block(buffers, boundary, clock.used(), began, &mut starvation);
            debug_assert!(ended.swap == BlockSwap::Swapped || ended.swap == BlockSwap::Merged);
            let cpu = cpu_reader.current();
            if cpu != params.cpu {
                note_migration(&mut end, cpu, now);
            }
            if ended.starving {
                end.ended = EndReason::Starving;
                break;
            }
            block_end = boundary + BLOCK_LENGTH;
            finder.resume(clock.read());
        }
        if stop.load(Relaxed) {
            break;
        }
    }
    buffers.set_used(clock.used() - began);
    LoopEnd { scheduled: finder.gaps, used: clock.used() - began, ..end }
}

/// Counts a gap; true if it reaches the limit.
#[cold]
#[inline(never)]
pub(super) fn note(gap: ClockGap, number: u64, params: &LoopParams, buffers: &CpuBuffers) -> bool {
    let (block, length) = (buffers.current(), gap.length());
    block.count(length);
    block.keep(LatencySample { latency: length, cycle: number, time: gap.after });
    if length >= params.threshold {
        buffers.late.push(number, gap.before, gap.after);
    }
    length >= params.limit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::block::Drained;
    use proptest::prelude::*;

    /// A clock that advances by the given steps, then by 10 ns each.
    struct Script<'a> {
        now: Nanos,
        steps: &'a [i64],
    }

    impl SpinClock for Script<'_> {
        fn read(&mut self) -> Nanos {
            let (step, rest) =
                self.steps.split_first().map_or((10, self.steps), |(step, rest)| (*step, rest));
            (self.now, self.steps) = (self.now + Nanos(step), rest);
            self.now
        }

        fn used(&self) -> Nanos {
            Nanos(0)
        }
    }

    fn spun(steps: &[i64], params: LoopParams) -> (LoopEnd, Vec<DrainedBlock>, Vec<(i64, i64)>) {
        let buffers = CpuBuffers::new(64);
        buffers.begin(params.start);
        let mut script = Script { now: params.start, steps };
        let end =
            spin(&mut script, Nanos(1_000), &params, &buffers, &CpuReader::new(), &AtomicBool::new(false));
        let mut blocks = vec![DrainedBlock::default()];
        if buffers.take(&mut blocks[0]) == Drained::Block {
            blocks.push(DrainedBlock::default());
        }
        buffers.take_last(end.last, blocks.last_mut().expect("one"));
        let gaps = std::iter::from_fn(|| buffers.late.pop(params.cpu));
        let gaps = gaps.map(|gap| (gap.expected.0, gap.actual.0)).collect();
        (end, blocks, gaps)
    }

    fn params(end: i64) -> LoopParams {
        let unbounded = LoopParams::unbounded(rt::current_cpu(), Nanos(0));
        LoopParams { end: Nanos(end), threshold: Nanos(1_000), ..unbounded }
    }

    #[test]
    fn a_gap_is_between_the_read_before_it_and_the_one_after() {
        // The first read is at 10.
        let (end, blocks, gaps) = spun(&[10, 20, 999, 1_000, 10, 5_000], params(8_000));
        assert_eq!(gaps, [(1_029, 2_029), (2_039, 7_039)]);
        assert_eq!((end.ended, end.scheduled, end.last), (EndReason::Duration, 2, Nanos(8_009)));
        assert_eq!((blocks[0].cycles, blocks[0].sum), (2, 6_000));
        assert_eq!((blocks[0].start, blocks[0].end), (Nanos(0), Nanos(8_009)));
    }

    #[test]
    fn it_ends_by_its_own_clock_in_the_midst_of_a_gap() {
        let (end, blocks, gaps) = spun(&[10, 20_000_000], params(5_000));
        assert_eq!((end.ended, gaps), (EndReason::Duration, vec![(10, 20_000_010)]));
        assert_eq!(blocks[0].cycles, 1, "and counts it");
    }

    #[test]
    fn a_limit_ends_it_at_its_gap() {
        let limited = LoopParams { limit: Nanos(2_000), ..params(900_000) };
        let (end, _, gaps) = spun(&[10, 1_500, 2_000, 3_000], limited);
        assert_eq!((end.ended, gaps.len()), (EndReason::Limit, 2));
    }

    proptest! {
        #[test]
        fn blocks_lose_no_gap_and_touch_each_other(
            steps in proptest::collection::vec(1i64..40_000, 2..100), block_end in 1i64..100_000,
        ) {
            let total: i64 = steps.iter().sum();
            let params = LoopParams { block_end: Nanos(block_end), ..params(total) };
            let (end, blocks, gaps) = spun(&steps, params);
            prop_assert_eq!(blocks.iter().map(|block| block.cycles).sum::<u64>(), end.scheduled);
            prop_assert!(blocks.windows(2).all(|pair| pair[0].end == pair[1].start));
            let lost: i64 = blocks.iter().map(|block| block.sum).sum();
            let long: Vec<i64> = steps[1..].iter().copied().filter(|&step| step >= 1_000).collect();
            // Work at the end of a block is onbeat's time, not a gap.
            prop_assert!(lost <= end.last.0 && gaps.len() <= long.len());
            if blocks.len() == 1 && gaps.len() < 64 {
                prop_assert_eq!(lost, gaps.iter().map(|gap| gap.1 - gap.0).sum::<i64>());
            }
        }
    }
}
