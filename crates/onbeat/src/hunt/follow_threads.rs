//! A hunt that follows threads of other programs: there is no measuring thread, the trace shows how
//! late they ran.

use super::explainer::{Explainer, LateTask};
use super::followed_blocks::FollowedBlocks;
use super::followed_cpus::FollowedCpus;
use super::followed_events::FollowedEvents;
use super::found_spikes::FoundSpikes;
use super::hunter::SpikeOptions;
use super::losses::Losses;
use super::placement::HousekeepingPlacement;
use super::source::RecordingLevel;
use super::threshold::automatic;
use super::victims::{self, Victim};
use super::wakeups::{Wakeup, WakeupTracker};
use crate::measure::block::{BLOCK_LENGTH, LatencySample};
use crate::measure::cost;
use crate::measure::hunter::POLL_INTERVAL;
use crate::measure::integrity::entry;
use crate::measure::late::LateWakeup;
use crate::measure::sink::{Progress, Sink};
use host::rt::{self, Woken};
use host::{MachineFiles, clock};
use model::error::{Exit, Failure, Result, run_with};
use model::histogram::{Counts, bucket_of};
use model::run::{self, Integrity, Run};
use model::text::several;
use model::units::{CpuSet, Nanos};
use model::vocabulary::{Ended, IntegrityKind};
use model::wall_time::wall_time;

/// Wake-ups from which a threshold is taken where none is given, and how long to wait for them.
const FIRST_WAKEUPS: u64 = 400;
const MAX_FIRST_WAIT: Nanos = Nanos(2_000_000_000);

/// How long what came before the end is still read: the time that Ctrl-C takes at most.
const MAX_LATE_READING: Nanos = Nanos(300_000_000);

/// `run.json` is replaced this often, in seconds.
const CHECKPOINT_SECONDS: u64 = 10;

/// What ends the hunt, other than a signal and the end of all victims.
#[derive(Clone, Copy, Debug)]
pub struct FollowLimits {
    pub duration: Option<Nanos>,
    /// A latency at which it stops.
    pub latency: Option<Nanos>,
    /// Wake-ups of all victims together.
    pub wakeups: Option<u64>,
}

/// A hunt that follows threads of other programs.
pub struct FollowThreads {
    explainer: Explainer,
    victims: Vec<Victim>,
    events: FollowedEvents,
    limits: FollowLimits,
    threshold: Option<Nanos>,
    stacks: bool,
    /// Wake-ups before there was a threshold.
    first_counts: Counts,
    cpus: FollowedCpus,
    /// CPU time of the housekeeping thread until then.
    used_before: Option<Nanos>,
    placement: HousekeepingPlacement,
    wakeups: u64,
    limit_reached: bool,
    /// A threshold or a loss is new: a run that is killed has to have it.
    checkpoint_due: bool,
}

impl FollowThreads {
    pub fn new(
        explainer: Explainer,
        victims: Vec<Victim>,
        limits: FollowLimits,
        wanted: &SpikeOptions,
        placement: HousekeepingPlacement,
        host: &run::Host,
    ) -> FollowThreads {
        // A number of 32 bits on boards of 32 bits.
        #[allow(clippy::unnecessary_cast)]
        let futex = libc::SYS_futex as i64;
        let tracker = WakeupTracker::new(victims.iter().map(|victim| victim.thread), futex);
        let online = CpuSet::parse(&host.online).unwrap_or_default();
        FollowThreads {
            explainer,
            events: FollowedEvents::new(tracker, wanted.stacks),
            victims,
            limits,
            threshold: wanted.over,
            stacks: wanted.stacks,
            first_counts: Counts::default(),
            cpus: FollowedCpus::new(&online, &host.virtualization),
            used_before: None,
            placement,
            wakeups: 0,
            limit_reached: false,
            checkpoint_due: false,
        }
    }

    /// The spikes that the run lists; it is over.
    pub fn into_spikes(self) -> FoundSpikes {
        self.explainer.into_spikes()
    }

