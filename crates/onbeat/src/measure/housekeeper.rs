//! The housekeeping thread's work while the run is on: takes blocks, adds up, watches, hands over.
//!
//! It runs under SCHED_OTHER, off the measured CPUs where it can, and wakes once a second. While
//! samples count it unmaps no memory and reads nothing that interrupts another CPU.

use model::vocabulary::{Ended, IntegrityKind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::block::{BLOCK_LENGTH, CpuBuffers, DrainedBlock};
use super::cost;
use super::cycle::{EndReason, LoopEnd};
use super::hunter::{Hunter, LateWakeup, POLL_INTERVAL};
use super::integrity::{self, Clocks, Online, Steal, StealSummary, entry};
use super::interrupts::Interrupts;
use super::sink::{Progress, Sink};
use super::total::{Total, block_line, fill_tail, levels};
use super::worker::Shared;
use crate::plan::MeasurePlan;
use bundle::tail::Tail;
use host::rt::{self, Woken};
use host::{self, clock};
use model::error::Outcome;
use model::run::{Block, Integrity, Run};
use model::text::several;
use model::units::{CpuSet, Nanos};
use model::wall_time::wall_time;

/// `run.json` is replaced this often.
const CHECKPOINT_BLOCKS: u64 = 10;

/// Blocks are taken this long after their end, when even a late measuring thread has turned the page.
const AFTER_BLOCK: Nanos = Nanos(50_000_000);

/// Entries of integrity beyond this are counted, not kept.
const MAX_ENTRIES: usize = 100;

/// The housekeeping thread's state while the run is on.
pub struct Housekeeper {
    go: Nanos,
    duration: Option<Nanos>,
    measured: CpuSet,
    buffers: Vec<Arc<CpuBuffers>>,
    totals: Vec<Total>,
    until: Vec<Nanos>,
    levels: Vec<Nanos>,
    taken: DrainedBlock,
    blocks: Vec<Block>,
    tails: Vec<Tail>,
    clocks: Clocks,
    steal: Steal,
    steal_summaries: Vec<StealSummary>,
    online: Online,
    irqs: Interrupts,
    run: Run,
    entries_dropped: u64,
    merged: u64,
    unwritten: u64,
    switches_before: u64,
    /// When and how much this thread had run by its own clock; none where that clock cannot be read.
    used_before: (Nanos, Option<Nanos>),
    threads: Vec<i32>,
    late: Vec<LateWakeup>,
}

impl Housekeeper {
    /// Nothing taken yet, and no start yet.
    pub fn new(
        plan: &MeasurePlan,
        ready: Vec<(i32, Arc<CpuBuffers>)>,
        run: Run,
        core_types: &[String],
        warmups: &[u64],
    ) -> Housekeeper {
        let (threads, buffers): (Vec<i32>, Vec<Arc<CpuBuffers>>) = ready.into_iter().unzip();
        let totals = plan.cpus.iter().enumerate().map(|(index, own)| {
            let core_type = core_types.get(index).cloned().unwrap_or_default();
            Total::new(own.cpu, core_type, own.interval, Nanos(0), warmups.get(index).copied().unwrap_or(0))
        });
        Housekeeper {
            go: Nanos(0),
            duration: plan.duration,
            measured: plan.cpus.iter().map(|own| own.cpu).collect(),
            totals: totals.collect(),
            until: vec![Nanos(0); buffers.len()],
            levels: levels(),
            taken: DrainedBlock::default(),
            blocks: Vec::with_capacity(2 * buffers.len()),
            tails: Vec::with_capacity(2 * buffers.len()),
            clocks: Clocks::read(),
            steal: Steal::new(plan.cpus.iter().map(|own| own.cpu), &run.host.virtualization),
            steal_summaries: vec![StealSummary::default(); buffers.len()],
            online: Online::new(),
            irqs: Interrupts::new(plan),
            buffers,
            run,
            entries_dropped: 0,
            merged: 0,
            unwritten: 0,
            switches_before: own_switches(),
            used_before: (clock::monotonic(), clock::thread_cpu()),
            threads,
            late: Vec::new(),
        }
    }

    /// The measuring threads have agreed on a start: slot 0 of the first CPU is at `go`.
    pub fn begin(&mut self, go: Nanos, plan: &MeasurePlan) {
        self.go = go;
        for (index, own) in plan.cpus.iter().enumerate() {
            self.totals[index].start = go + own.offset;
            self.until[index] = go + own.offset;
        }
        self.clocks = Clocks::read();
        self.run.started = wall_time(go + self.clocks.wall);
        self.switches_before = own_switches();
        self.used_before = (clock::monotonic(), clock::thread_cpu());
    }

    /// Once a second until every thread has ended; true if a signal ended the run.
    pub fn run(
        &mut self,
        shared: &Shared,
        sink: &mut dyn Sink,
        hunter: &mut Option<&mut dyn Hunter>,
    ) -> bool {
        let mut signalled = false;
        let mut next = self.go + BLOCK_LENGTH + AFTER_BLOCK;
        let mut seconds = 0;
        loop {
            let poll = hunter.is_some().then(|| clock::monotonic() + POLL_INTERVAL);
            let woken = rt::wait_until(poll.map_or(next, |poll| poll.min(next)));
            self.look_for_late(hunter);
            if woken == Woken::Stop {
                signalled = true;
                shared.stop.store(true, Ordering::Relaxed);
            }
            if shared.all_have_ended(self.buffers.len()) {
                return signalled;
            }
            if shared.stop.load(Ordering::Relaxed) {
                // Whoever sleeps through a long interval must not keep the others waiting.
                self.threads.iter().copied().for_each(rt::interrupt_sleep);
            }
            if woken != Woken::Time || clock::monotonic() < next {
                continue;
            }
            self.second(sink);
            if let Some(hunter) = hunter {
                hunter.second(&self.blocks);
            }
            seconds += 1;
            if seconds % CHECKPOINT_BLOCKS == 0 {
                if let Some(hunter) = hunter {
                    hunter.fill(&mut self.run, false);
                }
                self.checkpoint(sink);
            }
            while next <= clock::monotonic() {
                next = next + BLOCK_LENGTH;
            }
        }
    }

    /// Hands the hunter what was caught since the last look.
    fn look_for_late(&mut self, hunter: &mut Option<&mut dyn Hunter>) {
        let Some(hunter) = hunter else { return };
        self.late.clear();
        let mut lost = 0;
        for (index, buffers) in self.buffers.iter().enumerate() {
            let cpu = self.totals[index].cpu;
            self.late.extend(std::iter::from_fn(|| buffers.late.pop(cpu)));
            lost += buffers.late.lost();
        }
        hunter.on_spikes(&self.late, lost);
    }

    /// Takes what the buffers have handed over, and looks around.
    fn second(&mut self, sink: &mut dyn Sink) {
        self.steal.read();
        self.irqs.read();
        let clocks = Clocks::read();
        if let Some(happened) = self.clocks.compare(clocks) {
            self.note(happened);
        }
        self.clocks = clocks;
        for lost in self.online.lost(&self.measured) {
            self.note(lost);
        }
        self.blocks.clear();
        for index in 0..self.buffers.len() {
            let mut taken = std::mem::take(&mut self.taken);
            while self.buffers[index].take(&mut taken) {
                self.absorb(index, &taken);
            }
            self.taken = taken;
        }
        self.hand_over(sink);
    }

    fn absorb(&mut self, index: usize, taken: &DrainedBlock) {
        let cpu = self.totals[index].cpu;
        let mut line = block_line(cpu, taken, &self.levels);
        line.steal_ns = self.steal.take(cpu);
        line.irqs = self.irqs.take(cpu);
        self.steal_summaries[index].add(line.max_ns, line.steal_ns.unwrap_or_default());
        self.totals[index].absorb(taken, self.clocks.wall);
        self.until[index] = taken.end;
        self.merged += taken.merged;
        self.blocks.push(line);
        // Records are kept and filled again: what is freed while samples count may be unmapped.
        let used = self.blocks.len();
        if self.tails.len() < used {
            self.tails.push(Tail::default());
        }
        fill_tail(&mut self.tails[used - 1], cpu, taken, self.clocks.wall);
    }

    fn hand_over(&mut self, sink: &mut dyn Sink) {
        let tick = Progress {
            blocks: &self.blocks,
            tails: &self.tails[..self.blocks.len()],
            totals: &self.totals,
            elapsed: self.elapsed(),
            duration: self.duration,
        };
        if let Err(what) = sink.second(&tick) {
            self.unwritten += self.blocks.len() as u64;
            self.note_storage(what);
        }
    }

    fn checkpoint(&mut self, sink: &mut dyn Sink) {
        self.fill_document();
        if let Err(what) = sink.checkpoint(&self.run) {
            self.note_storage(what);
        }
    }

    fn elapsed(&self) -> Nanos {
        // From when all CPUs are measured: with staggered starts the first begins earlier than the last.
        let all = self.totals.iter().map(|total| total.start).max().unwrap_or(self.go);
        self.until.iter().max().map_or(Nanos(0), |last| Nanos((last.0 - all.0).max(0)))
    }

    fn fill_document(&mut self) {
        let elapsed = self.elapsed();
        self.run.checkpoint_mono_ns = self.until.iter().max().copied();
        self.run.elapsed_ns = Some(elapsed);
        self.run.cpus.resize_with(self.totals.len(), Default::default);
        for ((cpu, total), until) in self.run.cpus.iter_mut().zip(&self.totals).zip(&self.until) {
            total.fill(cpu);
            cpu.until_mono_ns = Some(*until);
        }
        let overhead = &mut self.run.overhead;
        overhead.cpu_share = self.run.cpus.iter().filter_map(|cpu| cpu.cpu_share).reduce(f64::max);
        // Not from `go`, which lies ahead of the start of both counts.
        let (since, used) = self.used_before;
        let span = clock::monotonic() - since;
        overhead.housekeeping_cpu_share = cost::share_between(used, clock::thread_cpu(), span);
        let seconds = span.as_secs();
        let switches = own_switches().saturating_sub(self.switches_before);
        overhead.housekeeping_wakeups_per_s =
            (seconds >= 1.0).then(|| (switches as f64 / seconds * 100.0).round() / 100.0);
        overhead.max_rss_kib = host::peak_memory_kib();
        overhead.blocks_joined = Some(self.merged);
        overhead.blocks_unwritten = Some(self.unwritten);
    }

    fn note(&mut self, what: Integrity) {
        if self.run.integrity.len() < MAX_ENTRIES {
            self.run.integrity.push(what);
        } else {
            self.entries_dropped += 1;
        }
    }

    /// The first trouble of a kind is said; the rest is counted in `blocks_unwritten`.
    fn note_storage(&mut self, what: String) {
        if !self.run.integrity.iter().any(|known| known.kind == IntegrityKind::Storage) {
            self.note(entry(IntegrityKind::Storage, None, false, what));
        }
    }

    /// Takes what is left after the threads have ended, and closes the document.
    pub fn finish(
        mut self,
        ends: Vec<Option<(LoopEnd, rt::Usage)>>,
        signalled: bool,
        sink: &mut dyn Sink,
        hunter: &mut Option<&mut dyn Hunter>,
    ) -> Outcome<Run> {
        self.look_for_late(hunter);
        self.second(sink);
        if let Some(hunter) = hunter {
            hunter.second(&self.blocks);
        }
        self.blocks.clear();
        let mut ended = None;
        for (index, end) in ends.into_iter().enumerate() {
            let cpu = self.totals[index].cpu;
            let Some((end, usage)) = end else {
                self.note(entry(
                    IntegrityKind::Thread,
                    Some(cpu),
                    true,
                    "its measuring thread died: what it had handed over is kept",
                ));
                continue;
            };
            let mut taken = std::mem::take(&mut self.taken);
            self.buffers[index].take_last(end.last, &mut taken);
            if taken.cycles > 0 {
                self.absorb(index, &taken);
            }
            self.taken = taken;
            ended = Some(end.ended.decisive(ended));
            self.totals[index].switches = Some((usage.voluntary_switches, usage.involuntary_switches));
            self.totals[index].used = end.used;
            if end.ended == EndReason::Starving {
                self.note(integrity::entry_of_starving(cpu));
            }
            for what in integrity::entries_of_end(cpu, &end, &usage, self.go) {
                self.note(what);
            }
            self.check_sums(index, &end);
        }
        self.hand_over(sink);
        if let Some(hunter) = hunter {
            hunter.second(&self.blocks);
            hunter.fill(&mut self.run, true);
        }
        self.close(ended, signalled);
        Ok(self.run)
    }

    /// cycles + missed = scheduled, counted by the two sides independently.
    fn check_sums(&mut self, index: usize, end: &LoopEnd) {
        let Total { cpu, cycles, missed, .. } = self.totals[index];
        if cycles + missed != end.scheduled {
            let detail = format!(
                "cycles ({cycles}) and missed slots ({missed}) are not the {} that were scheduled: this is a defect of onbeat",
                end.scheduled
            );
            self.note(entry(IntegrityKind::Sums, Some(cpu), true, detail));
        }
    }

    fn close(&mut self, ended: Option<EndReason>, signalled: bool) {
        for index in 0..self.totals.len() {
            if let Some(what) = self.steal_summaries[index].entry(self.totals[index].cpu) {
                self.note(what);
            }
        }
        self.fill_document();
        for what in cost::remarks(&self.run.cpus) {
            self.note(what);
        }
        if self.merged > 0 {
            let detail = format!(
                "onbeat's own thread came late {}; the blocks of those seconds are joined, no sample is lost",
                several(self.merged, "time", "times")
            );
            self.note(entry(IntegrityKind::Housekeeping, None, false, detail));
        }
        if self.entries_dropped > 0 {
            let detail =
                format!("not listed: {}", several(self.entries_dropped, "further entry", "further entries"));
            self.run.integrity.push(entry(IntegrityKind::EntriesDropped, None, false, detail));
        }
        self.run.complete = true;
        self.run.ended = ended.map_or(Ended::Error, |ended| ended.document(signalled)).into();
    }
}

/// Wake-ups of this thread: an involuntary switch takes the CPU away and wakes nobody.
fn own_switches() -> u64 {
    let usage = rt::thread_usage();
    usage.voluntary_switches
}
