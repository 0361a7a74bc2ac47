//! Cross-check of a hunt: the kernel's timerlat tracer measures the same CPUs at the same time, and
//! its samples are counted beside those of onbeat's threads.

use std::sync::Arc;

use super::hunter::Hunt;
use super::timerlat_sums::TimerlatSums;
use crate::measure::block::DrainedBlock;
use crate::measure::hunter::{MeasuringThread, OnSpikes, Rounds};
use crate::measure::integrity::entry;
use crate::measure::late::LateWakeup;
use crate::measure::sink::SpikeProgress;
use crate::probe::timerlat::{TimerlatContext, TimerlatSample, TimerlatTracer};
use host::clock;
use model::error::Result;
use model::run::{Block, CheckedSide, CpuRun, CrossCheck, Run};
use model::text::several;
use model::units::{Cpu, Nanos};
use model::vocabulary::{Agreement, IntegrityKind, Quantity};

/// Minimum number of samples of each side for a verdict on its 99 % quantile.
const LEAST: u64 = 1_000;

/// Differences up to these are none: within the error of the histograms and of the records.
const SPAN: Nanos = Nanos(5_000);
const SHARE: i64 = 4;

/// Sums of one CPU.
struct Witness {
    cpu: Cpu,
    thread: TimerlatSums,
    irq: TimerlatSums,
}

/// Hunt with the running tracer as its witness.
pub struct CrossChecked<'a> {
    hunt: &'a mut Hunt,
    tracer: Arc<TimerlatTracer>,
    witnesses: Vec<Witness>,
    samples: Vec<TimerlatSample>,
    /// True if the records could not be read.
    failed: bool,
}

impl CrossChecked<'_> {
    /// A hunt on these CPUs, with a tracer whose timers have that interval.
    pub fn new(
        hunt: &mut Hunt,
        tracer: Arc<TimerlatTracer>,
        cpus: impl Iterator<Item = Cpu>,
        interval: Nanos,
    ) -> CrossChecked<'_> {
        let witness =
            |cpu| Witness { cpu, thread: TimerlatSums::new(interval), irq: TimerlatSums::new(interval) };
        let witnesses = cpus.map(witness).collect();
        CrossChecked { hunt, tracer, witnesses, samples: Vec::new(), failed: false }
    }

    /// Reads the samples of all CPUs.
    fn read(&mut self) {
        for witness in &mut self.witnesses {
            self.samples.clear();
            self.failed |= self.tracer.read(witness.cpu, &mut self.samples).is_err();
            for &sample in &self.samples {
                match sample.context {
                    TimerlatContext::Irq => witness.irq.take(sample),
                    TimerlatContext::Thread => witness.thread.take(sample),
                    TimerlatContext::User => {}
                }
            }
        }
    }

    fn results(&mut self, run: &mut Run) {
        self.read();
        for witness in &mut self.witnesses {
            let Some(own) = run.cpus.iter().find(|own| own.cpu == Some(witness.cpu)).map(side) else {
                continue;
            };
            let timerlat = side(&witness.thread.document(witness.cpu, Quantity::Wakeup, true));
            let timerlat_irq = side(&witness.irq.document(witness.cpu, Quantity::Irq, false));
            let agreement = agreement(&own, &timerlat).into();
            run.cross_check.push(CrossCheck { cpu: witness.cpu, own, timerlat, timerlat_irq, agreement });
            let lost = self.tracer.lost(witness.cpu);
            if lost > 0 || self.failed {
                let lost = several(lost, "record", "records");
                let detail = format!("timerlat's side is incomplete: {lost} lost, or not read");
                run.integrity.push(entry(IntegrityKind::Tracing, Some(witness.cpu), false, detail));
            }
        }
    }
}

fn side(cpu: &CpuRun) -> CheckedSide {
    CheckedSide {
        count: cpu.cycles.unwrap_or(0),
        missed: cpu.missed,
        mean_ns: cpu.mean_ns,
        p50_ns: cpu.p50_ns,
        p99_ns: cpu.p99_ns,
        max_ns: cpu.max_ns,
    }
}

/// Verdict on both sides by their 99 % quantiles: the maxima are of single moments, which the other
/// side may not have met.
fn agreement(own: &CheckedSide, timerlat: &CheckedSide) -> Agreement {
    let (Some(a), Some(b)) = (own.p99_ns, timerlat.p99_ns) else { return Agreement::Unknown };
    let allowed = SPAN.0.max(a.0.max(b.0) / SHARE);
    if own.count.min(timerlat.count) < LEAST {
        Agreement::Unknown
    } else if (a.0 - b.0).abs() <= allowed {
        Agreement::Agree
    } else if a > b {
        Agreement::LoopLater
    } else {
        Agreement::TimerlatLater
    }
}

impl Rounds for CrossChecked<'_> {
    fn rounds(&self) -> usize {
        self.hunt.rounds()
    }

    fn late_capacity(&self) -> usize {
        self.hunt.late_capacity()
    }

    fn prepare_round(&mut self, round: usize, threads: &[MeasuringThread]) -> Result<u64> {
        self.hunt.prepare_round(round, threads)
    }

    fn round_done(&mut self, round: usize, blocks: &[DrainedBlock], slowest: Nanos) {
        self.hunt.round_done(round, blocks, slowest);
    }

    fn arm(&mut self, run: &mut Run) -> Result<Nanos> {
        let threshold = self.hunt.arm(run)?;
        // Samples before this one are of the rounds.
        let now = clock::monotonic();
        self.witnesses.iter_mut().for_each(|witness| {
            witness.thread.begin(now);
            witness.irq.begin(now);
        });
        Ok(threshold)
    }
}

impl OnSpikes for CrossChecked<'_> {
    fn poll_interval(&self) -> Nanos {
        self.hunt.poll_interval()
    }

    fn on_spikes(&mut self, late: &[LateWakeup], lost: u64) {
        self.hunt.on_spikes(late, lost);
        self.read();
    }

    fn so_far(&self) -> Option<SpikeProgress> {
        self.hunt.so_far()
    }

    fn second(&mut self, blocks: &[Block]) {
        self.hunt.second(blocks);
    }

    fn fill(&mut self, run: &mut Run, last: bool) {
        self.hunt.fill(run, last);
        if last {
            self.results(run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_needs_samples_and_a_difference_beyond_the_error() {
        let side =
            |count, us: i64| CheckedSide { count, p99_ns: Some(Nanos(us * 1_000)), ..CheckedSide::default() };
        let of = |a, b| agreement(&side(LEAST, a), &side(LEAST, b));
        assert_eq!(of(20, 23), Agreement::Agree);
        assert_eq!(of(3, 8), Agreement::Agree);
        assert_eq!(of(100, 70), Agreement::LoopLater);
        assert_eq!(of(70, 100), Agreement::TimerlatLater);
        assert_eq!(agreement(&side(LEAST - 1, 9), &side(LEAST, 900)), Agreement::Unknown);
        assert_eq!(agreement(&CheckedSide::default(), &side(LEAST, 9)), Agreement::Unknown);
    }
}
