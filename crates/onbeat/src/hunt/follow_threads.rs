//! A hunt that follows threads of other programs: without a measuring thread, the trace shows their
//! latency and the duration of their cycles.

use super::calibration;
use super::explainer::{Explainer, futex};
use super::family::Family;
use super::followed_blocks::FollowedBlocks;
use super::followed_cpus::FollowedCpus;
use super::followed_cycles::FollowedCycles;
use super::followed_events::{FollowedEvents, PolledEvents};
use super::followed_program::FollowedProgram;
use super::followed_spikes::{FollowLimits, FollowOptions, FollowedSpikes};
use super::found_spikes::FoundSpikes;
use super::losses::Losses;
use super::placement::HousekeepingPlacement;
use super::source::RecordingLevel;
use super::victims;
use crate::measure::block::BLOCK_LENGTH;
use crate::measure::cost;
use crate::measure::hunter::POLL_INTERVAL;
use crate::measure::integrity::entry;
use crate::measure::sink::{Progress, Sink};
use host::rt::{self, StopSignal};
use host::{MachineFiles, clock};
use model::error::{Exit, Failure, Result, run_with};
use model::run::{self, Run};
use model::spike::OVER_ASKED;
use model::units::{CpuSet, Nanos};
use model::vocabulary::{Ended, IntegrityKind};
use model::wall_time::wall_time;

/// Time limit for reading events from before the end: the most that Ctrl-C takes.
const MAX_LATE_READING: Nanos = Nanos(300_000_000);

/// Interval between replacements of `run.json`, in seconds.
const CHECKPOINT_SECONDS: u64 = 10;

/// A hunt that follows threads of other programs.
pub struct FollowThreads {
    explainer: Explainer,
    events: FollowedEvents,
    spikes: FollowedSpikes,
    /// Program that was started for the hunt.
    program: Option<FollowedProgram>,
    limits: FollowLimits,
    options: FollowOptions,
    cpus: FollowedCpus,
    /// CPU time of the housekeeping thread at the start.
    used_before: Option<Nanos>,
    placement: HousekeepingPlacement,
    /// True if a threshold or a loss is new, which a killed run has to contain.
    checkpoint_due: bool,
}

impl FollowThreads {
    pub fn new(
        explainer: Explainer,
        family: Family,
        program: Option<FollowedProgram>,
        limits: FollowLimits,
        options: FollowOptions,
        placement: HousekeepingPlacement,
        host: &run::Host,
    ) -> FollowThreads {
        let futex = futex();
        let online = CpuSet::parse(&host.online).unwrap_or_default();
        let cycles = FollowedCycles::new(options.deadline, options.syscalls.map(|_| futex));
        FollowThreads {
            explainer,
            events: FollowedEvents::new(family, cycles, futex, options.stacks),
            spikes: FollowedSpikes::new(limits, options.over),
            program,
            limits,
            options,
            cpus: FollowedCpus::new(&online, &host.virtualization),
            used_before: None,
            placement,
            checkpoint_due: false,
        }
    }

    /// Spikes of the finished run, for its list.
    pub fn into_spikes(self) -> FoundSpikes {
        self.explainer.into_spikes()
    }

