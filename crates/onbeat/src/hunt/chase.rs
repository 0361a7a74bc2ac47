//! A hunt that follows somebody else's threads: no measuring thread, the trace itself tells how late they ran.

use super::arm::Arms;
use super::blocks::Blocks;
use super::explainer::{Explainer, Late};
use super::found::Found;
use super::hunter::Wanted;
use super::losses::Losses;
use super::room::Room;
use super::scope::Scope;
use super::steal::StealByCpu;
use super::threshold::automatic;
use super::victims::{self, Victim};
use super::watch::{Wakeup, Watch};
use crate::measure::block::{BLOCK, Sample};
use crate::measure::cost;
use crate::measure::hunter::{Catch, PULSE};
use crate::measure::sink::{Sink, Tick};
use crate::measure::total::{Total, block_line, fill_tail, levels};
use crate::measure::watch::entry;
use host::rt::{self, Woken};
use host::{Host, clock};
use model::error::{Exit, Outcome, Trouble, run_with};
use model::histogram::{Counts, row_of};
use model::run::{self, Block, Integrity, Run};
use model::text::several;
use model::units::{CpuSet, Nanos};
use model::wall_time::wall_time;
use trace::event::{Raw, What};

/// Wake-ups from which a threshold is taken where none is given, and how long to wait for them.
const FIRST: u64 = 400;
const FIRST_WAIT: Nanos = Nanos(2_000_000_000);

/// How long what came before the end is still read. Who ends a run waits for that.
const PATIENCE: Nanos = Nanos(300_000_000);

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
    blocks: Blocks,
    /// What the housekeeping thread had run by then, by its own clock.
    used_before: Option<Nanos>,
    /// Events that are younger than what was read of the other CPUs wait here.
    waiting: Vec<Raw>,
    starts: Vec<(i32, u64, u64)>,
    learned: bool,
    totals: Vec<Total>,
    steal: StealByCpu,
    room: Room,
    wakeups: u64,
    limit_reached: bool,
    losses: Losses,
    /// Something that a run has to say though it is killed is new: a threshold, a loss.
    news: bool,
}

impl Chase {
    /// Follows these threads.
    pub fn new(
        explainer: Explainer,
        victims: Vec<Victim>,
        limits: Limits,
        wanted: &Wanted,
        room: Room,
        host: &run::Host,
    ) -> Chase {
        // A number of 32 bits on boards of 32 bits.
        #[allow(clippy::unnecessary_cast)]
        let futex = libc::SYS_futex as i64;
        let online = CpuSet::parse(&host.online).unwrap_or_default();
        Chase {
            explainer,
            watch: Watch::new(victims.iter().map(|victim| victim.thread), futex),
            victims,
            limits,
            over: wanted.over,
            stacks: wanted.stacks,
            heard: Counts::default(),
            blocks: Blocks::new(Nanos(0)),
            used_before: None,
            waiting: Vec::new(),
            starts: Vec::new(),
            learned: false,
            totals: Vec::new(),
            steal: StealByCpu::new(&online, &host.virtualization),
            room,
            wakeups: 0,
            limit_reached: false,
            losses: Losses::default(),
            news: false,
        }
    }

    /// The spikes that the run lists; it is over.
    pub fn into_found(self) -> Found {
        self.explainer.into_found()
    }

    /// Runs until its limits, a signal, or the victims' end; what was seen is in the run.
    pub fn follow(&mut self, mut run: Run, host: &Host, sink: &mut dyn Sink) -> Outcome<Run> {
        let failed = |what: &str| {
            let what = what.to_owned();
            let remedy = run_with("CAP_SYS_NICE") + ", or outside a filter of system calls";
            move |error: std::io::Error| Trouble::of_call(what, &error, Exit::Internal, &remedy)
        };
        rt::block_signals().map_err(failed("cannot block signals"))?;
        // Whatever onbeat was started with, its own thread must not go before anybody.
        rt::give_way().map_err(failed("cannot take SCHED_OTHER"))?;
        self.place(&mut run, host).map_err(failed("cannot move onbeat's own thread"))?;
        // Who has ended the run by now waits for no events to be switched on.
        if !rt::stop_waits() {
            self.arm(&mut run)?;
        }
        let began = clock::monotonic();
        self.used_before = clock::thread_cpu();
        (self.blocks, self.losses) = (Blocks::new(began), Losses::new(began));
        run.started = wall_time(began + clock::wall_offset());
        // A kill before the first checkpoint leaves a run that is known to follow threads.
        self.tell(sink.checkpoint(&run), &mut run);
        run.ended = self.look_on(&mut run, host, sink).into();
        if run.ended == "victim" {
            run.integrity.push(self.ended());
        } else if self.wakeups == 0 && !self.losses.any() {
            let watched = (self.blocks.until() - self.blocks.began()).spoken();
            let detail = format!("no thread that is followed woke up in {watched}: nothing was measured");
            run.integrity.push(entry("victim", None, false, detail));
        }
        self.fill(&mut run, true);
        run.complete = true;
        Ok(run)
    }

