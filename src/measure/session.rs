//! The housekeeping thread: starts the measuring threads, takes their blocks once a second, watches, ends.
//!
//! It runs under SCHED_OTHER, off the measured CPUs where it can, and wakes once a second. While
//! samples count it unmaps no memory and reads nothing that interrupts another CPU.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, OnceLock};

use super::block::{BLOCK, Lane, Taken};
use super::cycle::{End, Ended};
use super::lane::{Ready, Shared, WARMUP, Worker};
use super::total::{Total, block_line, fill_tail, levels};
use super::watch::{self, Clocks, Online, Steal, StealSum, entry};
use crate::bundle::run::{Block, Integrity, Run};
use crate::bundle::tail::Tail;
use crate::bundle::time::wall_time;
use crate::error::{Outcome, Trouble};
use crate::host::rt::{self, Woken};
use crate::host::{self, Held};
use crate::plan::{Idle, Plan, expiry};
use crate::units::{CpuSet, Nanos, Policy};

/// `run.json` is replaced this often.
const CHECKPOINT_BLOCKS: u64 = 10;

/// Blocks are taken this long after their end, when even a late measuring thread has turned the page.
const AFTER_BLOCK: Nanos = Nanos(50_000_000);

/// Entries of integrity beyond this are counted, not kept.
const ENTRIES: usize = 100;

/// What the last second brought.
pub struct Tick<'a> {
    /// The blocks taken, for `blocks.jsonl`.
    pub blocks: &'a [Block],
    /// The same whole, for `tail`.
    pub tails: &'a [Tail],
    /// The sums so far.
    pub totals: &'a [Total],
    /// Time since slot 0.
    pub elapsed: Nanos,
    /// The planned length.
    pub duration: Option<Nanos>,
}

/// Where results go while the run is on.
pub trait Sink {
    /// Takes the blocks of the last second; an error says what is lost, and measuring goes on.
    fn second(&mut self, tick: &Tick) -> Result<(), String>;

    /// Takes all statistics so far; an error says what is lost, and measuring goes on.
    fn checkpoint(&mut self, run: &Run) -> Result<(), String>;
}

/// Runs the plan. `run` comes with the plan, the host and what was found before the start filled in.
///
/// Refuses when a thread cannot be had as planned; once slots count, it always returns what was measured.
pub fn measure(plan: Plan, mut run: Run, core_types: &[String], sink: &mut dyn Sink) -> Outcome<Run> {
    fn failed(what: &str) -> impl Fn(std::io::Error) -> Trouble + '_ {
        move |error| Trouble::internal(format!("{what}: {error}"))
    }
    rt::keep_heap();
    rt::block_signals().map_err(failed("cannot block signals"))?;
    rt::pin(&plan.housekeeping).map_err(failed("cannot move the housekeeping thread"))?;
    let _held = hold_idle(&plan, &mut run)?;
    let plan = Arc::new(plan);
    let shared = Arc::new(Shared {
        stop: AtomicBool::new(false),
        ended: AtomicUsize::new(0),
        gate: Barrier::new(plan.cpus.len() + 1),
        go: OnceLock::new(),
        housekeeper: rt::thread_id(),
    });
    let mut workers = Vec::with_capacity(plan.cpus.len());
    for index in 0..plan.cpus.len() {
        workers
            .push(Worker::start(&plan, index, &shared).map_err(failed("cannot start a measuring thread"))?);
    }
    shared.gate.wait();
    let lanes = match everybody_ready(&plan, &workers, &mut run) {
        Ok(lanes) => lanes,
        Err(trouble) => return Err(call_off(&shared, workers, trouble)),
    };
    if let Err(error) = rt::lock_touched() {
        let detail = format!(
            "the program's own pages are not locked ({error}): run as root or raise the limit of locked memory"
        );
        run.integrity.push(entry("memory-lock", None, false, detail));
    }
    run.cpus = plan
        .cpus
        .iter()
        .map(|own| Total::new(own.cpu, String::new(), own.interval, Nanos(0), WARMUP).document())
        .collect();
    if let Err(what) = sink.checkpoint(&run) {
        return Err(call_off(&shared, workers, Trouble::internal(what)));
    }
    let go = rt::monotonic() + Nanos(20_000_000);
    run.started = wall_time(go + rt::wall_offset());
    let _ = shared.go.set(Some(go));
    let mut keeper = Keeper::new(&plan, lanes, go, run, core_types);
    shared.gate.wait();
    let signalled = keeper.watch_over(&shared, sink);
    let ends: Vec<_> = workers.into_iter().map(Worker::join).collect();
    keeper.finish(ends, signalled, sink)
}

