//! The hunt beside the measuring: rounds to know the recorder's cost, then every spike captured and explained.

use std::collections::BTreeMap;

use super::arm::Arms;
use super::cut::Wish;
use super::recorder::Recorder;
use super::scope::buffer_kib;
use super::threshold::{Rows, add, automatic, quantile};
use crate::bundle::events::Events;
use crate::bundle::run::{self, Run, Spike};
use crate::error::Outcome;
use crate::host::clock;
use crate::measure::block::Taken;
use crate::measure::hunter::{Catch, Hunter, Measurer, PULSE};
use crate::plan::Plan;
use crate::rules::culprits::About;
use crate::rules::culprits::tally::Tally;
use crate::timeline;
use crate::trace::event::Task;
use crate::trace::label::Label;
use crate::units::{Cpu, Nanos, Policy};

/// Spikes that stand in `run.json` with their slices; of more, the largest.
pub const KEPT: usize = 2_000;

/// The rounds: to learn the timers, with nothing armed, with events, with events and stacks.
const ROUNDS: [Arms; 4] = [Arms::Timers, Arms::None, Arms::Events, Arms::Stacks];

/// A round's length, and the share of the run that all may take.
const ROUND: Nanos = Nanos(700_000_000);
const SHARE: i64 = 30;
/// Its least and most wake-ups.
const LEAST: u64 = 20;
const MOST: u64 = 10_000;

/// What the user wants.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The threshold; by default from the rounds.
    pub over: Option<Nanos>,
    /// Whether stacks are taken.
    pub stacks: bool,
}

/// The hunt.
pub struct Hunt {
    recorder: Recorder,
    wanted: Wanted,
    plan: Plan,
    memory_kib: Option<u64>,
    host: run::Host,
    events: Events,
    tally: Tally,
    victims: BTreeMap<Cpu, Task>,
    /// Wake-ups of the rounds: nothing armed, events, stacks.
    rows: [Rows; 3],
    account: run::Recorder,
    last_look: Nanos,
    slowest: Nanos,
    round_began: Nanos,
    /// From the switch to the thread's own clock, of spikes that have both.
    to_user: Vec<Nanos>,
    /// Spikes that could not be taken over from the loop, and those beyond the list.
    lost: u64,
    dropped: u64,
    /// Windows that found no room in the bundle, and why one could not be written.
    unwritten: u64,
    trouble: Option<String>,
    /// Spikes at the front of the list are in order of time only after this was done.
    unsorted: bool,
}

impl Hunt {
    /// A hunt by the plan, with a recorder that is open and silent.
    pub fn new(
        recorder: Recorder,
        wanted: Wanted,
        plan: Plan,
        run: &Run,
        events: Events,
        memory_kib: Option<u64>,
    ) -> Hunt {
        Hunt {
            recorder,
            wanted,
            plan,
            memory_kib,
            host: run.host.clone(),
            events,
            tally: Tally::default(),
            victims: BTreeMap::new(),
            rows: Default::default(),
            account: run::Recorder::default(),
            last_look: Nanos(0),
            slowest: Nanos(0),
            round_began: Nanos(0),
            to_user: Vec::new(),
            lost: 0,
            dropped: 0,
            unwritten: 0,
            trouble: None,
            unsorted: false,
        }
    }

    /// The arms of a round.
    fn arms(&self, round: usize) -> Arms {
        ROUNDS[round]
    }

    fn loops(&self) -> u64 {
        let interval = self.plan.interval.0.max(1);
        let share = self.plan.duration.map_or(ROUND, |duration| Nanos(duration.0 / SHARE));
        let by_loops = self.plan.loops.map_or(u64::MAX, |loops| loops / 10);
        let wanted = (share.0.min(ROUND.0) / interval) as u64;
        wanted.min(by_loops).clamp(LEAST, MOST)
    }

    /// Takes one spike apart, keeps its window, and puts it into the run.
    fn explain(&mut self, catch: &Catch, run: &mut Run) {
        let victim = self.victims.get(&catch.cpu).copied().unwrap_or_default();
        let wish = Wish { cpu: catch.cpu, expected: catch.expected, actual: catch.actual, victim };
        let (window, too_late) = self.recorder.window(&wish, Some(catch.cycle), true);
        let mut spike = timeline::explain(&window, &self.host);
        if too_late {
            self.account.windows_lost += 1;
            spike.notes.push("the buffer did not reach back to where the spike began".to_owned());
        }
        match spike.switched_ns {
            Some(switched) => {
                self.account.agreeing += 1;
                if self.to_user.len() < 100_000 {
                    self.to_user.push(spike.actual_ns - switched);
                }
            }
            None => self.account.disagreeing += 1,
        }
        match self.events.add(&window) {
            Ok(true) => {}
            Ok(false) => self.unwritten += 1,
            Err(error) => {
                self.unwritten += 1;
                self.trouble.get_or_insert(error.to_string());
            }
        }
        self.tally.add(&mut spike, &self.host);
        self.keep(spike, run);
    }