    /// Runs until a limit, a signal, or the end of the followed threads; returns the run.
    pub fn run(&mut self, mut run: Run, host: &MachineFiles, sink: &mut dyn Sink) -> Result<Run> {
        let failed = |what: &str| {
            let what = what.to_owned();
            let remedy = run_with("CAP_SYS_NICE") + ", or without a system call filter";
            move |error: std::io::Error| Failure::of_call(what, &error, Exit::Internal, &remedy)
        };
        rt::block_signals().map_err(failed("cannot block signals"))?;
        // onbeat's thread must not run at real-time priority, whatever policy it was started with.
        rt::leave_real_time().map_err(failed("cannot set SCHED_OTHER"))?;
        self.place(&mut run, host).map_err(failed("cannot move onbeat's own thread"))?;
        let mut began = clock::monotonic();
        // After Ctrl-C no more events are enabled.
        if !rt::stop_pending() {
            self.arm(&mut run)?;
            self.events.family.scan(host);
            // Nothing that the program does comes before this time.
            began = clock::monotonic();
            self.program.as_mut().map_or(Ok(()), FollowedProgram::start)?;
        }
        self.used_before = clock::thread_cpu();
        self.cpus.blocks = FollowedBlocks::new(began);
        self.events.losses = Losses::new(began, self.options.syscalls.is_some());
        run.started = wall_time(began + clock::wall_offset());
        // A kill before the first checkpoint leaves a run that shows what it followed.
        self.fill_threads(&mut run);
        self.note_storage(sink.checkpoint(&run), &mut run);
        run.ended = self.watch_until_end(&mut run, host, sink).into();
        if run.ended == Ended::Victim && self.program.is_none() {
            run.integrity.push(self.spikes.ended(self.cpus.elapsed()));
        } else if self.spikes.wakeups == 0 && !self.events.losses.any() && self.program.is_none() {
            run.integrity.push(self.spikes.nothing(self.cpus.elapsed()));
        }
        if let Some(program) = &mut self.program {
            program.end();
            run.program = Some(program.finished(&self.events.family, host));
        }
        self.fill(&mut run, true);
        run.complete = true;
        Ok(run)
    }

    /// Polls until something ends the hunt; returns the reason.
    fn watch_until_end(&mut self, run: &mut Run, host: &MachineFiles, sink: &mut dyn Sink) -> Ended {
        let began = self.cpus.blocks.began();
        let end = self.limits.duration.map(|length| began + length);
        let (mut next, mut seconds) = (began + BLOCK_LENGTH, 0);
        loop {
            let poll = clock::monotonic() + POLL_INTERVAL;
            let stop = rt::wait_for_stop(end.map_or(poll, |end| poll.min(end)));
            // Checked before the events are read: they include what a thread did before it ended.
            let gone = self.is_gone(host);
            // Later events are not part of the run.
            let now = clock::monotonic();
            let upto = end.map_or(now, |end| now.min(end));
            let seen = self.poll(upto, run, host);
            let elapsed = end.is_some_and(|end| now >= end);
            if let Some(reason) = self.reason_to_end(stop, elapsed, gone) {
                self.read_the_rest(seen, upto, run, host);
                self.second(run, sink);
                return reason;
            }
            if now < next {
                continue;
            }
            let ended = self.events.end_syscalls(&mut self.explainer, now - began, &mut self.options);
            run.plan.notes.extend(ended);
            self.cpus.blocks.close_elapsed(seen);
            self.events.family.look_again();
            self.events.family.look_for_unseen(host);
            self.second(run, sink);
            self.move_aside(run, host);
            next = next + Nanos((now - next).0 / BLOCK_LENGTH.0 * BLOCK_LENGTH.0) + BLOCK_LENGTH;
            seconds += 1;
            if seconds % CHECKPOINT_SECONDS == 0 || std::mem::take(&mut self.checkpoint_due) {
                self.fill(run, false);
                self.note_storage(sink.checkpoint(run), run);
            }
        }
    }

    fn is_gone(&mut self, host: &MachineFiles) -> bool {
        match &mut self.program {
            Some(program) => program.has_ended(),
            None => self.events.family.is_gone(host, self.limits.duration.is_some()),
        }
    }

    /// Reason to end the hunt. A program that was asked to end is recorded until it has.
    fn reason_to_end(&mut self, stop: Option<StopSignal>, elapsed: bool, gone: bool) -> Option<Ended> {
        let asked = self.program.as_ref().is_some_and(FollowedProgram::was_asked);
        let overdue = self.program.as_ref().is_some_and(FollowedProgram::is_overdue);
        let waits = |program: &mut FollowedProgram| stop.is_some_and(|signal| program.stop(signal));
        match stop {
            _ if self.spikes.limit_reached => Some(Ended::Limit),
            Some(_) if self.program.as_mut().is_some_and(waits) => None,
            Some(_) => Some(Ended::Signal),
            _ if asked && (gone || overdue) => Some(Ended::Signal),
            _ if self.limits.wakeups.is_some_and(|most| self.spikes.wakeups >= most) => Some(Ended::Loops),
            _ if elapsed => Some(Ended::Duration),
            _ if gone => Some(Ended::Victim),
            _ => None,
        }
    }