    /// Runs until its limits, a signal, or the victims' end; what was seen is in the run.
    pub fn run(&mut self, mut run: Run, host: &MachineFiles, sink: &mut dyn Sink) -> Result<Run> {
        let failed = |what: &str| {
            let what = what.to_owned();
            let remedy = run_with("CAP_SYS_NICE") + ", or outside a filter of system calls";
            move |error: std::io::Error| Failure::of_call(what, &error, Exit::Internal, &remedy)
        };
        rt::block_signals().map_err(failed("cannot block signals"))?;
        // Whatever policy onbeat was started with, its own thread must not run at real-time
        // priority.
        rt::leave_real_time().map_err(failed("cannot take SCHED_OTHER"))?;
        self.place(&mut run, host).map_err(failed("cannot move onbeat's own thread"))?;
        // After Ctrl-C no events are switched on any more.
        if !rt::stop_pending() {
            self.arm(&mut run)?;
        }
        let began = clock::monotonic();
        self.used_before = clock::thread_cpu();
        self.cpus.blocks = FollowedBlocks::new(began);
        self.events.losses = Losses::new(began);
        run.started = wall_time(began + clock::wall_offset());
        // A kill before the first checkpoint leaves a run that is known to follow threads.
        self.note_storage(sink.checkpoint(&run), &mut run);
        run.ended = self.watch_until_end(&mut run, host, sink).into();
        if run.ended == Ended::Victim {
            run.integrity.push(self.ended());
        } else if self.wakeups == 0 && !self.events.losses.any() {
            let watched = self.cpus.elapsed().spoken();
            let detail = format!("no thread that is followed woke up in {watched}: nothing was measured");
            run.integrity.push(entry(IntegrityKind::Victim, None, false, detail));
        }
        self.fill(&mut run, true);
        run.complete = true;
        Ok(run)
    }

    /// Polls until something ends the hunt; returns what.
    fn watch_until_end(&mut self, run: &mut Run, host: &MachineFiles, sink: &mut dyn Sink) -> Ended {
        let began = self.cpus.blocks.began();
        let end = self.limits.duration.map(|length| began + length);
        let (mut next, mut seconds) = (began + BLOCK_LENGTH, 0);
        loop {
            let poll = clock::monotonic() + POLL_INTERVAL;
            let woken = rt::wait_until(end.map_or(poll, |end| poll.min(end)));
            // Checked before the events are read: what a thread did before it ended is read then.
            let gone = !self.victims.iter().any(|victim| victim.is_alive(host));
            let now = clock::monotonic();
            // What comes after the end is no part of the run.
            let upto = end.map_or(now, |end| now.min(end));
            let seen = self.poll(upto);
            let elapsed = end.is_some_and(|end| now >= end);
            if let Some(reason) = self.reason_to_end(woken, elapsed, gone) {
                self.read_the_rest(seen, upto);
                self.second(run, sink);
                return reason;
            }
            if now < next {
                continue;
            }
            self.cpus.blocks.close_elapsed(seen);
            self.second(run, sink);
            let moved = self.place(run, host);
            self.note_storage(
                moved.map_err(|error| format!("cannot move onbeat's own thread: {error}")),
                run,
            );
            next = next + Nanos((now - next).0 / BLOCK_LENGTH.0 * BLOCK_LENGTH.0) + BLOCK_LENGTH;
            seconds += 1;
            if seconds % CHECKPOINT_SECONDS == 0 || std::mem::take(&mut self.checkpoint_due) {
                self.fill(run, false);
                self.note_storage(sink.checkpoint(run), run);
            }
        }
    }

    fn reason_to_end(&self, woken: Woken, elapsed: bool, gone: bool) -> Option<Ended> {
        match (self.limit_reached, woken) {
            (true, _) => Some(Ended::Limit),
            (_, Woken::Stop) => Some(Ended::Signal),
            _ if self.limits.wakeups.is_some_and(|most| self.wakeups >= most) => Some(Ended::Loops),
            _ if elapsed => Some(Ended::Duration),
            _ if gone => Some(Ended::Victim),
            _ => None,
        }
    }

