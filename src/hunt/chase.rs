//! A hunt that follows somebody else's threads: no measuring thread, the trace itself tells how late they ran.

use std::collections::BTreeMap;

use super::arm::Arms;
use super::explainer::{Explainer, Late};
use super::found::Found;
use super::hunter::Wanted;
use super::scope::Scope;
use super::threshold::automatic;
use super::victims::Victim;
use super::watch::{Wakeup, Watch};
use crate::bundle::run::{Block, Integrity, Run};
use crate::bundle::time::wall_time;
use crate::error::{Exit, Outcome, Trouble};
use crate::host::rt::{self, Woken};
use crate::host::{Host, clock};
use crate::measure::block::{BLOCK, Sample, Taken};
use crate::measure::cost;
use crate::measure::hunter::{Catch, PULSE};
use crate::measure::sink::{Sink, Tick};
use crate::measure::total::{Total, block_line, fill_tail, levels};
use crate::measure::watch::{Steal, entry};
use crate::stats::histogram::{Counts, row_of};
use crate::text::several;
use crate::trace::event::{Raw, What};
use crate::units::{Cpu, CpuSet, Nanos};

/// Wake-ups from which a threshold is taken where none is given, and how long to wait for them.
const FIRST: u64 = 400;
const FIRST_WAIT: Nanos = Nanos(2_000_000_000);

/// `run.json` is replaced this often, in seconds.
const CHECKPOINT: u64 = 10;

/// What ends the chase, beside a signal and the end of all victims.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Length.
    pub duration: Option<Nanos>,
    /// A latency at which it stops.
    pub latency: Option<Nanos>,
    /// Wake-ups of all victims together.
    pub wakeups: Option<u64>,
}

/// The chase.
pub struct Chase {
    explainer: Explainer,
    victims: Vec<Victim>,
    watch: Watch,
    limits: Limits,
    over: Option<Nanos>,
    stacks: bool,
    /// Wake-ups before there was a threshold: counted, not looked at.
    heard: Counts,
    began: Nanos,
    /// What the housekeeping thread had run by then, by its own clock.
    used_before: Nanos,
    /// Events that are younger than what was read of the other CPUs wait here.
    waiting: Vec<Raw>,
    starts: Vec<(i32, u64, u64)>,
    learned: bool,
    seconds: BTreeMap<Cpu, Taken>,
    totals: Vec<Total>,
    wakeups: u64,
    limit_reached: bool,
}

impl Chase {
    /// Follows these threads.
    pub fn new(explainer: Explainer, victims: Vec<Victim>, limits: Limits, wanted: &Wanted) -> Chase {
        let futex = libc::SYS_futex;
        let watch = Watch::new(victims.iter().map(|victim| victim.thread), futex);
        Chase {
            explainer,
            victims,
            watch,
            limits,
            over: wanted.over,
            stacks: wanted.stacks,
            heard: Counts::default(),
            began: Nanos(0),
            used_before: Nanos(0),
            waiting: Vec::new(),
            starts: Vec::new(),
            learned: false,
            seconds: BTreeMap::new(),
            totals: Vec::new(),
            wakeups: 0,
            limit_reached: false,
        }
    }

    /// The spikes that the run lists; it is over.
    pub fn into_found(self) -> Found {
        self.explainer.into_found()
    }

