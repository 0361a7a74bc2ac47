//! The hot loop. Each cycle sleeps to an absolute time, reads the clock, checks the CPU, increments
//! a bucket, compares and advances. It allocates, locks and formats nothing, and makes no system
//! call but the sleep.

use model::vocabulary::Ended;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::block::{BLOCK_LENGTH, BlockBuffer, BlockSwap, CpuBuffers, LatencySample};
use super::late::LateQueue;
use super::schedule::Schedule;
use super::starvation::StarvationGuard;
use super::wake::{Sleep, Wake};
use host::clock;
use host::rt::{self, CpuReader};
use model::units::{Cpu, Nanos};

/// Start of the loop and the conditions that end it.
#[derive(Clone, Copy, Debug)]
pub struct LoopParams {
    /// CPU on which each wake-up must occur.
    pub cpu: Cpu,
    /// Time of slot 0; slot k is expected k intervals later.
    pub start: Nanos,
    /// End of the first block.
    pub block_end: Nanos,
    /// Latest time at which a slot may be expected.
    pub end: Nanos,
    pub loops: u64,
    /// Latency from which the run stops.
    pub limit: Nanos,
    /// Latency from which a wake-up is handed to the hunter.
    pub threshold: Nanos,
}

impl LoopParams {
    /// A loop that only its stop flag ends, with one endless block.
    pub fn unbounded(cpu: Cpu, start: Nanos) -> LoopParams {
        let never = Nanos(i64::MAX);
        LoopParams {
            cpu,
            start,
            block_end: never,
            end: never,
            loops: u64::MAX,
            limit: never,
            threshold: never,
        }
    }
}

/// Reason for the end of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The next slot lies beyond the end.
    Duration,
    /// The number of wake-ups is reached.
    Loops,
    /// A latency reached the limit.
    Limit,
    /// The stop flag was set.
    Stopped,
    /// The thread never paused, and the housekeeping thread had no time to run: see `starvation`.
    Starving,
}

impl EndReason {
    /// The reason, of this one and those of other threads, that ended the run.
    pub fn decisive(self, others: Option<EndReason>) -> EndReason {
        let gravest = [EndReason::Limit, EndReason::Starving, EndReason::Stopped];
        gravest.into_iter().find(|grave| self == *grave || others == Some(*grave)).unwrap_or(self)
    }

    /// Reason for `run.json`; a signal after the end of the loop is ignored.
    pub fn document(self, signalled: bool) -> Ended {
        match self {
            EndReason::Limit => Ended::Limit,
            EndReason::Duration => Ended::Duration,
            EndReason::Loops => Ended::Loops,
            EndReason::Stopped if signalled => Ended::Signal,
            EndReason::Stopped | EndReason::Starving => Ended::Error,
        }
    }
}

/// State of the loop at its end that is not in the blocks.
#[derive(Clone, Copy, Debug)]
pub struct LoopEnd {
    pub ended: EndReason,
    /// Number of the last slot whose time had passed.
    pub scheduled: u64,
    pub last: Nanos,
    /// Number of wake-ups on another CPU.
    pub migrations: u64,
    /// CPU and time of the first of those.
    pub first_migration: (Cpu, Nanos),
    /// CPU time of the thread since the loop began.
    pub used: Nanos,
}

impl LoopEnd {
    /// State before the first slot.
    pub fn at(start: Nanos) -> LoopEnd {
        let first_migration = Default::default();
        LoopEnd {
            ended: EndReason::Loops,
            scheduled: 0,
            last: start,
            migrations: 0,
            first_migration,
            used: Nanos(0),
        }
    }
}

/// Wakes up once per slot and counts the latency.
///
/// A slot whose time passed before the thread could wait for it is missed: it is skipped and
/// counted, and its lateness goes into the histogram of what a periodic task would have seen.
pub fn run<W: Wake, const DITHER: bool>(
    wake: &mut W,
    schedule: Schedule<DITHER>,
    params: &LoopParams,
    buffers: &CpuBuffers,
    cpu_reader: &CpuReader,
    stop: &AtomicBool,
) -> LoopEnd {
    // 0 if that clock cannot be read: no share is reported then, and the starvation guard sees an
    // idle thread.
    let began = wake.used();
    let end = run_slots(wake, schedule, params, buffers, cpu_reader, stop, began);
    let used = wake.used() - began;
    buffers.set_used(used);
    LoopEnd { used, ..end }
}

/// Loads the functions that the loop calls into memory, including rare ones.
pub fn prefault<W: Wake, const DITHER: bool>() {
    rt::prefault_code(&[
        run_slots::<W, DITHER> as *const (),
        BlockBuffer::keep as *const (),
        BlockBuffer::count_missed as *const (),
        LateQueue::push as *const (),
        end_block as *const (),
        note_migration as *const (),
    ]);
}

