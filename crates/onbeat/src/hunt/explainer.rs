//! Explanation of a late wake-up: its window is cut out, named, explained, written and counted.

use super::account::RecordingAccount;
use super::found_spikes::FoundSpikes;
use super::late_task::LateTask;
use super::lock_places::LockPlaces;
use super::previous_cycles::ExplainedCycles;
use super::response::ResponseTime;
use super::scope::{Scope, buffer_kib};
use super::sleep_places::SleepPlaces;
use super::so_far::SpikesSoFar;
use super::source::{Collected, EventSource, RecordingLevel, WantedSpan};
use crate::alarm::{self, Alarms};
use crate::measure::late::LateWakeup;
use crate::measure::sink::SpikeProgress;
use bundle::events::Events;
use host::{MachineFiles, clock};
use model::error::Result;
use model::run::{Block, Host, Run, Spike};
use model::sort::CompactSort;
use model::units::{CpuSet, Nanos};
use rules::culprits::names::fallback_name;
use study::findings::Findings;
use trace::cycles::place::SleepPlace;
use trace::event::{Address, Raw, What};
use trace::names::Names;
use trace::timeline::Cost;
use trace::window::Window;
use trace::window_events::{WindowEvents, WindowRequest, window_events};

/// Maximum number of culprits in a checkpoint: some kilobytes each, every ten seconds.
const MAX_INTERIM_CULPRITS: usize = 100;

/// Time limit for explaining spikes without a pause. No signal is handled during that time, and the
/// buffers have to reach back to the waiting spikes: in a flood, a few are explained well.
const MAX_STRETCH: Nanos = Nanos(100_000_000);

/// Numbers of spikes that are not explained.
#[derive(Clone, Copy, Debug, Default)]
struct Skipped {
    /// Spikes that were lost in the queue from the measuring loop.
    lost: u64,
    /// Spikes for which there was no time.
    no_time: u64,
}

impl Skipped {
    fn sum(self) -> u64 {
        self.lost + self.no_time
    }
}

/// Explains spikes and collects the results.
pub struct Explainer {
    source: Box<dyn EventSource>,
    names: Names,
    scope: Scope,
    pub account: RecordingAccount,
    pub response: ResponseTime,
    host: Host,
    /// Measured cost of the measuring threads' code path.
    cost: Cost,
    events: Events,
    findings: Findings,
    memory_kib: u64,
    skipped: Skipped,
    /// Mean time to explain one spike, from the last batch.
    one_takes: Nanos,
    sleeps: SleepPlaces,
    locks: LockPlaces,
    /// Time from which on recorded calls are incomplete.
    calls_until: Nanos,
    so_far: SpikesSoFar,
    cycles: ExplainedCycles,
    /// Actions at a spike, and their failures.
    alarms: Alarms,
}

impl Explainer {
    /// An explainer with an open source that records nothing yet.
    pub fn new(
        source: Box<dyn EventSource>,
        names: Names,
        run: &Run,
        events: Events,
        memory_kib: u64,
    ) -> Explainer {
        Explainer {
            source,
            names,
            scope: Scope::default(),
            account: RecordingAccount::default(),
            response: ResponseTime::default(),
            host: run.host.clone(),
            cost: Cost::default(),
            events,
            findings: Findings::default(),
            memory_kib,
            skipped: Skipped::default(),
            one_takes: Nanos(0),
            sleeps: SleepPlaces::default(),
            locks: LockPlaces::new(MachineFiles::live(), futex()),
            calls_until: Nanos(i64::MAX),
            so_far: SpikesSoFar::default(),
            cycles: ExplainedCycles::default(),
            alarms: Alarms::default(),
        }
    }

    /// Sets the actions at a spike.
    pub fn set_alarms(&mut self, alarms: Alarms) {
        self.alarms = alarms;
    }

    /// Sets the threads whose wake-ups are of interest.
    pub fn set_threads(&mut self, threads: Vec<i32>, housekeeping: i32) {
        self.scope = Scope::new(threads, housekeeping);
    }

    /// Arms the source for a round before the run.
    pub fn arm_round(&mut self, level: RecordingLevel) -> Result<()> {
        self.source.arm(level, &self.scope)
    }

    /// Follows these threads while the hunt runs; threads may come and go.
    pub fn follow(&mut self, threads: Vec<i32>) {
        self.scope = self.scope.growing(threads);
        self.source.set_threads(&self.scope);
    }

    /// Stops the recording of system calls.
    pub fn end_syscalls(&mut self) {
        self.calls_until = clock::monotonic();
        self.source.end_syscalls();
    }

    /// Records for these threads from now on; known timers stay.
    pub fn record_too(&mut self, threads: Vec<i32>) {
        self.scope = self.scope.of(threads);
        self.source.set_threads(&self.scope);
    }