    /// The largest spikes stay; the list is put in order when it is written.
    fn keep(&mut self, spike: Spike, run: &mut Run) {
        self.unsorted = true;
        if run.spikes.len() < KEPT {
            run.spikes.push(spike);
            return;
        }
        self.dropped += 1;
        let least = (0..run.spikes.len()).min_by_key(|&at| run.spikes[at].latency_ns);
        if let Some(at) = least.filter(|&at| run.spikes[at].latency_ns < spike.latency_ns) {
            run.spikes[at] = spike;
        }
    }
}

impl Hunter for Hunt {
    fn rounds(&self) -> usize {
        if self.wanted.stacks { ROUNDS.len() } else { ROUNDS.len() - 1 }
    }

    fn prepare(&mut self, round: usize, measurers: &[Measurer]) -> Outcome<u64> {
        if round == 0 {
            let prio = if self.plan.policy == Policy::Other { 120 } else { 99 - self.plan.priority as i32 };
            for own in measurers {
                let comm = Label::from(format!("onbeat/{}", own.cpu).as_str());
                self.victims.insert(own.cpu, Task { comm, pid: own.thread, prio });
            }
            self.recorder.scope = super::scope::Scope::new(measurers.iter().map(|own| own.thread).collect());
        }
        self.recorder.arm(self.arms(round))?;
        self.round_began = clock::monotonic();
        Ok(self.loops())
    }

    fn heard(&mut self, round: usize, blocks: &[Taken]) {
        self.account.discarded += blocks.iter().map(|block| block.cycles).sum::<u64>();
        let arms = self.arms(round);
        match arms {
            Arms::Timers => self.recorder.learn(),
            Arms::None => {}
            Arms::Events | Arms::Stacks => {
                self.recorder.take();
                let seconds = (clock::monotonic() - self.round_began).as_secs().max(1e-3);
                let rate = (self.recorder.busiest_bytes() as f64 / seconds) as u64;
                self.account.bytes_per_s = self.account.bytes_per_s.max(Some(rate));
            }
        }
        let place = match arms {
            Arms::Timers => return,
            Arms::None => 0,
            Arms::Events => 1,
            Arms::Stacks => 2,
        };
        blocks.iter().for_each(|block| add(&mut self.rows[place], &block.rows));
    }

    fn arm(&mut self, run: &mut Run) -> Outcome<Nanos> {
        let arms = if self.wanted.stacks { Arms::Stacks } else { Arms::Events };
        let medians = [0, 1, 2].map(|at: usize| quantile(&self.rows[at], 500));
        self.account.median_ns = medians;
        let cost = |with: Option<Nanos>| Some(with? - medians[0]?);
        (self.account.events_cost_ns, self.account.stacks_cost_ns) = (cost(medians[1]), cost(medians[2]));
        run.overhead.recorder_ns_per_cycle =
            if self.wanted.stacks { cost(medians[2]) } else { cost(medians[1]) };
        let armed = &self.rows[if self.wanted.stacks { 2 } else { 1 }];
        (self.account.over_ns, self.account.over_why) = match self.wanted.over {
            Some(over) => (over, "as asked".to_owned()),
            None => automatic(armed),
        };
        let rate = self.account.bytes_per_s.unwrap_or(0);
        let cpus = crate::units::CpuSet::parse(&run.host.online).map_or(1, |set| set.len());
        self.recorder.arm(Arms::None)?;
        self.recorder.resize(buffer_kib(rate, self.slowest, cpus, self.memory_kib));
        self.recorder.arm(arms)?;
        self.recorder.account(&mut self.account);
        self.last_look = clock::monotonic();
        run.recorder = Some(self.account.clone());
        Ok(self.account.over_ns)
    }

    fn caught(&mut self, catches: &[Catch], lost: u64, run: &mut Run) {
        self.lost = lost;
        let now = clock::monotonic();
        self.slowest = self.slowest.max(Nanos((now - self.last_look).0 - PULSE.0));
        self.last_look = now;
        if catches.is_empty() {
            return;
        }
        self.recorder.take();
        for catch in catches {
            let depth = self.recorder.depth(catch.cpu).map(|depth| depth.0 as f64 / 1e6);
            self.account.depth_ms = match (self.account.depth_ms, depth) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            self.explain(catch, run);
        }
    }

    fn fill(&mut self, run: &mut Run) {
        if std::mem::take(&mut self.unsorted) {
            run.spikes.sort_by_key(|spike| (spike.actual_ns, spike.cpu));
        }
        run.spikes_dropped = self.dropped + self.lost;
        self.account.slowest_response_ms = Some(self.slowest.0 as f64 / 1e6);
        self.account.events_overwritten = self.recorder.overwritten();
        self.account.switch_to_user_ns = median(&mut self.to_user);
        let mut account = self.account.clone();
        account.windows_lost += self.lost;
        if self.lost > 0 {
            account.notes.push(format!(
                "{} spikes came faster than they could be looked at, and are not explained",
                self.lost
            ));
        }
        if self.unwritten > 0 {
            let why = self.trouble.as_deref().unwrap_or("the space for them is used up");
            account
                .notes
                .push(format!("the events of {} spikes are not in the bundle: {why}", self.unwritten));
        }
        run.recorder = Some(account);
        run.culprits = self.tally.ranked(&About::run(run)).culprits;
    }
}

fn median(values: &mut [Nanos]) -> Option<Nanos> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable(middle).1)
}
