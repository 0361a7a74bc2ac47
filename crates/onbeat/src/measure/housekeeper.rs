//! Housekeeping thread during a run: takes blocks, adds them up, reads the watches, writes.
//!
//! It runs under SCHED_OTHER, off the measured CPUs if possible, and wakes once a second. While
//! samples are taken it unmaps no memory and reads nothing that interrupts another CPU.

use std::sync::atomic::Ordering;

use super::block::{BLOCK_LENGTH, Drained};
use super::cost;
use super::cycle::{EndReason, LoopEnd};
use super::hunter::Hunter;
use super::integrity::{self, entry};
use super::late::LateWakeup;
use super::open_run::OpenRun;
use super::overhead::OverheadCounters;
use super::shared::Shared;
use super::sink::{ClosedBlock, Progress, Sink, SpikeProgress};
use super::total::{Total, block_line, levels};
use super::watch::Watches;
use super::worker::{ReadyThread, Worker};
use crate::plan::MeasurePlan;
use host::clock;
use host::rt::{self, Usage, Woken};
use model::run::{Block, Run};
use model::text::several;
use model::units::Nanos;
use model::vocabulary::{Ended, IntegrityKind};
use model::wall_time::wall_time;

/// Interval between replacements of `run.json`, in blocks.
const CHECKPOINT_BLOCKS: u64 = 10;

/// Delay after a block's end, by which even a measuring thread that woke late has swapped it.
const AFTER_BLOCK: Nanos = Nanos(50_000_000);

/// Results of the last second. Both lists keep their buffers: freed memory may be unmapped, which
/// must not happen while samples count.
#[derive(Default)]
struct Second {
    levels: Vec<Nanos>,
    blocks: Vec<Block>,
    closed: Vec<ClosedBlock>,
}

impl Second {
    /// Place of the next block.
    fn next(&mut self) -> &mut ClosedBlock {
        let used = self.blocks.len();
        if self.closed.len() == used {
            self.closed.push(ClosedBlock::default());
        }
        &mut self.closed[used]
    }
}

/// State of the housekeeping thread during the run.
pub struct Housekeeper {
    start_at: Nanos,
    duration: Option<Nanos>,
    threads: Vec<ReadyThread>,
    totals: Vec<Total>,
    second: Second,
    watches: Watches,
    overhead: OverheadCounters,
    document: OpenRun,
    late: Vec<LateWakeup>,
    /// Spikes found by the hunter, for the screen.
    spikes: Option<SpikeProgress>,
}

impl Housekeeper {
    /// State before the start, with no blocks taken.
    pub fn new(
        plan: &MeasurePlan,
        threads: Vec<ReadyThread>,
        run: Run,
        core_types: &[String],
        workers: &[Worker],
    ) -> Housekeeper {
        let cpus = plan.cpus.iter().zip(workers).enumerate();
        let totals = cpus.map(|(index, (own, worker))| {
            let mut total = Total::of_plan(plan, own);
            total.core_type = core_types.get(index).cloned().unwrap_or_default();
            total.warmup = worker.warmup();
            total
        });
        let room = 2 * threads.len();
        let (blocks, closed) = (Vec::with_capacity(room), Vec::with_capacity(room));
        let mut overhead = OverheadCounters::default();
        overhead.start();
        Housekeeper {
            start_at: Nanos(0),
            duration: plan.duration,
            totals: totals.collect(),
            second: Second { levels: levels(), blocks, closed },
            watches: Watches::new(plan, &run.host),
            overhead,
            threads,
            document: OpenRun::new(run),
            late: Vec::new(),
            spikes: None,
        }
    }

    /// Sets the start on which the measuring threads have agreed, the time of slot 0.
    pub fn begin(&mut self, start_at: Nanos, plan: &MeasurePlan) {
        self.start_at = start_at;
        for (total, own) in self.totals.iter_mut().zip(&plan.cpus) {
            (total.start, total.until) = (start_at + own.offset, start_at + own.offset);
        }
        self.watches.start();
        self.document.run.started = wall_time(start_at + self.watches.wall_offset());
        self.overhead.start();
    }