fn call_off(shared: &Shared, workers: Vec<Worker>, trouble: Trouble) -> Trouble {
    let _ = shared.go.set(None);
    shared.gate.wait();
    for worker in workers {
        worker.join();
    }
    trouble
}

/// Holds /dev/cpu_dma_latency at 0, unless the plan leaves the idle states alone.
///
/// Source: the kernel's Documentation/power/pm_qos_interface.rst; closing the file ends the request.
fn hold_idle(plan: &Plan, run: &mut Run) -> Outcome<Option<Held>> {
    if plan.idle == Idle::AsIs {
        return Ok(None);
    }
    let error = match host::hold("/dev/cpu_dma_latency", &0i32.to_ne_bytes()) {
        Ok(held) => return Ok(Some(held)),
        Err(error) => error,
    };
    if plan.idle_said {
        let message = format!("cannot hold /dev/cpu_dma_latency ({error}): run as root, or use --idle as-is");
        let refused = error.kind() == std::io::ErrorKind::PermissionDenied;
        return Err(if refused { Trouble::not_permitted(message) } else { Trouble::not_supported(message) });
    }
    run.plan.idle = "as-is".into();
    let detail =
        format!("/dev/cpu_dma_latency could not be held ({error}): idle states are as the system has them");
    run.integrity.push(entry("privilege", None, false, detail));
    Ok(None)
}

fn everybody_ready(plan: &Plan, workers: &[Worker], run: &mut Run) -> Outcome<Vec<(i32, Arc<Lane>)>> {
    let mut lanes = Vec::with_capacity(workers.len());
    let mut found: Vec<Ready> = Vec::with_capacity(workers.len());
    for (worker, own) in workers.iter().zip(&plan.cpus) {
        match worker.ready.get() {
            Some(Ok((ready, lane))) => {
                lanes.push((ready.thread, lane.clone()));
                found.push(ready.clone());
            }
            Some(Err(what)) => return Err(Trouble::not_supported(what.clone())),
            None => return Err(Trouble::internal(format!("the thread of cpu {} died", own.cpu))),
        }
    }
    run.overhead.clock_read_ns = found.iter().map(|ready| ready.clock_read).max();
    run.overhead.loop_ns = found.iter().map(|ready| ready.turn).max();
    if let Some(errno) = found.iter().find_map(|ready| ready.policy_refused) {
        note_policy_refused(plan, errno, run)?;
    }
    if let Some(errno) = found.iter().find_map(|ready| ready.lock_refused) {
        let error = std::io::Error::from_raw_os_error(errno);
        let detail = format!(
            "the loop's memory is not locked ({error}): run as root or raise the limit of locked memory"
        );
        run.integrity.push(entry("memory-lock", None, false, detail));
    }
    Ok(lanes)
}

fn note_policy_refused(plan: &Plan, errno: i32, run: &mut Run) -> Outcome<()> {
    let error = std::io::Error::from_raw_os_error(errno);
    let wanted = format!("SCHED_{} with priority {}", plan.policy.name().to_uppercase(), plan.priority);
    if plan.policy_said {
        return Err(Trouble::not_permitted(format!(
            "{wanted} is not permitted ({error}): run as root, raise the rtprio limit, or check the cgroup's cpu.rt_runtime_us; -p 0 measures under SCHED_OTHER"
        )));
    }
    run.plan.policy = Policy::Other.name().into();
    run.plan.priority = Some(0);
    run.plan.expiry = expiry(&run.host.preempt, plan.wake, Policy::Other).into();
    let detail = format!(
        "{wanted} is not permitted ({error}): measured under SCHED_OTHER, which says little about real-time tasks; run as root or raise the rtprio limit"
    );
    run.integrity.push(entry("privilege", None, false, detail));
    Ok(())
}

/// The housekeeping thread's state while the run is on.
struct Keeper {
    go: Nanos,
    duration: Option<Nanos>,
    measured: CpuSet,
    lanes: Vec<Arc<Lane>>,
    totals: Vec<Total>,
    until: Vec<Nanos>,
    levels: Vec<Nanos>,
    taken: Taken,
    blocks: Vec<Block>,
    tails: Vec<Tail>,
    clocks: Clocks,
    steal: Steal,
    steal_sums: Vec<StealSum>,
    online: Online,
    run: Run,
    entries_dropped: u64,
    joined: u64,
    unwritten: u64,
    switches_before: u64,
    threads: Vec<i32>,
}

