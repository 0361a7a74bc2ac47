//! From a wake-up that came late to a spike in the run: cut, named, explained, kept, counted. And the recorder's account.

use super::findings::Findings;
use super::found_spikes::FoundSpikes;
use super::pages::WantedSpan;
use super::recorder::Recorder;
use super::scope::buffer_kib;
use super::setup::RecordingLevel;
use super::ticks::Ticks;
use super::window_events::WindowRequest;
use crate::measure::hunter::{LateWakeup, POLL_INTERVAL};
use bundle::events::Events;
use host::clock;
use model::error::Outcome;
use model::run::{self, Block, Run, Spike};
use model::text::several;
use model::units::{CpuSet, Nanos};
use trace::event::{Task, What};
use trace::timeline::Cost;
use trace::window::Window;

/// Values from which a median is taken: the first so many. `agreeing` counts all.
const MAX_VALUES: usize = 100_000;

/// Culprits in a checkpoint: some kilobytes each, every ten seconds.
const MAX_INTERIM_CULPRITS: usize = 100;

/// How long spikes are taken apart at a stretch. No signal is handled meanwhile, and the buffers have to reach
/// back to the spikes that wait: in a flood it is better to know some of them well.
const MAX_STRETCH: Nanos = Nanos(100_000_000);

/// A wake-up that is to be taken apart.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    /// When and where.
    pub catch: LateWakeup,
    /// The slot's number, where there are slots.
    pub cycle: Option<u64>,
    /// Who was late.
    pub victim: Task,
    /// Whether it is a thread of our own.
    pub own: bool,
}

/// What takes spikes apart, and what it has seen of them.
pub struct Explainer {
    /// Where events come from.
    pub recorder: Recorder,
    /// What `run.json` says of it.
    pub account: run::Recorder,
    host: run::Host,
    /// What the measuring threads' own path was measured to cost.
    cost: Cost,
    events: Events,
    findings: Findings,
    ticks: Ticks,
    memory_kib: u64,
    last_look: Nanos,
    slowest: Nanos,
    /// From the switch to the thread's own clock, of spikes that have both.
    to_user: Vec<Nanos>,
    /// Spikes that could not be taken over from the loop.
    lost: u64,
    /// Spikes that there was no time for.
    passed_over: u64,
    /// What one took lately.
    one_takes: Nanos,
    /// Windows that are not in the bundle, and why one could not be written.
    unwritten: u64,
    trouble: Option<String>,
}

impl Explainer {
    /// With a recorder that is open and silent.
    pub fn new(recorder: Recorder, run: &Run, events: Events, memory_kib: u64) -> Explainer {
        Explainer {
            recorder,
            account: run::Recorder::default(),
            host: run.host.clone(),
            cost: Cost::default(),
            events,
            findings: Findings::default(),
            ticks: Ticks::default(),
            memory_kib,
            last_look: Nanos(0),
            slowest: Nanos(0),
            to_user: Vec::new(),
            lost: 0,
            passed_over: 0,
            one_takes: Nanos(0),
            unwritten: 0,
            trouble: None,
        }
    }

    /// The latency from which on a wake-up is a spike, and how that came about.
    pub fn set_threshold(&mut self, over: Option<Nanos>, why: String) {
        (self.account.over_ns, self.account.over_why) = (over, why);
    }

    /// Sets the buffers by what was seen, and arms for the run itself.
    pub fn arm(&mut self, level: RecordingLevel, run: &mut Run) -> Outcome<()> {
        let rate = self.account.bytes_per_s.unwrap_or(0);
        // Which CPUs run is not known on every machine; the measured ones do.
        let cpus = CpuSet::parse(&run.host.online).map_or(0, |set| set.len()).max(run.plan.cpus.len()).max(1);
        self.recorder.arm(RecordingLevel::None)?;
        self.recorder.resize(buffer_kib(rate, self.slowest, cpus, self.memory_kib));
        self.recorder.arm(level)?;
        self.recorder.account(&mut self.account);
        self.last_look = clock::monotonic();
        run.recorder = Some(self.account.clone());
        self.cost = Cost::of(run);
        Ok(())
    }

    /// The housekeeping thread was here: how long it was away is how far back the buffers have to reach.
    pub fn looked(&mut self) {
        let now = clock::monotonic();
        self.came_late(Nanos((now - self.last_look).0 - POLL_INTERVAL.0));
        self.last_look = now;
    }

    /// The housekeeping thread came that late.
    pub fn came_late(&mut self, by: Nanos) {
        self.slowest = self.slowest.max(by);
    }

    /// How many spikes found no room to wait for the housekeeping thread.
    pub fn set_lost(&mut self, lost: u64) {
        self.lost = lost;
    }

    /// Seconds in which the hypervisor took time; and what there is no line of is written down, as the second's blocks are.
    pub fn second(&mut self, blocks: &[Block]) {
        self.findings.second(blocks);
        self.events.explained.count(self.lost + self.passed_over);
    }