    /// Works once a second until every thread has ended; true if a signal ended the run.
    pub fn run(
        &mut self,
        shared: &Shared,
        sink: &mut dyn Sink,
        hunter: &mut Option<&mut dyn Hunter>,
    ) -> bool {
        let mut signalled = false;
        let mut next = self.start_at + BLOCK_LENGTH + AFTER_BLOCK;
        let mut seconds = 0;
        loop {
            let poll = hunter.as_ref().map(|hunter| clock::monotonic() + hunter.poll_interval());
            let woken = rt::wait_until(poll.map_or(next, |poll| poll.min(next)));
            self.hand_over_late(hunter);
            if woken == Woken::Stop {
                signalled = true;
                shared.stop.store(true, Ordering::Relaxed);
            }
            if sink.ended_by_user() {
                shared.stop.store(true, Ordering::Relaxed);
            }
            if shared.all_have_ended(self.threads.len()) {
                return signalled;
            }
            if shared.stop.load(Ordering::Relaxed) {
                // A thread that sleeps for a long interval must not delay the others.
                self.threads.iter().for_each(|ready| rt::interrupt_sleep(ready.thread.id));
            }
            if woken != Woken::Time || clock::monotonic() < next {
                continue;
            }
            self.spikes = hunter.as_ref().and_then(|hunter| hunter.so_far());
            self.take_second(sink);
            if let Some(hunter) = hunter {
                hunter.second(&self.second.blocks);
            }
            seconds += 1;
            if seconds % CHECKPOINT_BLOCKS == 0 {
                self.fill_document();
                if let Some(hunter) = hunter {
                    hunter.fill(&mut self.document.run, false);
                }
                self.checkpoint(sink);
            }
            while next <= clock::monotonic() {
                next = next + BLOCK_LENGTH;
            }
        }
    }

    /// Hands the hunter the late wake-ups since the last poll.
    fn hand_over_late(&mut self, hunter: &mut Option<&mut dyn Hunter>) {
        let Some(hunter) = hunter else { return };
        self.late.clear();
        let mut lost = 0;
        for ReadyThread { thread, buffers } in &self.threads {
            let queue = &buffers.late;
            self.late.extend(std::iter::from_fn(|| queue.pop(thread.cpu)));
            lost += queue.lost();
        }
        hunter.on_spikes(&self.late, lost);
    }

    /// Takes the blocks that the measuring threads have handed over, and reads the watches.
    fn take_second(&mut self, sink: &mut dyn Sink) {
        self.watches.read(|what| self.document.note(what));
        self.second.blocks.clear();
        for index in 0..self.threads.len() {
            while self.threads[index].buffers.take(&mut self.second.next().block) == Drained::Block {
                self.add_block(index);
            }
        }
        self.hand_over(sink);
    }

    /// Adds the block that was taken last.
    fn add_block(&mut self, index: usize) {
        let (total, wall_offset) = (&mut self.totals[index], self.watches.wall_offset());
        let closed = self.second.next();
        (closed.cpu, closed.wall_offset) = (total.cpu, wall_offset);
        total.add_block(&closed.block, wall_offset);
        self.overhead.merged += closed.block.merged;
        let Second { levels, blocks, closed } = &mut self.second;
        let mut line = block_line(total.cpu, &closed[blocks.len()].block, levels);
        self.watches.fill(index, total.thread, &mut line);
        blocks.push(line);
    }

    fn hand_over(&mut self, sink: &mut dyn Sink) {
        let Second { blocks, closed, .. } = &self.second;
        let progress = Progress {
            blocks,
            closed: &closed[..blocks.len()],
            totals: &self.totals,
            elapsed: self.elapsed(),
            duration: self.duration,
            threads: &[],
            spikes: self.spikes.as_ref(),
        };
        if let Err(failure) = sink.second(&progress) {
            self.overhead.unwritten += blocks.len() as u64;
            self.document.note_storage(failure.message);
        }
    }

    fn checkpoint(&mut self, sink: &mut dyn Sink) {
        self.fill_document();
        if let Err(failure) = sink.checkpoint(&self.document.run) {
            self.document.note_storage(failure.message);
        }
    }

    fn elapsed(&self) -> Nanos {
        // Time since all CPUs are measured: with staggered starts the first begins earlier than the
        // last.
        let all = self.totals.iter().map(|total| total.start).max().unwrap_or(self.start_at);
        self.until().map_or(Nanos(0), |last| Nanos((last.0 - all.0).max(0)))
    }