    /// Reads events left over from a flood: they belong to the run if they are read soon.
    fn read_the_rest(&mut self, mut seen: Nanos, upto: Nanos, run: &mut Run, host: &MachineFiles) {
        let read_until = clock::monotonic() + MAX_LATE_READING;
        self.explainer.set_read_limit(read_until);
        while seen < upto && clock::monotonic() < read_until {
            seen = self.poll(upto, run, host);
        }
        let rest = self.spikes.rest();
        self.explainer.explain_worst(rest);
        self.events.losses.ended(upto);
        self.cpus.blocks.finish(upto);
    }

    /// Keeps onbeat's thread off the CPUs on which the followed threads may run now.
    fn place(&mut self, run: &mut Run, host: &MachineFiles) -> std::io::Result<()> {
        let followed = self.events.family.followed();
        let masks: Vec<CpuSet> =
            followed.filter_map(|victim| victims::allowed(host, victim.thread)).collect();
        let Some(place) = self.placement.place(&masks) else { return Ok(()) };
        rt::pin(&place.cpus)?;
        run.plan.housekeeping = place.cpus.iter().collect();
        run.integrity.extend(place.entry);
        Ok(())
    }

    fn move_aside(&mut self, run: &mut Run, host: &MachineFiles) {
        let moved = self.place(run, host);
        let moved =
            moved.map_err(|error| Failure::internal(format!("cannot move onbeat's own thread: {error}")));
        self.note_storage(moved, run);
    }

    fn arm(&mut self, run: &mut Run) -> Result<()> {
        let threads = self.events.family.threads();
        let explainer = &mut self.explainer;
        explainer.set_threads(threads.clone(), rt::thread_id());
        if self.events.family.grows() {
            explainer.follow(threads.clone());
        }
        // Before recording starts: the account is in the run from then on, and is all that remains
        // of it after a kill.
        match self.options.over {
            Some(_) => explainer.account.set_threshold(self.options.over, OVER_ASKED.to_owned()),
            None => {
                explainer.account.set_threshold(None, "not yet determined from the first wake-ups".to_owned())
            }
        }
        let FollowOptions { stacks, syscalls, .. } = self.options;
        let level = RecordingLevel::Victims { stacks, syscalls: syscalls.is_some() };
        calibration::arm(&mut self.explainer, level, threads, run)
    }

    /// Processes the events that arrived; returns the time up to which they are complete.
    fn poll(&mut self, upto: Nanos, run: &mut Run, host: &MachineFiles) -> Nanos {
        let known = self.events.losses.looks;
        let PolledEvents { mut wakeups, mut late, came, left, seen } =
            self.events.poll(&mut self.explainer, upto);
        if self.events.losses.looks > known {
            self.checkpoint_due |= known == 0;
            self.events.family.scan(host);
        }
        self.explainer.polled();
        // A thread whose priority was inherited is not followed.
        let refused = self.events.confirm(&came, host);
        wakeups.retain(|wakeup| !refused.contains(&wakeup.task.pid));
        late.retain(|late| !refused.contains(&late.victim.pid));
        self.placement.came(&came);
        // Before the filters are replaced, which waits until no CPU uses the old ones.
        if self.placement.is_due(clock::monotonic()) {
            self.move_aside(run, host);
        }
        if !came.is_empty() || left {
            self.explainer.follow(self.events.family.threads());
        }
        let mut finished = self.events.cycles.take_finished();
        finished.retain(|cycle| !refused.contains(&cycle.thread));
        self.cpus.count(&wakeups, finished);
        let spikes = wakeups.iter().filter_map(|wakeup| {
            self.placement.ran_on(wakeup.cpu);
            let mut found = None;
            let spike = self.spikes.count(wakeup, self.cpus.blocks.began(), &mut found);
            if let Some((threshold, why)) = found {
                self.checkpoint_due = true;
                self.explainer.account.set_threshold(Some(threshold), why);
            }
            spike
        });
        let spikes = spikes.collect();
        let chosen = self.spikes.choose(spikes, late, &self.events.cycles, seen);
        self.explainer.explain_worst(chosen);
        self.learn_timers();
        seen
    }

