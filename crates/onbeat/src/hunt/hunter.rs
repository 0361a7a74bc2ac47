//! The hunt beside the measuring: rounds to know the recorder's cost, then every spike captured and explained.

use std::collections::BTreeMap;

use super::explainer::{Explainer, Late};
use super::found_spikes::FoundSpikes;
use super::pages::WantedSpan;
use super::scope::Scope;
use super::setup::RecordingLevel;
use super::threshold::{automatic, median_noise, quantile};
use crate::measure::block::DrainedBlock;
use crate::measure::hunter::{Hunter, LateWakeup, MAX_ROUND_INTERVAL, MeasuringThread};
use crate::plan::MeasurePlan;
use host::{clock, rt};
use model::error::Outcome;
use model::histogram::Counts;
use model::run::{Block, Run};
use model::units::{Cpu, Nanos};
use model::vocabulary::Policy;
use trace::event::Task;
use trace::label::Label;

/// The rounds: to learn the timers, with nothing armed, with events, with events and stacks.
const ROUNDS: [RecordingLevel; 4] =
    [RecordingLevel::Timers, RecordingLevel::None, RecordingLevel::Events, RecordingLevel::Stacks];

/// A round's length, and the share of the run that it may take.
const ROUND_LENGTH: Nanos = Nanos(700_000_000);
const MAX_SHARE_OF_RUN: i64 = 30;
/// Its least and most wake-ups.
const MIN_LOOPS: u64 = 20;
const MAX_LOOPS: u64 = 10_000;

/// What the user wants.
#[derive(Clone, Debug)]
pub struct SpikeOptions {
    /// The threshold; by default from the rounds.
    pub over: Option<Nanos>,
    /// Whether stacks are taken.
    pub stacks: bool,
}

/// The hunt.
pub struct Hunt {
    explainer: Explainer,
    wanted: SpikeOptions,
    plan: MeasurePlan,
    victims: BTreeMap<Cpu, Task>,
    /// Wake-ups of the rounds: nothing armed, events, stacks.
    round_counts: [Counts; 3],
    round_began: Nanos,
}

impl Hunt {
    /// A hunt by the plan.
    pub fn new(explainer: Explainer, wanted: SpikeOptions, plan: MeasurePlan) -> Hunt {
        let (victims, round_counts) = (BTreeMap::new(), Default::default());
        Hunt { explainer, wanted, plan, victims, round_counts, round_began: Nanos(0) }
    }

    /// The spikes that the run lists; it is over.
    pub fn into_spikes(self) -> FoundSpikes {
        self.explainer.into_spikes()
    }

    fn loops(&self) -> u64 {
        let interval = self.plan.interval.0.clamp(1, MAX_ROUND_INTERVAL.0);
        let share = self.plan.duration.map_or(ROUND_LENGTH, |duration| Nanos(duration.0 / MAX_SHARE_OF_RUN));
        let by_loops = self.plan.loops.map_or(u64::MAX, |loops| loops / 10);
        let wanted = (share.0.min(ROUND_LENGTH.0) / interval) as u64;
        wanted.min(by_loops).clamp(MIN_LOOPS, MAX_LOOPS)
    }

    /// Who measures where, as the trace shows them.
    fn set_threads(&mut self, threads: &[MeasuringThread]) {
        let prio =
            if self.plan.policy == Policy::Other { ordinary() } else { 99 - self.plan.priority as i32 };
        for own in threads {
            let comm = Label::from(format!("onbeat/{}", own.cpu).as_str());
            self.victims.insert(own.cpu, Task { comm, pid: own.thread, prio });
        }
        self.explainer.recorder.scope =
            Scope::new(threads.iter().map(|own| own.thread).collect(), rt::thread_id());
    }
}

/// A thread's priority under SCHED_OTHER as the kernel's events have it (DEFAULT_PRIO, include/linux/sched/prio.h).
fn ordinary() -> i32 {
    120 + rt::nice().unwrap_or(0)
}

impl Hunter for Hunt {
    fn rounds(&self) -> usize {
        if self.wanted.stacks { ROUNDS.len() } else { ROUNDS.len() - 1 }
    }

    fn prepare_round(&mut self, round: usize, threads: &[MeasuringThread]) -> Outcome<u64> {
        if round == 0 {
            self.set_threads(threads);
        }
        self.explainer.recorder.arm(ROUNDS[round])?;
        self.round_began = clock::monotonic();
        Ok(self.loops())
    }

    fn round_done(&mut self, round: usize, blocks: &[DrainedBlock], slowest: Nanos) {
        self.explainer.came_late(slowest);
        let account = &mut self.explainer.account;
        account.discarded += blocks.iter().map(|block| block.cycles).sum::<u64>();
        let place = match ROUNDS[round] {
            RecordingLevel::None => 0,
            RecordingLevel::Events => 1,
            RecordingLevel::Stacks => 2,
            _ => return self.explainer.recorder.learn(),
        };
        let rows = blocks.iter().flat_map(|block| &block.rows);
        rows.for_each(|&(row, count)| self.round_counts[place].add(row, count));
        if place > 0 {
            self.explainer.recorder.take(WantedSpan::LATEST);
            let rate = self.explainer.recorder.busiest_rate(clock::monotonic() - self.round_began);
            self.explainer.account.bytes_per_s = self.explainer.account.bytes_per_s.max(Some(rate));
        }
    }

    fn arm(&mut self, run: &mut Run) -> Outcome<Nanos> {
        if run.plan.policy == Policy::Other {
            // The planned policy was refused: nobody has to make way for these threads.
            self.victims.values_mut().for_each(|own| own.prio = ordinary());
        }
        let medians = [0, 1, 2].map(|at: usize| quantile(&self.round_counts[at], 500_000));
        // Less than nothing is the noise of the medians, which is said beside it.
        let cost = |with: Option<Nanos>| Some((with? - medians[0]?).max(Nanos(0)));
        let (level, place) =
            if self.wanted.stacks { (RecordingLevel::Stacks, 2) } else { (RecordingLevel::Events, 1) };
        let noise = [0, place].map(|at: usize| median_noise(&self.round_counts[at]));
        let account = &mut self.explainer.account;
        account.median_ns = medians;
        account.cost_noise_ns = match noise {
            [Some(a), Some(b)] => Some(Nanos((a.0 as f64).hypot(b.0 as f64).ceil() as i64)),
            _ => None,
        };
        (account.events_cost_ns, account.stacks_cost_ns) = (cost(medians[1]), cost(medians[2]));
        run.overhead.recorder_ns_per_cycle = cost(medians[place]);
        let (over, why) = match self.wanted.over {
            Some(over) => (over, "as asked".to_owned()),
            None => automatic(&self.round_counts[place]),
        };
        // The wake-up that stops the run is to be explained.
        let over = self.plan.limit.map_or(over, |limit| over.min(limit));
        self.explainer.set_threshold(Some(over), why);
        self.explainer.arm(level, run)?;
        Ok(over)
    }

    fn on_spikes(&mut self, catches: &[LateWakeup], lost: u64) {
        self.explainer.set_lost(lost);
        self.explainer.looked();
        let late = |catch: &LateWakeup| {
            let victim = self.victims.get(&catch.cpu).copied().unwrap_or_default();
            Late { catch: *catch, cycle: Some(catch.cycle), victim, own: true }
        };
        self.explainer.explain_worst(catches.iter().map(late).collect());
    }

    fn second(&mut self, blocks: &[Block]) {
        self.explainer.second(blocks);
    }

    fn fill(&mut self, run: &mut Run, last: bool) {
        self.explainer.fill(run, last);
    }
}
