//! The hunt with onbeat's measuring threads: rounds measure the cost of recording, then each spike
//! is recorded and explained.

use std::collections::BTreeMap;

use super::account::RecordingCost;
use super::explainer::Explainer;
use super::found_spikes::FoundSpikes;
use super::late_task::LateTask;
use super::source::RecordingLevel;
use super::threshold::{automatic, median_noise, quantile};
use crate::measure::block::DrainedBlock;
use crate::measure::hunter::{MAX_ROUND_INTERVAL, MeasuringThread, OnSpikes, Rounds};
use crate::measure::late::LateWakeup;
use crate::measure::sink::SpikeProgress;
use crate::plan::MeasurePlan;
use host::{clock, rt};
use model::error::Result;
use model::histogram::Counts;
use model::run::{Block, Run};
use model::spike::OVER_ASKED;
use model::units::{Cpu, Nanos};
use model::vocabulary::Policy;
use trace::event::Task;
use trace::fixed_str::FixedStr;

/// Rounds: to learn the timers, with nothing armed, with events, with events and stacks.
const ROUNDS: [RecordingLevel; 4] =
    [RecordingLevel::Timers, RecordingLevel::Nothing, RecordingLevel::Events, RecordingLevel::Stacks];

/// Length of a round, and the divisor that gives its maximum share of the run.
const ROUND_LENGTH: Nanos = Nanos(700_000_000);
const MAX_SHARE_OF_RUN: i64 = 30;
/// Bounds on the wake-ups of a round.
const MIN_LOOPS: u64 = 20;
const MAX_LOOPS: u64 = 10_000;

/// Options given by the user.
#[derive(Clone, Debug)]
pub struct SpikeOptions {
    /// Threshold; by default from the rounds.
    pub over: Option<Nanos>,
    /// True if stacks are recorded.
    pub stacks: bool,
}

pub struct Hunt {
    explainer: Explainer,
    wanted: SpikeOptions,
    plan: MeasurePlan,
    victims: BTreeMap<Cpu, Task>,
    /// Name of the measuring threads, before their CPU.
    name: &'static str,
    /// Latencies of the rounds: nothing armed, events, stacks.
    round_counts: [Counts; 3],
    round_began: Nanos,
}

impl Hunt {
    /// A hunt that follows the plan.
    pub fn new(explainer: Explainer, wanted: SpikeOptions, plan: MeasurePlan) -> Hunt {
        let (victims, round_counts) = (BTreeMap::new(), Default::default());
        Hunt { explainer, wanted, plan, victims, name: "onbeat", round_counts, round_began: Nanos(0) }
    }

    /// The same hunt with threads of another name.
    pub fn of_threads(self, name: &'static str) -> Hunt {
        Hunt { name, ..self }
    }

    /// Spikes of the finished run, for its list.
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

    /// Cost of recording according to the rounds; its noise is that of the medians of the first
    /// round and of round `place`.
    fn cost(&self, place: usize) -> RecordingCost {
        let noise = [0, place].map(|at: usize| median_noise(&self.round_counts[at]));
        RecordingCost {
            medians: [0, 1, 2].map(|at: usize| quantile(&self.round_counts[at], 500_000)),
            noise: match noise {
                [Some(a), Some(b)] => Some(Nanos((a.0 as f64).hypot(b.0 as f64).ceil() as i64)),
                _ => None,
            },
        }
    }

    /// Sets the measuring threads by CPU, as the trace shows them.
    fn set_threads(&mut self, threads: &[MeasuringThread]) {
        let prio =
            if self.plan.policy == Policy::Other { ordinary() } else { 99 - self.plan.priority as i32 };
        for own in threads {
            let comm = FixedStr::from(format!("{}/{}", self.name, own.cpu).as_str());
            self.victims.insert(own.cpu, Task { comm, pid: own.id, prio });
        }
        self.explainer.set_threads(threads.iter().map(|own| own.id).collect(), rt::thread_id());
    }
}

/// Priority of a thread under SCHED_OTHER in the kernel's events (DEFAULT_PRIO,
/// include/linux/sched/prio.h).
fn ordinary() -> i32 {
    120 + rt::nice().unwrap_or(0)
}

impl Rounds for Hunt {
    fn rounds(&self) -> usize {
        if self.wanted.stacks { ROUNDS.len() } else { ROUNDS.len() - 1 }
    }

    fn prepare_round(&mut self, round: usize, threads: &[MeasuringThread]) -> Result<u64> {
        if round == 0 {
            self.set_threads(threads);
        }
        self.explainer.arm_round(ROUNDS[round])?;
        self.round_began = clock::monotonic();
        Ok(self.loops())
    }

    fn round_done(&mut self, round: usize, blocks: &[DrainedBlock], slowest: Nanos) {
        self.explainer.response.delayed(slowest);
        self.explainer.account.discard(blocks.iter().map(|block| block.cycles).sum());
        let place = match ROUNDS[round] {
            RecordingLevel::Nothing => 0,
            RecordingLevel::Events => 1,
            RecordingLevel::Stacks => 2,
            _ => return self.explainer.learn_timers(),
        };
        let rows = blocks.iter().flat_map(|block| &block.rows);
        rows.for_each(|&(row, count)| self.round_counts[place].add(row, count));
        if place > 0 {
            let began = self.round_began;
            self.explainer.measure_rate(|| clock::monotonic() - began);
        }
    }