    /// Runs until its limits, a signal, or the victims' end; what was seen is in the run.
    pub fn follow(
        &mut self,
        mut run: Run,
        host: &Host,
        housekeeping: &CpuSet,
        sink: &mut dyn Sink,
    ) -> Outcome<Run> {
        let failed = |what: &str| {
            let what = what.to_owned();
            let remedy = "run as root, or outside a filter of system calls";
            move |error: std::io::Error| Trouble::of_call(what, &error, Exit::Internal, remedy)
        };
        rt::block_signals().map_err(failed("cannot block signals"))?;
        // Whatever onbeat was started with, its own thread must not go before anybody.
        rt::give_way().map_err(failed("cannot take SCHED_OTHER"))?;
        rt::pin(housekeeping).map_err(failed("cannot move the housekeeping thread"))?;
        self.arm(&mut run)?;
        (self.began, self.used_before) = (clock::monotonic(), clock::thread_cpu());
        run.started = wall_time(self.began + clock::wall_offset());
        let mut next = self.began + BLOCK;
        let mut steal: Option<Steal> = None;
        let mut seconds = 0;
        run.ended = loop {
            let woken = rt::wait_until(clock::monotonic() + PULSE);
            self.pulse();
            let now = clock::monotonic();
            let over = self.limits.duration.is_some_and(|length| now - self.began >= length);
            if now >= next || over || woken == Woken::Stop {
                self.second(&mut run, &mut steal, sink);
                next = next + Nanos((now - next).0.max(0) / BLOCK.0 * BLOCK.0) + BLOCK;
                seconds += 1;
                if seconds % CHECKPOINT == 0 {
                    self.fill(&mut run, false);
                    self.tell(sink.checkpoint(&run), &mut run);
                }
            }
            let gone = !self.victims.iter().any(|victim| victim.lives(host));
            match (self.limit_reached, woken) {
                (true, _) => break "limit",
                (_, Woken::Stop) => break "signal",
                _ if self.limits.wakeups.is_some_and(|most| self.wakeups >= most) => break "loops",
                _ if over => break "duration",
                _ if gone => {
                    run.integrity.push(self.ended(now));
                    break "victim";
                }
                _ => {}
            }
        }
        .into();
        self.pulse();
        self.second(&mut run, &mut steal, sink);
        self.fill(&mut run, true);
        run.complete = true;
        Ok(run)
    }

    fn arm(&mut self, run: &mut Run) -> Outcome<()> {
        let threads = self.victims.iter().map(|victim| victim.thread).collect();
        let explainer = &mut self.explainer;
        explainer.recorder.scope = Scope::new(threads, rt::thread_id());
        explainer.arm(if self.stacks { Arms::Victims } else { Arms::VictimsBare }, run)?;
        if let Some(over) = self.over {
            explainer.set_threshold(over, "as asked".to_owned());
        }
        Ok(())
    }

    fn ended(&self, now: Nanos) -> Integrity {
        let detail = format!(
            "every thread that was followed has ended after {}: what was seen until then is kept",
            (now - self.began).spoken()
        );
        entry("victim", None, false, detail)
    }

    /// Reads what came, and follows the victims through it.
    fn pulse(&mut self) {
        let upto = clock::monotonic();
        let (watch, waiting, starts) = (&self.watch, &mut self.waiting, &mut self.starts);
        let learning = !self.learned;
        let (missing, reach) = self.explainer.recorder.take_seeing(&mut |event| {
            if let What::TimerStart { timer, function, .. } = event.what {
                if learning {
                    starts.push((event.pid, function, timer));
                }
            }
            if watch.wants(&event) {
                waiting.push(event);
            }
        });
        if missing {
            // A waking whose switch is lost would make the next switch a spike.
            self.waiting.clear();
            self.watch.forget();
            self.explainer.account.windows_lost += 1;
        }
        self.waiting.sort_by_key(|event| event.time);
        let ready = self.waiting.partition_point(|event| event.time <= upto.min(reach));
        let ready: Vec<Raw> = self.waiting.drain(..ready).collect();
        let wakeups: Vec<Wakeup> = ready.iter().filter_map(|event| self.watch.see(event)).collect();
        self.explainer.looked();
        let mut late = Vec::new();
        for wakeup in wakeups {
            if self.count(&wakeup) {
                let Wakeup { task, cpu, expected, actual } = wakeup;
                let catch = Catch { cpu, cycle: 0, expected, actual };
                late.push(Late { catch, cycle: None, victim: task, own: false });
            }
        }
        self.explainer.explain_worst(late);
        self.learn();
    }

    /// After a second of looking on, stacks are taken where the victims' own timers expire.
    fn learn(&mut self) {
        if self.learned || !self.stacks || clock::monotonic() - self.began < BLOCK || self.starts.is_empty() {
            return;
        }
        self.learned = true;
        let starts = std::mem::take(&mut self.starts);
        self.explainer.recorder.scope.learn(&starts);
        self.explainer.recorder.stacks_at_timers();
    }