#[inline(never)]
fn run_slots<W: Wake, const DITHER: bool>(
    wake: &mut W,
    mut schedule: Schedule<DITHER>,
    params: &LoopParams,
    buffers: &CpuBuffers,
    cpu_reader: &CpuReader,
    stop: &AtomicBool,
    began: Nanos,
) -> LoopEnd {
    let mut starvation = StarvationGuard::new(clock::monotonic(), began);
    let mut block = buffers.current();
    let mut block_end = params.block_end;
    let (mut min, mut floor) = (Nanos(i64::MAX), Nanos(i64::MIN));
    let (mut end, mut loops_left) = (LoopEnd::at(params.start), params.loops);
    while loops_left > 0 {
        schedule.advance();
        let expected = schedule.expected();
        if expected > params.end {
            end.ended = EndReason::Duration;
            return end;
        }
        while wake.sleep_until(expected) == Sleep::Interrupted {
            if stop.load(Relaxed) {
                end.ended = EndReason::Stopped;
                return end;
            }
        }
        let now = wake.now(expected);
        let latency = wake.latency(expected, now);
        if expected > block_end {
            // A block holds the slots expected after its start and up to its end, whatever their
            // latency.
            let boundary = Nanos(expected.0 - 1 - (expected.0 - 1 - block_end.0) % BLOCK_LENGTH.0);
            let ended = end_block(buffers, boundary, wake.used(), began, &mut starvation);
            if ended.swap == BlockSwap::Swapped {
                block = buffers.current();
                (min, floor) = (Nanos(i64::MAX), Nanos(i64::MIN));
            }
            if ended.starving {
                (end.ended, loops_left) = (EndReason::Starving, 1);
            }
            block_end = boundary + BLOCK_LENGTH;
        }
        end.scheduled += 1;
        end.last = now;
        block.count(latency);
        if latency > floor || latency < min {
            (min, floor) = block.keep(LatencySample { latency, cycle: end.scheduled, time: now });
            if latency >= params.limit {
                (end.ended, loops_left) = (EndReason::Limit, 1);
            }
        }
        if latency >= params.threshold {
            buffers.late.push(end.scheduled, expected, now);
        }
        let cpu = cpu_reader.current();
        if cpu != params.cpu {
            note_migration(&mut end, cpu, now);
        }
        if schedule.may_be_past(now) {
            let skipped = schedule.skip_past(now, |first, spacing, n| {
                if W::COUNTS_MISSED {
                    block.count_missed(first, spacing, n);
                }
            });
            if W::COUNTS_MISSED {
                end.scheduled += skipped;
            }
        }
        loops_left -= 1;
        if stop.load(Relaxed) && loops_left > 0 {
            end.ended = EndReason::Stopped;
            return end;
        }
    }
    end
}

/// Outcome of a block's end.
pub struct BlockEnd {
    pub swap: BlockSwap,
    /// True if the run has to end.
    pub starving: bool,
}

/// Ends a block, once a second between two sleeps: the place for system calls.
#[cold]
#[inline(never)]
pub fn end_block(
    buffers: &CpuBuffers,
    boundary: Nanos,
    used: Nanos,
    began: Nanos,
    starvation: &mut StarvationGuard,
) -> BlockEnd {
    let swap = buffers.swap(boundary, used - began);
    BlockEnd { swap, starving: starvation.must_end(clock::monotonic(), used, buffers.consumed()) }
}

#[cold]
#[inline(never)]
pub fn note_migration(end: &mut LoopEnd, cpu: Cpu, now: Nanos) {
    if end.migrations == 0 {
        end.first_migration = (cpu, now);
    }
    end.migrations += 1;
}

#[cfg(test)]
mod tests {
    use super::super::block::{Drained, DrainedBlock};
    use super::*;