    /// Learns the timers of the followed threads after the first second, for stacks.
    fn learn_timers(&mut self) {
        if clock::monotonic() - self.cpus.blocks.began() < BLOCK_LENGTH {
            return;
        }
        if let Some(starts) = self.events.take_timer_starts() {
            self.explainer.learn_timers_from(&starts);
        }
    }

    /// Hands over the closed blocks.
    fn second(&mut self, run: &mut Run, sink: &mut dyn Sink) {
        let (blocks, closed) = self.cpus.second();
        self.explainer.second(&blocks);
        let progress = Progress {
            blocks: &blocks,
            closed: &closed,
            totals: self.cpus.totals(),
            elapsed: self.cpus.elapsed(),
            duration: self.limits.duration,
            threads: &self.events.cycles.progress(),
            spikes: Some(&self.explainer.so_far()),
        };
        let written = sink.second(&progress);
        self.note_storage(written, run);
    }

    fn note_storage(&self, written: Result<()>, run: &mut Run) {
        let Err(failure) = written else { return };
        if !run.integrity.iter().any(|known| known.kind == IntegrityKind::Storage) {
            run.integrity.push(entry(IntegrityKind::Storage, None, false, failure.message));
        }
    }

    fn fill(&mut self, run: &mut Run, last: bool) {
        self.cpus.fill(run);
        run.overhead.max_rss_kib = host::peak_memory_kib();
        let span = clock::monotonic() - self.cpus.blocks.began();
        run.overhead.housekeeping_cpu_share =
            cost::share_between(self.used_before, clock::thread_cpu(), span);
        if last {
            run.plan.notes.extend(self.events.missing());
        }
        if let Some(why) = self.spikes.too_few().filter(|_| last) {
            self.explainer.account.set_threshold(None, why);
        }
        self.events.losses.put_into(run);
        self.explainer.account.set_polls_with_loss(self.events.losses.looks);
        self.fill_threads(run);
        self.explainer.fill(run, last);
    }

    fn fill_threads(&self, run: &mut Run) {
        run.threads = self.events.cycles.documents();
        run.threads_dropped = self.events.family.seen().saturating_sub(run.threads.len() as u64);
        run.program = run.program.take().or_else(|| self.program.as_ref().map(FollowedProgram::document));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::source::memory::{event, explainer, switch, task, waking};
    use crate::hunt::victims::{FollowedKind, Victim};
    use trace::event::What;

    const LIMITS: FollowLimits = FollowLimits { duration: None, latency: None, wakeups: None };

    fn options(over: Option<i64>, deadline: Option<i64>) -> FollowOptions {
        let (over, deadline) = (over.map(Nanos), deadline.map(Nanos));
        FollowOptions { over, deadline, stacks: true, syscalls: None }
    }

    fn nobody() -> MachineFiles {
        MachineFiles::in_memory(Default::default())
    }

    #[test]
    fn wake_ups_are_counted_from_any_source_and_losses_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let (script, explainer, mut run) = explainer(&[0, 1], &folder.path().join("run"));
        let online = CpuSet::parse("0-1").expect("a list");
        let placement = HousekeepingPlacement::new(online.clone(), CpuSet::default(), None);
        let family = Family::new(FollowedKind::Thread, vec![Victim::from_event(&task(7))], []);
        let options = options(Some(5_000), None);
        let mut follow = FollowThreads::new(explainer, family, None, LIMITS, options, placement, &run.host);
        let start = clock::monotonic().0;
        follow.cpus.blocks = FollowedBlocks::new(Nanos(start));
        follow.events.losses = Losses::new(Nanos(start), false);
        let wakeup = |at, ns| vec![switch(at - 100, 0, 7, 3), waking(at, 0, 3, 7), switch(at + ns, 0, 3, 7)];
        script.borrow_mut().events = [wakeup(start + 1_000, 900), wakeup(start + 10_000, 9_000)].concat();
        assert_eq!(follow.poll(Nanos(start + 50_000), &mut run, &nobody()), Nanos(start + 50_000));
        assert_eq!((follow.spikes.wakeups, follow.events.losses.any()), (2, false));
        // A poll that lost events forgets that the thread was woken.
        script.borrow_mut().events.extend([waking(start + 60_000, 0, 3, 7)]);
        follow.poll(Nanos(start + 65_000), &mut run, &nobody());
        script.borrow_mut().lost_before = Some(Nanos(start + 70_000));
        script.borrow_mut().events.extend([switch(start + 80_000, 0, 3, 7)]);
        follow.poll(Nanos(start + 90_000), &mut run, &nobody());
        assert_eq!((follow.spikes.wakeups, follow.events.losses.looks), (2, 1));
        follow.cpus.blocks.finish(Nanos(start + 90_000));
        follow.fill(&mut run, true);
        assert_eq!(run.recorder.map(|account| (account.looks_lost, account.latency_ns.0)), Some((1, 9_000)));
    }