    /// Goes on until something ends it; which that was.
    fn look_on(&mut self, run: &mut Run, host: &Host, sink: &mut dyn Sink) -> &'static str {
        let began = self.blocks.began();
        let end = self.limits.duration.map(|length| began + length);
        let (mut next, mut seconds) = (began + BLOCK, 0);
        loop {
            let pulse = clock::monotonic() + PULSE;
            let woken = rt::wait_until(end.map_or(pulse, |end| pulse.min(end)));
            // Asked for before the events are read: what a thread did before it ended is read then.
            let gone = !self.victims.iter().any(|victim| victim.lives(host));
            let now = clock::monotonic();
            // What comes after the end is no part of the run.
            let upto = end.map_or(now, |end| now.min(end));
            let mut seen = self.pulse(upto);
            let reason = match (self.limit_reached, woken) {
                (true, _) => Some("limit"),
                (_, Woken::Stop) => Some("signal"),
                _ if self.limits.wakeups.is_some_and(|most| self.wakeups >= most) => Some("loops"),
                _ if end.is_some_and(|end| now >= end) => Some("duration"),
                _ if gone => Some("victim"),
                _ => None,
            };
            if let Some(reason) = reason {
                // Of a flood a look takes a part: the rest came within the run, too, as long as that is soon read.
                let patience = clock::monotonic() + PATIENCE;
                self.explainer.recorder.set_patience(patience);
                while seen < upto && clock::monotonic() < patience {
                    seen = self.pulse(upto);
                }
                self.losses.ended(upto);
                self.blocks.finish(upto);
                self.second(run, sink);
                return reason;
            }
            if now < next {
                continue;
            }
            self.blocks.turn(seen);
            self.second(run, sink);
            let moved = self.place(run, host);
            self.tell(moved.map_err(|error| format!("cannot move onbeat's own thread: {error}")), run);
            next = next + Nanos((now - next).0 / BLOCK.0 * BLOCK.0) + BLOCK;
            seconds += 1;
            if seconds % CHECKPOINT == 0 || std::mem::take(&mut self.news) {
                self.fill(run, false);
                self.tell(sink.checkpoint(run), run);
            }
        }
    }

    /// Keeps onbeat's own thread off the CPUs of those that are followed, wherever they may run by now.
    fn place(&mut self, run: &mut Run, host: &Host) -> std::io::Result<()> {
        let masks: Vec<CpuSet> =
            self.victims.iter().filter_map(|victim| victims::allowed(host, victim.thread)).collect();
        let Some(place) = self.room.place(&masks) else { return Ok(()) };
        rt::pin(&place.cpus)?;
        run.plan.housekeeping = place.cpus.iter().collect();
        run.integrity.extend(place.entry);
        Ok(())
    }

    fn arm(&mut self, run: &mut Run) -> Outcome<()> {
        let threads = self.victims.iter().map(|victim| victim.thread).collect();
        let explainer = &mut self.explainer;
        explainer.recorder.scope = Scope::new(threads, rt::thread_id());
        // Before it is armed: the account is in the run from then on, and all there is of it after a kill.
        match self.over {
            Some(over) => explainer.set_threshold(Some(over), "as asked".to_owned()),
            None => explainer.set_threshold(None, "the first wake-ups had not given one yet".to_owned()),
        }
        explainer.arm(if self.stacks { Arms::Victims } else { Arms::VictimsBare }, run)
    }

    fn ended(&self) -> Integrity {
        let after = (self.blocks.until() - self.blocks.began()).spoken();
        let kept =
            if self.wakeups > 0 { "what was seen until then is kept" } else { "no wake-up was recorded" };
        let detail = format!("every thread that was followed has ended after {after}: {kept}");
        entry("victim", None, false, detail)
    }

    /// Reads what came, and follows the victims through it; up to when that was all.
    fn pulse(&mut self, upto: Nanos) -> Nanos {
        let (watch, waiting, starts) = (&self.watch, &mut self.waiting, &mut self.starts);
        let learning = self.stacks && !self.learned;
        let (gap, reach) = self.explainer.recorder.take_seeing(&mut |event| {
            if let What::TimerStart { timer, function, .. } = event.what {
                if learning {
                    starts.push((event.pid, function, timer));
                }
            }
            if watch.wants(&event) {
                waiting.push(event);
            }
        });
        if let Some(gap) = gap {
            self.news |= !self.losses.any();
            self.losses.missed(gap);
            self.watch.forget();
        }
        // A waking whose switch is lost would make the next switch a spike. Of a CPU that lags behind, what comes later may
        // still lie before the gap.
        let gap = self.losses.gap();
        self.waiting.retain(|event| event.time >= gap);
        self.waiting.sort_by_key(|event| event.time);
        let seen = upto.min(reach);
        self.losses.looked(seen);
        let ready = self.waiting.partition_point(|event| event.time <= seen);
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
        seen
    }

    /// After a second of looking on, stacks are taken where the victims' own timers expire.
    fn learn(&mut self) {
        if self.learned
            || !self.stacks
            || clock::monotonic() - self.blocks.began() < BLOCK
            || self.starts.is_empty()
        {
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
        self.blocks.add(wakeup.cpu, Sample { latency, cycle: 0, time: wakeup.actual });
        self.limit_reached |= self.limits.latency.is_some_and(|limit| latency >= limit);
        self.threshold(latency).is_some_and(|over| latency >= over)
    }

    fn threshold(&mut self, latency: Nanos) -> Option<Nanos> {
        if let Some(over) = self.over {
            return Some(over);
        }
        self.heard.add(row_of(latency), 1);
        let wait = self.limits.duration.map_or(FIRST_WAIT, |length| Nanos(length.0 / 4).min(FIRST_WAIT));
        if self.wakeups >= FIRST || clock::monotonic() - self.blocks.began() >= wait {
            let (over, why) = automatic(&self.heard);
            let over = self.limits.latency.map_or(over, |limit| over.min(limit));
            (self.over, self.news) = (Some(over), true);
            self.explainer.set_threshold(Some(over), why.replace("before the run", "at its begin"));
        }
        None
    }

    /// Hands over the blocks that were closed.
    fn second(&mut self, run: &mut Run, sink: &mut dyn Sink) {
        let wall = clock::wall_offset();
        let (mut blocks, mut tails): (Vec<Block>, Vec<_>) = (Vec::new(), Vec::new());
        self.steal.read();
        for (cpu, taken) in self.blocks.take() {
            let mut line = block_line(cpu, &taken, &levels());
            line.missed = None;
            line.steal_ns = self.steal.take(cpu, taken.cycles == 0 && taken.start == self.blocks.began());
            let at = self.totals.partition_point(|total| total.cpu < cpu);
            if self.totals.get(at).is_none_or(|total| total.cpu != cpu) {
                let began = self.blocks.began();
                self.totals.insert(at, Total::new(cpu, String::new(), Nanos(0), began, 0));
            }
            self.totals[at].absorb(&taken, wall);
            blocks.push(line);
            let mut tail = Default::default();
            fill_tail(&mut tail, cpu, &taken, wall);
            tails.push(tail);
        }
        self.steal.set_aside(self.totals.iter().map(|total| total.cpu));
        self.explainer.second(&blocks);
        let tick = Tick {
            blocks: &blocks,
            tails: &tails,
            totals: &self.totals,
            elapsed: self.blocks.until() - self.blocks.began(),
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
        let until = self.blocks.until();
        (run.elapsed_ns, run.checkpoint_mono_ns) = (Some(until - self.blocks.began()), Some(until));
        run.cpus = self.totals.iter().map(Total::document).collect();
        run.cpus.iter_mut().for_each(|cpu| cpu.until_mono_ns = Some(until));
        run.plan.cpus = self.totals.iter().map(|total| total.cpu).collect();
        run.overhead.max_rss_kib = host::peak_memory_kib();
        let span = clock::monotonic() - self.blocks.began();
        run.overhead.housekeeping_cpu_share =
            cost::share_between(self.used_before, clock::thread_cpu(), span);
        if last && self.over.is_none() {
            let why = format!(
                "{} in so short a time give none: name it with --over",
                several(self.wakeups, "wake-up", "wake-ups")
            );
            self.explainer.set_threshold(None, why);
        }
        self.losses.tell(run);
        self.explainer.account.looks_lost = self.losses.looks;
        self.explainer.fill(run, last);
    }
}