impl Keeper {
    fn new(plan: &Plan, ready: Vec<(i32, Arc<Lane>)>, go: Nanos, run: Run, core_types: &[String]) -> Keeper {
        let (threads, lanes): (Vec<i32>, Vec<Arc<Lane>>) = ready.into_iter().unzip();
        let totals = plan.cpus.iter().enumerate().map(|(index, own)| {
            let core_type = core_types.get(index).cloned().unwrap_or_default();
            Total::new(own.cpu, core_type, own.interval, go + own.offset, WARMUP)
        });
        Keeper {
            go,
            duration: plan.duration,
            measured: plan.cpus.iter().map(|own| own.cpu).collect(),
            totals: totals.collect(),
            until: plan.cpus.iter().map(|own| go + own.offset).collect(),
            levels: levels(),
            taken: Taken::default(),
            blocks: Vec::with_capacity(2 * lanes.len()),
            tails: Vec::with_capacity(2 * lanes.len()),
            clocks: Clocks::read(),
            steal: Steal::new(plan.cpus.iter().map(|own| own.cpu), &run.host.virtualization),
            steal_sums: vec![StealSum::default(); lanes.len()],
            online: Online::new(),
            lanes,
            run,
            entries_dropped: 0,
            joined: 0,
            unwritten: 0,
            switches_before: own_switches(),
            threads,
        }
    }

    /// Once a second until every thread has ended; true if a signal ended the run.
    fn watch_over(&mut self, shared: &Shared, sink: &mut dyn Sink) -> bool {
        let mut signalled = false;
        let mut next = self.go + BLOCK + AFTER_BLOCK;
        let mut seconds = 0;
        loop {
            let woken = rt::wait_until(next);
            if woken == Woken::Stop {
                signalled = true;
                shared.stop.store(true, Ordering::Relaxed);
            }
            if shared.ended.load(Ordering::Acquire) == self.lanes.len() {
                return signalled;
            }
            if shared.stop.load(Ordering::Relaxed) {
                // Whoever sleeps through a long interval must not keep the others waiting.
                self.threads.iter().copied().for_each(rt::nudge);
            }
            if woken != Woken::Time {
                continue;
            }
            self.second(sink);
            seconds += 1;
            if seconds == 1 || seconds % CHECKPOINT_BLOCKS == 0 {
                self.checkpoint(sink);
            }
            while next <= rt::monotonic() {
                next = next + BLOCK;
            }
        }
    }

    /// Takes what the lanes have handed over, and looks around.
    fn second(&mut self, sink: &mut dyn Sink) {
        self.steal.read();
        let clocks = Clocks::read();
        if let Some(happened) = self.clocks.compare(clocks) {
            self.note(happened);
        }
        self.clocks = clocks;
        for lost in self.online.lost(&self.measured) {
            self.note(lost);
        }
        self.blocks.clear();
        for index in 0..self.lanes.len() {
            let mut taken = std::mem::take(&mut self.taken);
            while self.lanes[index].take(&mut taken) {
                self.absorb(index, &taken);
            }
            self.taken = taken;
        }
        self.hand_over(sink);
    }

    fn absorb(&mut self, index: usize, taken: &Taken) {
        let cpu = self.totals[index].cpu;
        let mut line = block_line(cpu, taken, &self.levels);
        line.steal_ns = self.steal.of(cpu);
        self.steal_sums[index].add(line.max_ns, line.steal_ns.unwrap_or_default());
        self.totals[index].absorb(taken, self.clocks.wall);
        self.until[index] = taken.end;
        self.joined += taken.joined;
        self.blocks.push(line);
        // Records are kept and filled again: what is freed while samples count may be unmapped.
        let used = self.blocks.len();
        if self.tails.len() < used {
            self.tails.push(Tail::default());
        }
        fill_tail(&mut self.tails[used - 1], cpu, taken, self.clocks.wall);
    }

