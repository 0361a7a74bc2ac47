//! Synthetic experiments with known results, through all decisions.

use model::experiment::{ExperimentArm, ExperimentPlan, ExperimentSegment, SegmentLoad};
use model::units::Nanos;
use stats::rng::Rng;

use crate::order::of_pair;
use crate::proof::{Proof, prove};
use crate::tally::PairTally;

/// Machine and a change.
#[derive(Clone, Copy, Debug)]
pub struct DrawnExperiment {
    /// Mean number of late wake-ups in a segment without the change, at the beginning.
    pub late: f64,
    /// Factor of the change on their rate.
    pub factor: f64,
    /// Scatter of ln of each segment's rate, beyond chance.
    pub shifts: f64,
    /// Growth of ln of the rate per segment; `wander` is its random part.
    pub drift: f64,
    pub wander: f64,
    /// Share of spoiled segments.
    pub spoiled: f64,
}

impl DrawnExperiment {
    /// Ten late wake-ups per segment, steady, and a change without effect.
    pub const STEADY: DrawnExperiment =
        DrawnExperiment { late: 10.0, factor: 1.0, shifts: 0.0, drift: 0.0, wander: 0.0, spoiled: 0.0 };

    /// Like `STEADY`, with shifts between segments and a drift.
    pub const RESTLESS: DrawnExperiment =
        DrawnExperiment { shifts: 0.5, drift: 0.05, wander: 0.1, ..DrawnExperiment::STEADY };

    /// Runs an experiment to its end, in the order of its seed.
    pub fn run(&self, plan: &ExperimentPlan, rng: &mut Rng) -> Proof {
        let seed = rng.next_u64();
        let mut segments = Vec::new();
        let mut level = 0.0;
        for pair in 0.. {
            let proof = prove(plan, &PairTally::of(&segments));
            if proof.end.is_some() {
                return proof;
            }
            for arm in of_pair(seed, pair) {
                level += self.drift + self.wander * rng.normal();
                segments.push(self.segment(pair, arm, level, rng));
            }
        }
        prove(plan, &PairTally::of(&segments))
    }

    /// Segment at a level of drift.
    pub fn segment(&self, pair: u32, arm: ExperimentArm, level: f64, rng: &mut Rng) -> ExperimentSegment {
        let factor = if arm == ExperimentArm::B { self.factor } else { 1.0 };
        let mean = self.late * factor * (level + self.shifts * rng.normal()).exp();
        let halves = [poisson(rng, 0.5 * mean), poisson(rng, 0.5 * mean)];
        let p50 = 8_000.0 * (0.2 * level + 0.05 * rng.normal()).exp();
        let load = SegmentLoad {
            spec: "mem:1x64M".into(),
            rate_per_s: Some(1e9 * (-0.2 * level + 0.05 * rng.normal()).exp()),
        };
        ExperimentSegment {
            pair,
            arm,
            valid: rng.uniform() >= self.spoiled,
            observed_ns: Nanos(5_000_000_000),
            samples: 5_000,
            late: halves[0] + halves[1],
            late_blocks: halves,
            p50_ns: Some(Nanos(p50 as i64)),
            loads: vec![load],
            ..ExperimentSegment::default()
        }
    }
}

/// Poisson number; the mean is limited to 20,000.
pub fn poisson(rng: &mut Rng, mean: f64) -> u64 {
    let (mut passed, mut events) = (rng.exponential(), 0);
    while passed < mean.min(20_000.0) {
        events += 1;
        passed += rng.exponential();
    }
    events
}