    /// Of a flood a poll takes a part: the rest came within the run as well, as long as that is
    /// read soon.
    fn read_the_rest(&mut self, mut seen: Nanos, upto: Nanos) {
        let read_until = clock::monotonic() + MAX_LATE_READING;
        self.explainer.set_read_limit(read_until);
        while seen < upto && clock::monotonic() < read_until {
            seen = self.poll(upto);
        }
        self.events.losses.ended(upto);
        self.cpus.blocks.finish(upto);
    }

    /// Keeps onbeat's own thread off the CPUs of the followed threads, wherever they may run by
    /// now.
    fn place(&mut self, run: &mut Run, host: &MachineFiles) -> std::io::Result<()> {
        let masks: Vec<CpuSet> =
            self.victims.iter().filter_map(|victim| victims::allowed(host, victim.thread)).collect();
        let Some(place) = self.placement.place(&masks) else { return Ok(()) };
        rt::pin(&place.cpus)?;
        run.plan.housekeeping = place.cpus.iter().collect();
        run.integrity.extend(place.entry);
        Ok(())
    }

    fn arm(&mut self, run: &mut Run) -> Result<()> {
        let threads = self.victims.iter().map(|victim| victim.thread).collect();
        let explainer = &mut self.explainer;
        explainer.set_threads(threads, rt::thread_id());
        // Before recording starts: the account is in the run from then on, and all that is left of
        // it after a kill.
        match self.threshold {
            Some(_) => explainer.account.set_threshold(self.threshold, "as asked".to_owned()),
            None => {
                explainer.account.set_threshold(None, "the first wake-ups had not given one yet".to_owned())
            }
        }
        let without = RecordingLevel::VictimsWithoutStacks;
        explainer.arm(if self.stacks { RecordingLevel::Victims } else { without }, run)
    }

    fn ended(&self) -> Integrity {
        let after = self.cpus.elapsed().spoken();
        let kept =
            if self.wakeups > 0 { "what was seen until then is kept" } else { "no wake-up was recorded" };
        let detail = format!("every thread that was followed has ended after {after}: {kept}");
        entry(IntegrityKind::Victim, None, false, detail)
    }

    /// Follows the victims through the events that came; up to when those were all.
    fn poll(&mut self, upto: Nanos) -> Nanos {
        let known = self.events.losses.any();
        let (wakeups, seen) = self.events.poll(&mut self.explainer, upto);
        self.checkpoint_due |= self.events.losses.any() && !known;
        self.explainer.polled();
        let late = wakeups.into_iter().filter_map(|wakeup| self.count(wakeup)).collect();
        self.explainer.explain_worst(late);
        self.learn_timers();
        seen
    }

    /// After the first second, stacks are taken where the victims' own timers expire.
    fn learn_timers(&mut self) {
        if clock::monotonic() - self.cpus.blocks.began() < BLOCK_LENGTH {
            return;
        }
        if let Some(starts) = self.events.take_timer_starts() {
            self.explainer.learn_timers_from(&starts);
        }
    }

    /// Counts a wake-up; it is returned if it is a spike.
    fn count(&mut self, wakeup: Wakeup) -> Option<LateTask> {
        let Wakeup { task, cpu, expected, actual } = wakeup;
        let latency = actual - expected;
        self.wakeups += 1;
        self.cpus.blocks.add(cpu, LatencySample { latency, cycle: 0, time: actual });
        self.limit_reached |= self.limits.latency.is_some_and(|limit| latency >= limit);
        let wakeup = LateWakeup { cpu, cycle: 0, expected, actual };
        let late = LateTask { wakeup, cycle: None, victim: task, own: false };
        (latency >= self.threshold(latency)?).then_some(late)
    }

    /// The threshold, if there is one; until then wake-ups are only counted.
    fn threshold(&mut self, latency: Nanos) -> Option<Nanos> {
        if self.threshold.is_some() {
            return self.threshold;
        }
        self.first_counts.add(bucket_of(latency), 1);
        let wait =
            self.limits.duration.map_or(MAX_FIRST_WAIT, |length| Nanos(length.0 / 4).min(MAX_FIRST_WAIT));
        if self.wakeups >= FIRST_WAKEUPS || clock::monotonic() - self.cpus.blocks.began() >= wait {
            let (threshold, why) = automatic(&self.first_counts);
            let threshold = self.limits.latency.map_or(threshold, |limit| threshold.min(limit));
            (self.threshold, self.checkpoint_due) = (Some(threshold), true);
            let why = why.replace("before the run", "at its begin");
            self.explainer.account.set_threshold(Some(threshold), why);
        }
        None
    }