    fn arm(&mut self, run: &mut Run) -> Result<Nanos> {
        if run.plan.policy == Policy::Other {
            // The planned policy was refused: these threads preempt no others.
            self.victims.values_mut().for_each(|own| own.prio = ordinary());
        }
        let (level, place) =
            if self.wanted.stacks { (RecordingLevel::Stacks, 2) } else { (RecordingLevel::Events, 1) };
        let cost = self.cost(place);
        self.explainer.account.set_cost(&cost);
        run.overhead.recorder_ns_per_cycle = cost.added(place);
        let (threshold, why) = match self.wanted.over {
            Some(over) => (over, OVER_ASKED.to_owned()),
            None => automatic(&self.round_counts[place]),
        };
        // The wake-up that stops the run is to be explained.
        let threshold = self.plan.limit.map_or(threshold, |limit| threshold.min(limit));
        self.explainer.account.set_threshold(Some(threshold), why);
        self.explainer.arm(level, run)?;
        Ok(threshold)
    }
}

impl OnSpikes for Hunt {
    fn on_spikes(&mut self, late: &[LateWakeup], lost: u64) {
        self.explainer.set_lost(lost);
        self.explainer.polled();
        let task = |wakeup: &LateWakeup| {
            let victim = self.victims.get(&wakeup.cpu).copied().unwrap_or_default();
            LateTask {
                wakeup: *wakeup,
                cycle: Some(wakeup.cycle),
                victim,
                own: true,
                deadline: None,
                previous: None,
            }
        };
        self.explainer.explain_worst(late.iter().map(task).collect());
    }

    fn so_far(&self) -> Option<SpikeProgress> {
        Some(self.explainer.so_far())
    }

    fn second(&mut self, blocks: &[Block]) {
        self.explainer.second(blocks);
    }

    fn fill(&mut self, run: &mut Run, last: bool) {
        self.explainer.fill(run, last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::source::memory::{explainer, switch, waking};
    use crate::measure::block::LatencySample;
    use crate::plan::{CpuChoice, MachineCpus, MeasureIntent, plan};
    use model::units::CpuSet;
    use model::vocabulary::{IdleStates, SchedulePhase, WakeMechanism};

    const E: i64 = 1_000_000_000_000;

    fn plan_of_one_cpu() -> MeasurePlan {
        let one = CpuSet::parse("0").expect("a list");
        let intent = MeasureIntent {
            cpus: CpuChoice::All,
            interval: Nanos::MILLI,
            distance: Nanos(0),
            policy: None,
            priority: None,
            reservation: None,
            wake: WakeMechanism::Nanosleep,
            phase: SchedulePhase::Aligned,
            idle: Some(IdleStates::AsIs),
            duration: None,
            loops: None,
            limit: None,
            housekeeping: None,
            threads: None,
        };
        let machine = MachineCpus {
            online: one.clone(),
            inherited: one.clone(),
            permitted: one,
            ..MachineCpus::default()
        };
        plan(&intent, &machine, 1).expect("a plan")
    }

    fn block(latencies_ns: &[i64]) -> DrainedBlock {
        let mut block = DrainedBlock::default();
        let samples =
            latencies_ns.iter().map(|&ns| LatencySample { latency: Nanos(ns), cycle: 0, time: Nanos(0) });
        samples.for_each(|sample| block.add(sample));
        block
    }

    #[test]
    fn a_hunt_goes_from_its_rounds_to_an_explained_spike_on_any_source() {
        let folder = tempfile::tempdir().expect("a folder");
        let (script, explainer, mut run) = explainer(&[0, 1], &folder.path().join("run"));
        let options = SpikeOptions { over: None, stacks: true };
        let mut hunt = Hunt::new(explainer, options, plan_of_one_cpu());
        let threads = [MeasuringThread { cpu: Cpu(0), id: 7 }];
        let latencies = [1_000, 1_000, 3_000, 4_000];
        for (round, latency) in latencies.into_iter().enumerate() {
            assert!(hunt.prepare_round(round, &threads).expect("armed") >= MIN_LOOPS);
            hunt.round_done(round, &[block(&[latency; 400])], Nanos(5_000_000));
        }
        let threshold = hunt.arm(&mut run).expect("armed");
        assert!((8_000..10_000).contains(&threshold.0), "{threshold}");
        use RecordingLevel::*;
        assert_eq!(script.borrow().levels, [Timers, Nothing, Events, Stacks, Nothing, Stacks]);
        assert!(script.borrow().buffer_kib > 0);

        script.borrow_mut().events =
            vec![switch(E - 5_000, 0, 0, 5), waking(E + 50, 0, 5, 7), switch(E + 19_000, 0, 5, 7)];
        let late = LateWakeup { cpu: Cpu(0), cycle: 3, expected: Nanos(E), actual: Nanos(E + 20_000) };
        hunt.on_spikes(&[late], 2);
        hunt.second(&[]);
        hunt.fill(&mut run, true);
        let account = run.recorder.as_ref().expect("an account");
        let medians = account.median_ns.map(|median| median.map_or(0, |median| median.0 / 1_000));
        assert_eq!((medians, account.discarded), ([1, 3, 4], 1_600));
        assert_eq!((account.agreeing, account.disagreeing, account.spikes_passed_over), (1, 0, 2));
        assert_eq!(run.overhead.recorder_ns_per_cycle.map(|cost| cost.0 / 1_000), Some(3));
        assert_eq!(run.culprits.iter().map(|culprit| culprit.spikes).max(), Some(1));
        let (spikes, _) = hunt.into_spikes().to_show(&run, 10);
        let spike = &spikes[0];
        assert_eq!((spikes.len(), spike.latency_ns, spike.victim.pid), (1, Nanos(20_000), 7));
        let explained: i64 = spike.slices.iter().map(|slice| slice.ns.0).sum();
        assert_eq!(explained + spike.unexplained_ns.0, 20_000);
        assert!(explained >= 18_000, "{:?}", spike.slices);
    }
}