    #[test]
    fn a_thread_that_comes_later_is_followed_and_its_late_cycle_is_a_spike() {
        let folder = tempfile::tempdir().expect("a folder");
        let (script, explainer, mut run) = explainer(&[0, 1], &folder.path().join("run"));
        let online = CpuSet::parse("0-1").expect("a list");
        let placement = HousekeepingPlacement::new(online, CpuSet::default(), None);
        let family = Family::new(FollowedKind::Program, Vec::new(), [5]);
        let options = options(Some(500_000), Some(100_000));
        let mut follow = FollowThreads::new(explainer, family, None, LIMITS, options, placement, &run.host);
        let start = clock::monotonic().0;
        follow.cpus.blocks = FollowedBlocks::new(Nanos(start));
        follow.events.losses = Losses::new(Nanos(start), false);
        let arm = |at: i64, expires: i64| {
            let what = What::TimerStart { timer: 9, function: 1, expires: Nanos(start + expires) };
            event(start + at, 0, 7, what)
        };
        let fires = |at: i64| {
            let entry = What::TimerEntry { timer: 9, function: 1, now: Nanos(start + at) };
            let exit = What::TimerExit { timer: 9 };
            let raw = |at: i64, what| event(start + at, 0, 3, what);
            vec![raw(at, entry), waking(start + at + 10, 0, 3, 7), raw(at + 20, exit)]
        };
        let mut events = vec![event(start, 0, 5, What::Fork { child: 7 }), switch(start + 100, 0, 3, 7)];
        events.extend([arm(900, 10_000), switch(start + 1_000, 0, 7, 3)]);
        events.extend(fires(10_000));
        events.extend([switch(start + 30_000, 0, 3, 7), arm(150_000, 900_000)]);
        events.push(switch(start + 160_000, 0, 7, 3));
        events.extend(fires(900_000));
        script.borrow_mut().events = events;
        follow.poll(Nanos(start + 1_000_000), &mut run, &nobody());
        follow.fill(&mut run, true);
        assert_eq!(script.borrow().threads, ["pid == 7"]);
        assert!(!follow.placement.is_due(Nanos(start)), "where it may run was asked");
        let thread = &run.threads[0];
        assert_eq!((thread.tid, thread.cycles, thread.late), (7, 1, Some(1)));
        let (spikes, _) = follow.into_spikes().to_show(&run, 10);
        assert_eq!((spikes.len(), spikes[0].latency_ns), (1, Nanos(150_000)));
        assert_eq!(spikes[0].deadline_ns, Some(Nanos(100_000)));
        let own = spikes[0].slices.iter().find(|slice| slice.kind.as_str() == "own");
        assert_eq!(own.map(|slice| slice.ns), Some(Nanos(130_000)));
    }
}