    /// Counts a wake-up; whether it is a spike.
    fn count(&mut self, wakeup: &Wakeup) -> bool {
        let latency = wakeup.actual - wakeup.expected;
        self.wakeups += 1;
        let block = self.seconds.entry(wakeup.cpu).or_default();
        block.add(Sample { latency, cycle: block.cycles, time: wakeup.actual });
        self.limit_reached |= self.limits.latency.is_some_and(|limit| latency >= limit);
        self.threshold(latency).is_some_and(|over| latency >= over)
    }

    fn threshold(&mut self, latency: Nanos) -> Option<Nanos> {
        if let Some(over) = self.over {
            return Some(over);
        }
        self.heard.add(row_of(latency), 1);
        if self.wakeups >= FIRST || clock::monotonic() - self.began >= FIRST_WAIT {
            let (over, why) = automatic(&self.heard);
            let over = self.limits.latency.map_or(over, |limit| over.min(limit));
            self.over = Some(over);
            self.explainer.set_threshold(over, why.replace("before the run", "at its begin"));
        }
        None
    }

    fn second(&mut self, run: &mut Run, steal: &mut Option<Steal>, sink: &mut dyn Sink) {
        let (now, wall) = (clock::monotonic(), clock::wall_offset());
        for cpu in self.seconds.keys() {
            if !self.totals.iter().any(|total| total.cpu == *cpu) {
                self.totals.push(Total::new(*cpu, String::new(), Nanos(0), self.began, 0));
                *steal = None;
            }
        }
        self.totals.sort_by_key(|total| total.cpu);
        let cpus = self.totals.iter().map(|total| total.cpu);
        let steal = steal.get_or_insert_with(|| Steal::new(cpus, &run.host.virtualization));
        steal.read();
        let (mut blocks, mut tails): (Vec<Block>, Vec<_>) = (Vec::new(), Vec::new());
        for total in &mut self.totals {
            let Some(mut taken) = self.seconds.remove(&total.cpu) else { continue };
            (taken.start, taken.end) = (Nanos((now - BLOCK).0.max(self.began.0)), now);
            let mut line = block_line(total.cpu, &taken, &levels());
            line.steal_ns = steal.take(total.cpu);
            total.absorb(&taken, wall);
            blocks.push(line);
            let mut tail = Default::default();
            fill_tail(&mut tail, total.cpu, &taken, wall);
            tails.push(tail);
        }
        self.explainer.second(&blocks);
        let tick = Tick {
            blocks: &blocks,
            tails: &tails,
            totals: &self.totals,
            elapsed: now - self.began,
            duration: self.limits.duration,
        };
        let written = sink.second(&tick);
        self.tell(written, run);
    }

    fn tell(&self, written: Result<(), String>, run: &mut Run) {
        if let Err(what) = written {
            if !run.integrity.iter().any(|known| known.kind == "storage") {
                run.integrity.push(entry("storage", None, false, what));
            }
        }
    }

    fn fill(&mut self, run: &mut Run, last: bool) {
        let now = clock::monotonic();
        (run.elapsed_ns, run.checkpoint_mono_ns) = (Some(now - self.began), Some(now));
        run.cpus = self.totals.iter().map(Total::document).collect();
        for cpu in &mut run.cpus {
            // No schedule of ours: slots were neither kept nor missed.
            (cpu.interval_ns, cpu.until_mono_ns) = (None, Some(now));
        }
        run.plan.cpus = self.totals.iter().map(|total| total.cpu).collect();
        run.overhead.max_rss_kib = crate::host::peak_memory_kib();
        run.overhead.housekeeping_cpu_share =
            cost::share(clock::thread_cpu() - self.used_before, now - self.began);
        if last && self.over.is_none() {
            let why = format!(
                "{} in so short a time give none: name it with --over",
                several(self.wakeups, "wake-up", "wake-ups")
            );
            self.explainer.set_threshold(Nanos(0), why);
        }
        self.explainer.fill(run, last);
    }
}