    /// Kind of sleep that a kernel stack shows.
    pub fn sleep_place(&mut self, frames: &[Address]) -> SleepPlace {
        self.sleeps.place(frames, &mut self.names)
    }

    /// True unless the event is a system call with unknown numbers; called for each event.
    pub fn knows_calls(&mut self, event: &Raw) -> bool {
        self.locks.numbers.observe(event);
        let call = matches!(event.what, What::SyscallEntry { .. } | What::SyscallExit { .. });
        !call || self.locks.numbers.are_own(event.pid)
    }

    /// Learns the timers that the threads sleep on from a round that recorded only those.
    pub fn learn_timers(&mut self) {
        self.source.collect(WantedSpan::LATEST);
        let mut starts = Vec::new();
        self.source.each_held(&mut |event| starts.extend(timer_start(&event)));
        self.scope.learn(&starts);
    }

    /// Learns timers from starts that were seen while the hunt runs, and takes stacks where they
    /// expire.
    pub fn learn_timers_from(&mut self, starts: &[(i32, u64, u64)]) {
        self.scope.learn(starts);
        self.source.add_stacks(&self.scope);
    }

    /// Measures the recording rate of a round of this duration.
    pub fn measure_rate(&mut self, elapsed: impl FnOnce() -> Nanos) {
        self.source.collect(WantedSpan::LATEST);
        self.account.note_rate(self.source.busiest_rate(elapsed()));
    }

    /// Sizes the buffers by the measured rate, and arms the source for the run.
    pub fn arm(&mut self, level: RecordingLevel, run: &mut Run) -> Result<()> {
        // The online CPUs are not known on every machine; the measured ones are online.
        let cpus = CpuSet::parse(&run.host.online).map_or(0, |set| set.len()).max(run.plan.cpus.len()).max(1);
        self.source.arm(RecordingLevel::Nothing, &self.scope)?;
        let kib = buffer_kib(self.account.rate(), self.response.slowest(), cpus, self.memory_kib);
        self.source.resize(kib);
        self.source.arm(level, &self.scope)?;
        self.source.account(self.account.of_source());
        self.response.start(clock::monotonic());
        run.recorder = Some(self.account.of_source().clone());
        self.cost = Cost::of(run);
        Ok(())
    }

    /// Sets the time after which nothing is collected.
    pub fn set_read_limit(&mut self, until: Nanos) {
        self.source.set_read_limit(until);
    }

    /// Collects the recorded events, and passes each to `each`.
    pub fn collect_each(&mut self, each: &mut dyn FnMut(Raw)) -> Collected {
        self.source.collect_each(each)
    }

    /// Notes a poll of the housekeeping thread.
    pub fn polled(&mut self) {
        self.response.polled(clock::monotonic());
    }

    /// Sets the number of spikes that did not fit into the queue from the measuring loop.
    pub fn set_lost(&mut self, lost: u64) {
        self.skipped.lost = lost;
    }

    /// Spikes found up to now, for the screen.
    pub fn so_far(&self) -> SpikeProgress {
        self.so_far.progress(self.skipped.sum())
    }

    /// Takes the blocks of a second, for their steal, and writes the number of skipped spikes.
    pub fn second(&mut self, blocks: &[Block]) {
        self.findings.second(blocks);
        self.events.explained.count(self.skipped.sum());
    }

    /// Collects the events of the largest spikes and explains these in order of time: as many as
    /// there is time for, by the mean duration of one. Counts the others.
    pub fn explain_worst(&mut self, mut late: Vec<LateTask>) {
        let began = clock::monotonic();
        let max_spikes = (MAX_STRETCH.0 / self.one_takes.0.max(1)).max(1) as usize;
        late.compact_sort_by_key(|late| std::cmp::Reverse(late.wakeup.actual - late.wakeup.expected));
        self.skipped.no_time += late.len().saturating_sub(max_spikes) as u64;
        late.truncate(max_spikes);
        late.compact_sort_by_key(|late| late.wakeup.actual);
        for (done, one) in late.iter().enumerate() {
            let so_far = clock::monotonic() - began;
            if done > 0 && so_far > MAX_STRETCH {
                self.skipped.no_time += (late.len() - done) as u64;
                break;
            }
            if one.own {
                self.source.collect(WantedSpan { from: one.wakeup.expected, to: one.wakeup.actual });
            }
            self.explain(one);
            self.one_takes = Nanos((clock::monotonic() - began).0 / (done as i64 + 1));
        }
    }

