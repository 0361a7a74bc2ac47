//! Work that comes near to the kernel's limit on real-time threads.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{RT_GROUP, SCHED7};
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::unknown::unknown_from;
use facts::process::ProgramThread;

pub static CHECK: CheckRule = CheckRule {
    id: "realtime-budget",
    title: "work near to the limit on real-time threads",
    description: "The kernel gives all real-time threads of a CPU together a share of each period, by \
                  default 0.95 s of each second, and stops them for the rest. From 6.12 on most \
                  kernels do so only where ordinary threads starve (the fair server).",
    rationale: "a loop that needs a little more than usual is stopped until the period ends: 50 ms by \
                default",
    detection: "By the time that the thread ran in the window, next to \
                /proc/sys/kernel/sched_rt_runtime_us and sched_rt_period_us; what other threads of its CPU \
                take comes on top.",
    wanted: "well below the limit",
    fix: "do less in a cycle, or spread the work over CPUs; a limit of -1 removes the brake, and with it \
          the rescue of a machine whose loop never ends",
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "kernel: real-time group scheduling", url: RT_GROUP },
        Source { title: "sched(7), limiting the CPU usage of real-time processes", url: SCHED7 },
    ],
    reads: &[RUNTIME, PERIOD, "/proc/PID/task/TID/schedstat"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "thread 101 run=0.88",
        silent: "thread 101 run=0.88\nmachine runtime=-1",
        unknown: "thread 101 run=unknown",
    },
};

const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const PERIOD: &str = "/proc/sys/kernel/sched_rt_period_us";

/// The part of the limit from which on a longer cycle may reach it.
const NEAR: f64 = 0.9;

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let machine = program.machine;
    let runtime =
        machine.rt_runtime_us.known().ok_or_else(|| unknown_from(RUNTIME, &machine.rt_runtime_us))?;
    let period = machine.rt_period_us.known().ok_or_else(|| unknown_from(PERIOD, &machine.rt_period_us))?;
    if *runtime < 0 || runtime >= period {
        return Ok(Judgement::pass("there is no limit"));
    }
    let (share, limit) = (program.share(thread)?, *runtime as f64 / (*period).max(1) as f64);
    let value = format!(
        "it ran {:.0} % of {}, the limit is {:.0} %",
        share * 100.0,
        thread.window.spoken(),
        limit * 100.0
    );
    Ok(Judgement::fail_if(share >= NEAR * limit, value))
}