    fn hand_over(&mut self, sink: &mut dyn Sink) {
        let tick = Tick {
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
        self.until.iter().max().map_or(Nanos(0), |last| *last - self.go)
    }

    fn fill_document(&mut self) {
        let elapsed = self.elapsed();
        self.run.checkpoint_mono_ns = Some(self.go + elapsed);
        self.run.elapsed_ns = Some(elapsed);
        self.run.cpus.clear();
        for (total, until) in self.totals.iter().zip(&self.until) {
            let mut cpu = total.document();
            cpu.until_mono_ns = Some(*until);
            self.run.cpus.push(cpu);
        }
        let overhead = &mut self.run.overhead;
        let seconds = (rt::monotonic() - self.go).as_secs();
        let switches = own_switches() - self.switches_before;
        overhead.housekeeping_wakeups_per_s =
            (seconds > 0.0).then(|| (switches as f64 / seconds * 100.0).round() / 100.0);
        overhead.max_rss_kib = Some(rt::max_rss_kib());
        overhead.blocks_joined = Some(self.joined);
        overhead.blocks_unwritten = Some(self.unwritten);
    }

    fn note(&mut self, what: Integrity) {
        if self.run.integrity.len() < ENTRIES {
            self.run.integrity.push(what);
        } else {
            self.entries_dropped += 1;
        }
    }

    /// The first trouble of a kind is said; the rest is counted in `blocks_unwritten`.
    fn note_storage(&mut self, what: String) {
        if !self.run.integrity.iter().any(|known| known.kind == "storage") {
            self.note(entry("storage", None, false, what));
        }
    }

    fn finish(
        mut self,
        ends: Vec<Option<(End, rt::Usage)>>,
        signalled: bool,
        sink: &mut dyn Sink,
    ) -> Outcome<Run> {
        self.second(sink);
        self.blocks.clear();
        let mut ended = None;
        for (index, end) in ends.into_iter().enumerate() {
            let cpu = self.totals[index].cpu;
            let Some((end, usage)) = end else {
                self.note(entry(
                    "thread",
                    Some(cpu),
                    true,
                    "its measuring thread died: what it had handed over is kept",
                ));
                continue;
            };
            let mut taken = std::mem::take(&mut self.taken);
            self.lanes[index].take_last(end.last, &mut taken);
            if taken.cycles > 0 {
                self.absorb(index, &taken);
            }
            self.taken = taken;
            ended = Some(graver(ended, end.ended));
            self.totals[index].switches = Some((usage.voluntary_switches, usage.involuntary_switches));
            for what in watch::entries_of_end(cpu, &end, &usage, self.go) {
                self.note(what);
            }
            self.check_sums(index, &end);
        }
        self.hand_over(sink);
        self.close(ended, signalled);
        Ok(self.run)
    }

    /// cycles + missed = scheduled, counted by the two sides independently.
    fn check_sums(&mut self, index: usize, end: &End) {
        let Total { cpu, cycles, missed, .. } = self.totals[index];
        if cycles + missed != end.scheduled {
            let detail = format!(
                "{cycles} cycles and {missed} missed slots are not the {} that were scheduled: this is a defect of onbeat",
                end.scheduled
            );
            self.note(entry("sums", Some(cpu), true, detail));
        }
    }

    fn close(&mut self, ended: Option<Ended>, signalled: bool) {
        for index in 0..self.totals.len() {
            if let Some(what) = self.steal_sums[index].entry(self.totals[index].cpu) {
                self.note(what);
            }
        }
        self.fill_document();
        if self.joined > 0 {
            let detail = format!(
                "onbeat's own thread came late {} times; the blocks of those seconds are joined, no sample is lost",
                self.joined
            );
            self.note(entry("housekeeping", None, false, detail));
        }
        if self.entries_dropped > 0 {
            let detail = format!("{} further entries are not listed", self.entries_dropped);
            self.run.integrity.push(entry("entries-dropped", None, false, detail));
        }
        self.run.complete = true;
        self.run.ended = match ended {
            Some(Ended::Limit) => "limit",
            _ if signalled => "signal",
            Some(Ended::Duration) => "duration",
            Some(Ended::Loops) => "loops",
            Some(Ended::Stopped) | None => "error",
        }
        .into();
    }
}

/// Of two reasons to end, the one that ended the run.
fn graver(a: Option<Ended>, b: Ended) -> Ended {
    match (a, b) {
        (Some(Ended::Limit), _) | (_, Ended::Limit) => Ended::Limit,
        (Some(Ended::Stopped), other) | (Some(other), Ended::Stopped) => other,
        _ => b,
    }
}

/// Wake-ups of this thread: an involuntary switch takes the CPU away and wakes nobody.
fn own_switches() -> u64 {
    let usage = rt::thread_usage();
    usage.voluntary_switches
}