    /// Explains one spike, writes its window, and adds it to the run; its events have been
    /// collected.
    fn explain(&mut self, late: &LateTask) {
        let reach = self.source.oldest(late.wakeup.cpu);
        self.account.note_depth(reach.map(|oldest| clock::monotonic() - oldest));
        let mut cycles = std::mem::take(&mut self.cycles);
        let previous = cycles
            .before(late, &mut |earlier| Findings::explain(&self.window(earlier), &self.host, self.cost));
        let window = Window { previous, ..self.window(late) };
        let mut spike = Findings::explain(&window, &self.host, self.cost);
        cycles.keep(&spike);
        self.cycles = cycles;
        self.account.add(&window, &spike);
        match self.events.add(&window) {
            Ok(true) => {}
            Ok(false) => self.account.not_written(None),
            Err(error) => self.account.not_written(Some(error.to_string())),
        }
        self.findings.add(&mut spike, &self.host);
        self.raise(&spike);
        self.so_far.add(&spike);
        self.events.explained.add(&spike);
    }

    fn raise(&mut self, spike: &Spike) {
        let longest = spike.slices.iter().max_by_key(|slice| slice.ns);
        let late = alarm::AlarmCause {
            latency: spike.latency_ns,
            cpu: spike.cpu.0,
            victim: spike.victim.comm.clone(),
            victim_pid: spike.victim.pid,
            culprit: longest.map(fallback_name).unwrap_or_default(),
        };
        self.alarms.take(&late, clock::monotonic());
    }

    /// Window of the spike, with names instead of addresses.
    fn window(&mut self, late: &LateTask) -> Window {
        let LateTask { wakeup, cycle, victim, own, deadline, .. } = *late;
        let LateWakeup { cpu, expected, actual, .. } = wakeup;
        let of_cycle = deadline.map(|_| victim.pid);
        let request = WindowRequest { cpu, expected, actual, of_cycle };
        let WindowEvents { mut events, lost, begins_late, left_out } =
            window_events(&request, &mut *self.source);
        if actual > self.calls_until {
            events
                .retain(|event| !matches!(event.what, What::SyscallEntry { .. } | What::SyscallExit { .. }));
        }
        self.names.next_window();
        let calls = self.locks.calls(&events, victim.pid);
        let locks = self.locks.locks(&events, victim.pid, clock::monotonic(), &mut self.names);
        let events = events.into_iter().map(|event| event.named(&mut self.names)).collect();
        Window {
            cpu,
            cycle,
            expected_ns: expected,
            actual_ns: actual,
            victim,
            own,
            deadline_ns: deadline,
            previous: None,
            events_lost: lost,
            begins_late,
            left_out,
            calls,
            locks,
            events,
        }
    }

    /// Spikes of the finished run, for its list.
    pub fn into_spikes(self) -> FoundSpikes {
        FoundSpikes::of(self.events.explained, self.host, self.findings, self.alarms.notes())
    }

    /// Fills the run before it is written; `last` at its end.
    pub fn fill(&mut self, run: &mut Run, last: bool) {
        // While the run is active, its spikes are in the file that they were appended to; only
        // those missing there are counted.
        let skipped = self.skipped.sum();
        let explained = &self.events.explained;
        run.spikes_dropped = skipped + if last { explained.dropped } else { explained.unwritten };
        self.account.of_source().events_overwritten = self.source.overwritten();
        self.source.account(self.account.of_source());
        let mut account = self.account.document(self.response.slowest(), skipped);
        account.spikes_unwritten = explained.lost;
        if let Some(why) = &explained.failure {
            account.notes.push(format!(
                "explained spikes could not be written during the run ({why}): free some space"
            ));
        }
        if last {
            self.alarms.end();
        }
        account.notes.extend(self.alarms.notes());
        account.notes.extend(self.findings.notes());
        run.recorder = Some(account);
        if last {
            self.findings.conclude(run);
        } else {
            self.findings.standing(run);
        }
        if !last && run.culprits.len() > MAX_INTERIM_CULPRITS {
            let left_out = run.culprits.len() - MAX_INTERIM_CULPRITS;
            run.culprits.truncate(MAX_INTERIM_CULPRITS);
            let note =
                format!("{left_out} more culprits, with the least time, are not listed during the run");
            run.recorder.iter_mut().for_each(|account| account.notes.push(note.clone()));
        }
    }
}

/// Number of the futex system call.
pub fn futex() -> i64 {
    // The number has 32 bits on 32-bit boards.
    #[allow(clippy::unnecessary_cast)]
    let number = libc::SYS_futex as i64;
    number
}

/// Thread, function and timer of a timer's start.
pub fn timer_start(event: &Raw) -> Option<(i32, u64, u64)> {
    match event.what {
        What::TimerStart { timer, function, .. } => Some((event.pid, function, timer)),
        _ => None,
    }
}