    /// Wake mechanism with given latencies: only their treatment in the loop is tested.
    struct Script<'a> {
        latencies: &'a [i64],
        at: usize,
    }

    impl Wake for Script<'_> {
        fn sleep_until(&mut self, _instant: Nanos) -> Sleep {
            self.at += 1;
            Sleep::Full
        }

        fn now(&self, expected: Nanos) -> Nanos {
            Nanos(expected.0 + self.latencies[self.at - 1])
        }
    }

    fn check(latencies: &[i64], params: LoopParams, end: Nanos) -> (LoopEnd, Vec<DrainedBlock>) {
        let buffers = CpuBuffers::new(0);
        buffers.begin(params.start);
        let stop = AtomicBool::new(false);
        let schedule = Schedule::<false>::new(params.start, Nanos(1_000), 0);
        let params = LoopParams { end, ..params };
        let end =
            run(&mut Script { latencies, at: 0 }, schedule, &params, &buffers, &CpuReader::new(), &stop);
        let mut blocks = Vec::new();
        let mut taken = DrainedBlock::default();
        if buffers.take(&mut taken) == Drained::Block {
            blocks.push(std::mem::take(&mut taken));
        }
        buffers.take_last(end.last, &mut taken);
        blocks.push(taken);
        (end, blocks)
    }

    fn params() -> LoopParams {
        LoopParams::unbounded(host::rt::current_cpu(), Nanos(0))
    }

    #[test]
    fn cycles_and_missed_slots_add_up_to_the_schedule() {
        // Slot 3 is 2.5 intervals late: slots 4 and 5 are missed, late by 1500 and 500 ns.
        let (end, blocks) = check(&[10, 20, 2_500, 30], LoopParams { loops: 4, ..params() }, Nanos(i64::MAX));
        assert_eq!((end.ended, end.scheduled), (EndReason::Loops, 6));
        let last = &blocks[0];
        assert_eq!((last.cycles, last.missed, last.sum), (4, 2, 2_560));
        assert_eq!(last.top[0], LatencySample { latency: Nanos(2_500), cycle: 3, time: Nanos(5_500) });
        assert_eq!(last.top[1].cycle, 6, "the slot after the missed ones keeps its number");
        assert_eq!(last.missed_rows, [(bucket_of(500), 1), (bucket_of(1_500), 1)]);
    }

    #[test]
    fn a_slot_expected_exactly_now_has_passed() {
        let (end, blocks) = check(&[1_000, 0], LoopParams { loops: 2, ..params() }, Nanos(i64::MAX));
        assert_eq!((end.scheduled, blocks[0].missed), (3, 1));
    }

    #[test]
    fn the_duration_holds_whole_slots_only() {
        let (end, blocks) = check(&[0; 10], params(), Nanos(5_999));
        assert_eq!((end.ended, end.scheduled, blocks[0].cycles), (EndReason::Duration, 5, 5));
    }

    #[test]
    fn the_limit_stops_immediately_and_keeps_its_sample() {
        let (end, blocks) =
            check(&[10, 99, 100, 5], LoopParams { limit: Nanos(100), ..params() }, Nanos(i64::MAX));
        assert_eq!((end.ended, end.scheduled), (EndReason::Limit, 3));
        assert_eq!(blocks[0].top[0].latency, Nanos(100));
    }

    #[test]
    fn wake_ups_over_the_threshold_are_handed_over_in_full() {
        let params = LoopParams { loops: 3, threshold: Nanos(50), ..params() };
        let buffers = CpuBuffers::new(8);
        buffers.begin(params.start);
        let schedule = Schedule::<false>::new(params.start, Nanos(1_000), 0);
        let mut script = Script { latencies: &[49, 50, 7], at: 0 };
        run(&mut script, schedule, &params, &buffers, &CpuReader::new(), &AtomicBool::new(false));
        let late = buffers.late.pop(Cpu(5)).expect("the second wake-up");
        assert_eq!((late.cycle, late.expected, late.actual), (2, Nanos(2_000), Nanos(2_050)));
        assert_eq!(buffers.late.pop(Cpu(5)), None);
    }

    #[test]
    fn of_several_reasons_to_end_the_gravest_counts() {
        let of = |ends: &[EndReason]| ends.iter().fold(None, |so_far, end| Some(end.decisive(so_far)));
        use EndReason::*;
        assert_eq!(of(&[Duration, Loops, Duration]), Some(Duration));
        assert_eq!(of(&[Stopped, Limit, Starving]), Some(Limit));
        assert_eq!(of(&[Stopped, Starving, Stopped]), Some(Starving));
        assert_eq!(
            (Stopped.document(true), Stopped.document(false), Starving.document(true)),
            (Ended::Signal, Ended::Error, Ended::Error)
        );
    }

    #[test]
    fn early_wake_ups_are_cycles_with_a_sign() {
        let (_, blocks) = check(&[-40, 7], LoopParams { loops: 2, ..params() }, Nanos(i64::MAX));
        assert_eq!((blocks[0].cycles, blocks[0].min, blocks[0].sum), (2, Nanos(-40), -33));
        assert_eq!(blocks[0].rows, [(0, 1), (bucket_of(7), 1)]);
    }

    #[test]
    fn a_slot_belongs_to_the_block_in_which_it_was_expected() {
        // Slot 2 is expected at the block's end and wakes after it; slot 3 is expected after it.
        let params = LoopParams { block_end: Nanos(2_000), loops: 3, ..params() };
        let (_, blocks) = check(&[10, 20, 30], params, Nanos(i64::MAX));
        assert_eq!((blocks[0].cycles, blocks[1].cycles), (2, 1));
        assert_eq!((blocks[0].end, blocks[1].start), (Nanos(2_000), Nanos(2_000)));
        assert_eq!(blocks[1].min, Nanos(30));
    }

    #[test]
    fn a_wake_up_elsewhere_is_noted() {
        let elsewhere = Cpu(host::rt::current_cpu().0 + 10_000);
        let (end, _) = check(&[1, 2], LoopParams { cpu: elsewhere, loops: 2, ..params() }, Nanos(i64::MAX));
        assert_eq!(end.migrations, 2);
    }

    fn bucket_of(ns: i64) -> usize {
        model::histogram::bucket_of(Nanos(ns))
    }
}