    /// Hands over the blocks that were closed.
    fn second(&mut self, run: &mut Run, sink: &mut dyn Sink) {
        let (blocks, closed) = self.cpus.second();
        self.explainer.second(&blocks);
        let progress = Progress {
            blocks: &blocks,
            closed: &closed,
            totals: self.cpus.totals(),
            elapsed: self.cpus.elapsed(),
            duration: self.limits.duration,
        };
        let written = sink.second(&progress);
        self.note_storage(written, run);
    }

    fn note_storage(&self, written: Result<(), String>, run: &mut Run) {
        if let Err(what) = written {
            if !run.integrity.iter().any(|known| known.kind == IntegrityKind::Storage) {
                run.integrity.push(entry(IntegrityKind::Storage, None, false, what));
            }
        }
    }

    fn fill(&mut self, run: &mut Run, last: bool) {
        self.cpus.fill(run);
        run.overhead.max_rss_kib = host::peak_memory_kib();
        let span = clock::monotonic() - self.cpus.blocks.began();
        run.overhead.housekeeping_cpu_share =
            cost::share_between(self.used_before, clock::thread_cpu(), span);
        if last && self.threshold.is_none() {
            let why = format!(
                "{} in so short a time give none: name it with --over",
                several(self.wakeups, "wake-up", "wake-ups")
            );
            self.explainer.account.set_threshold(None, why);
        }
        self.events.losses.put_into(run);
        self.explainer.account.set_polls_with_loss(self.events.losses.looks);
        self.explainer.fill(run, last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::source::memory::{explainer, switch, waking};

    #[test]
    fn wake_ups_are_counted_from_any_source_and_losses_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let (script, explainer, mut run) = explainer(&[0, 1], &folder.path().join("run"));
        let limits = FollowLimits { duration: None, latency: None, wakeups: None };
        let options = SpikeOptions { over: Some(Nanos(5_000)), stacks: true };
        let online = CpuSet::parse("0-1").expect("a list");
        let placement = HousekeepingPlacement::new(online.clone(), CpuSet::default(), None);
        let mut follow = FollowThreads::new(explainer, Vec::new(), limits, &options, placement, &run.host);
        follow.events.tracker = WakeupTracker::new([7], 202);
        let start = clock::monotonic().0;
        follow.cpus.blocks = FollowedBlocks::new(Nanos(start));
        follow.events.losses = Losses::new(Nanos(start));
        let wakeup = |at, ns| vec![switch(at - 100, 0, 7, 3), waking(at, 0, 3, 7), switch(at + ns, 0, 3, 7)];
        script.borrow_mut().events = [wakeup(start + 1_000, 900), wakeup(start + 10_000, 9_000)].concat();
        assert_eq!(follow.poll(Nanos(start + 50_000)), Nanos(start + 50_000));
        assert_eq!((follow.wakeups, follow.events.losses.any()), (2, false));
        // A poll that lost events forgets that the thread was woken.
        script.borrow_mut().events.extend([waking(start + 60_000, 0, 3, 7)]);
        follow.poll(Nanos(start + 65_000));
        script.borrow_mut().lost_before = Some(Nanos(start + 70_000));
        script.borrow_mut().events.extend([switch(start + 80_000, 0, 3, 7)]);
        follow.poll(Nanos(start + 90_000));
        assert_eq!((follow.wakeups, follow.events.losses.looks), (2, 1));
        follow.cpus.blocks.finish(Nanos(start + 90_000));
        follow.fill(&mut run, true);
        assert_eq!(run.recorder.map(|account| (account.looks_lost, account.latency_ns.0)), Some((1, 9_000)));
    }
}