    /// End of the last block.
    fn until(&self) -> Option<Nanos> {
        self.totals.iter().map(|total| total.until).max()
    }

    fn fill_document(&mut self) {
        let (elapsed, until) = (self.elapsed(), self.until());
        let run = &mut self.document.run;
        (run.checkpoint_mono_ns, run.elapsed_ns) = (until, Some(elapsed));
        run.cpus.resize_with(self.totals.len(), Default::default);
        for (cpu, total) in run.cpus.iter_mut().zip(&self.totals) {
            total.fill(cpu);
            cpu.until_mono_ns = Some(total.until);
            if run.plan.spins() {
                cpu.fill_lost();
            }
        }
        self.overhead.fill(&mut run.overhead, &run.cpus);
    }

    /// Takes the last blocks after the threads have ended, and closes the document.
    pub fn finish(
        mut self,
        ends: Vec<Option<(LoopEnd, Usage)>>,
        signalled: bool,
        sink: &mut dyn Sink,
        hunter: &mut Option<&mut dyn Hunter>,
    ) -> Run {
        self.hand_over_late(hunter);
        self.take_second(sink);
        if let Some(hunter) = hunter {
            hunter.second(&self.second.blocks);
        }
        self.second.blocks.clear();
        let mut ended = None;
        for (index, end) in ends.into_iter().enumerate() {
            match end {
                Some((end, usage)) => {
                    ended = Some(end.ended.decisive(ended));
                    self.take_last(index, &end, &usage);
                }
                None => {
                    let words = "its measuring thread died: its results up to then are stored";
                    let cpu = self.totals[index].bound_cpu();
                    self.document.note(entry(IntegrityKind::Thread, cpu, true, words));
                }
            }
        }
        self.hand_over(sink);
        if let Some(hunter) = hunter {
            hunter.second(&self.second.blocks);
            // The hunter's results refer to the sums of the whole run.
            self.fill_document();
            hunter.fill(&mut self.document.run, true);
        }
        self.close(ended, signalled)
    }

    /// Takes the last block of a thread that has ended, and the findings at its end.
    fn take_last(&mut self, index: usize, end: &LoopEnd, usage: &Usage) {
        let last = &mut self.second.next().block;
        self.threads[index].buffers.take_last(end.last, last);
        // Without a schedule, time that passed without a sample is a result too.
        let idle = self.totals[index].interval.0 == 0 && last.end > last.start;
        if last.cycles > 0 || idle {
            self.add_block(index);
        }
        let total = &mut self.totals[index];
        total.switches = Some((usage.voluntary_switches, usage.involuntary_switches));
        total.used = end.used;
        let cpu = total.bound_cpu();
        let end = &total.without_moves(end);
        if end.ended == EndReason::Starving {
            self.document.note(integrity::entry_of_starving(cpu));
        }
        for what in integrity::entries_of_end(cpu, end, usage, self.start_at) {
            self.document.note(what);
        }
        self.check_sums(index, end);
    }

    /// Checks that cycles + missed = scheduled, which the two sides count independently.
    fn check_sums(&mut self, index: usize, end: &LoopEnd) {
        let Total { cycles, missed, .. } = self.totals[index];
        if cycles + missed != end.scheduled {
            let detail = format!(
                "cycles ({cycles}) and missed slots ({missed}) do not add up to the {} scheduled slots: this \
                 is a bug in onbeat",
                end.scheduled
            );
            let cpu = self.totals[index].bound_cpu();
            self.document.note(entry(IntegrityKind::Sums, cpu, true, detail));
        }
    }

    fn close(mut self, ended: Option<EndReason>, signalled: bool) -> Run {
        self.watches.steal_entries().into_iter().for_each(|what| self.document.note(what));
        self.fill_document();
        // A thread that reads the clock without a pause is meant to use all of its CPU.
        if !self.document.run.plan.spins() {
            for what in cost::remarks(&self.document.run.cpus) {
                self.document.note(what);
            }
        }
        if self.overhead.merged > 0 {
            let detail = format!(
                "onbeat's own thread was late {}; the blocks of those seconds are merged, no sample is lost",
                several(self.overhead.merged, "time", "times")
            );
            self.document.note(entry(IntegrityKind::Housekeeping, None, false, detail));
        }
        self.document.close(ended.map_or(Ended::Error, |ended| ended.document(signalled)))
    }
}
