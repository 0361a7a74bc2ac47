//! Part of the plan for the threads of a probe.

use model::keyword::Word;
use model::run;
use model::units::{Cpu, Nanos};
use model::vocabulary::Probe;

/// Task of a probe's threads, in place of periodic wake-ups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbePlan {
    pub probe: Probe,
    /// Kind of hand-over or of lock, source of gaps; `""` for other probes.
    pub kind: String,
    /// Minimum length of a gap or a violation.
    pub over: Option<Nanos>,
    /// CPU time of a round or a job.
    pub work: Option<Nanos>,
    /// CPU of the releasing thread for each measured CPU; empty for other probes.
    pub from: Vec<Cpu>,
    /// Sampling by a tracer of the kernel.
    pub window: Option<SamplingWindow>,
}

/// Window of a tracer, of which it samples a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplingWindow {
    /// Part in which it samples.
    pub width: Nanos,
    pub length: Nanos,
}

impl ProbePlan {
    /// Plan of a probe without kinds.
    pub fn of(probe: Probe) -> ProbePlan {
        ProbePlan { probe, kind: String::new(), over: None, work: None, from: Vec::new(), window: None }
    }

    /// Plan of a probe for `run.json`; only jobs of `probe deadline` wait for a timer.
    pub(super) fn document(&self, measured: run::Plan) -> run::Plan {
        let gaps = matches!(self.probe, Probe::Spin | Probe::Hw);
        let timed = self.probe == Probe::Deadline;
        run::Plan {
            probe: self.probe.into(),
            kind: self.kind.clone(),
            over_ns: self.over,
            work_ns: self.work,
            width_ns: self.window.map(|window| window.width),
            window_ns: self.window.map(|window| window.length),
            wake: if timed { measured.wake } else { Word::default() },
            expiry: if timed { measured.expiry } else { Word::default() },
            phase: if gaps { Word::default() } else { measured.phase },
            interval_ns: measured.interval_ns.filter(|_| !gaps),
            distance_ns: None,
            ..measured
        }
    }
}