    /// Takes spikes apart in the order of time, in which pages are taken and let go: as many of the latest as a stretch
    /// has room for, going by what one took lately. The rest is counted.
    pub fn explain_worst(&mut self, mut late: Vec<Late>) {
        let began = clock::monotonic();
        let room = (MAX_STRETCH.0 / self.one_takes.0.max(1)).max(1) as usize;
        late.sort_by_key(|late| std::cmp::Reverse(late.catch.actual - late.catch.expected));
        self.passed_over += late.len().saturating_sub(room) as u64;
        late.truncate(room);
        late.sort_by_key(|late| late.catch.actual);
        for (done, one) in late.iter().enumerate() {
            let so_far = clock::monotonic() - began;
            if done > 0 && so_far > MAX_STRETCH {
                self.passed_over += (late.len() - done) as u64;
                break;
            }
            if one.own {
                self.recorder.take(WantedSpan { from: one.catch.expected, to: one.catch.actual });
            }
            self.explain(one);
            self.one_takes = Nanos((clock::monotonic() - began).0 / (done as i64 + 1));
        }
    }

    /// Takes one spike apart, keeps its window, and puts it into the run; what was recorded has been taken before.
    fn explain(&mut self, late: &Late) {
        let Late { catch, cycle, victim, own } = *late;
        let depth = self.recorder.depth(catch.cpu).map(|depth| depth.0 as f64 / 1e6);
        self.account.depth_ms = match (self.account.depth_ms, depth) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let request =
            WindowRequest { cpu: catch.cpu, expected: catch.expected, actual: catch.actual, victim };
        let window = self.recorder.window(&request, cycle, own);
        self.ticks.add(&window);
        let mut spike = Findings::explain(&window, &self.host, self.cost);
        self.account.windows_lost += u64::from(window.begins_late);
        if own && !woken_while_running(&window) {
            self.compare(&spike);
        }
        match self.events.add(&window) {
            Ok(true) => {}
            Ok(false) => self.unwritten += 1,
            Err(error) => {
                self.unwritten += 1;
                self.trouble.get_or_insert(error.to_string());
            }
        }
        self.findings.add(&mut spike, &self.host);
        self.events.explained.add(&spike);
    }

    /// The spikes that the run lists; it is over.
    pub fn into_spikes(self) -> FoundSpikes {
        FoundSpikes::of(self.events.explained, self.host, self.findings)
    }

    /// The trace and the thread's own clock tell of the same wake-up.
    fn compare(&mut self, spike: &Spike) {
        match spike.switched_ns {
            Some(switched) => {
                self.account.agreeing += 1;
                if self.to_user.len() < MAX_VALUES {
                    self.to_user.push(spike.actual_ns - switched);
                }
            }
            None => self.account.disagreeing += 1,
        }
    }

    /// Before the run is written; `last` when it is over.
    pub fn fill(&mut self, run: &mut Run, last: bool) {
        // While the run is on its spikes are where they were appended, and only those that are not there are counted.
        let passed_over = self.lost + self.passed_over;
        let explained = &self.events.explained;
        run.spikes_dropped = passed_over + if last { explained.dropped } else { explained.unwritten };
        self.account.slowest_response_ms = Some(self.slowest.0 as f64 / 1e6);
        self.account.events_overwritten = self.recorder.overwritten();
        self.account.switch_to_user_ns = super::ticks::median(&mut self.to_user);
        (self.account.tick_ns, self.account.ticks) = self.ticks.summary();
        self.recorder.account(&mut self.account);
        let mut account = self.account.clone();
        account.spikes_passed_over = passed_over;
        account.windows_lost += passed_over;
        if self.unwritten > 0 {
            let why = self.trouble.as_deref().unwrap_or("the space for them is used up");
            account.notes.push(format!(
                "the events of {} are not in the bundle: {why}",
                several(self.unwritten, "spike", "spikes")
            ));
        }
        if let Some(why) = &self.events.explained.trouble {
            account
                .notes
                .push(format!("explained spikes could not be written as they came ({why}): free some space"));
        }
        account.notes.extend(self.findings.notes());
        run.recorder = Some(account);
        match last {
            true => self.findings.conclude(run),
            false => self.findings.standing(run),
        }
        if !last && run.culprits.len() > MAX_INTERIM_CULPRITS {
            let left_out = run.culprits.len() - MAX_INTERIM_CULPRITS;
            run.culprits.truncate(MAX_INTERIM_CULPRITS);
            let note =
                format!("{left_out} more culprits, those that took least, are left out while the run is on");
            run.recorder.iter_mut().for_each(|account| account.notes.push(note.clone()));
        }
    }
}

/// Whether the thread was still running when its timer woke it, on its way to sleep: then there is no switch to it.
fn woken_while_running(window: &Window) -> bool {
    let victim = window.victim.pid;
    window.events.iter().any(|event| {
        matches!(&event.what, What::Waking { task, .. } if task.pid == victim)
            && event.pid == victim
            && event.time >= window.expected_ns
    })
}
