//! Real-time threads that do not sleep.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{RT_GROUP, SCHED7};
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use facts::process::ProgramThread;
use model::text::several;

pub static CHECK: CheckRule = CheckRule {
    id: "busy-waiting",
    title: "a real-time thread that hardly sleeps",
    description: "The thread runs nearly all the time: it polls, spins on a lock, or calls sched_yield in a \
                  loop.",
    rationale: "everything of lower priority on its CPU starves, kernel threads included, until the fair \
                server (or real-time throttling on kernels without it) stops the thread itself for tens of \
                milliseconds",
    detection: "By the time for which it ran in the window (/proc/PID/task/TID/schedstat). What it does in \
                that time is not seen.",
    wanted: "it sleeps between its cycles, or has an isolated CPU for itself",
    fix: "wait in the kernel (clock_nanosleep, a futex with priority inheritance), or run without a \
          real-time policy on an isolated CPU, where no other thread runs",
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "kernel: real-time group scheduling", url: RT_GROUP },
        Source { title: "sched(7), limiting the CPU usage of real-time processes", url: SCHED7 },
    ],
    reads: &["/proc/PID/task/TID/schedstat", "/proc/PID/task/TID/status"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "thread 101 run=0.99 voluntary=3",
        silent: "thread 101 run=0.7",
        unknown: "thread 101 run=unknown",
    },
};

/// Share of time from which on a loop leaves no room for other work of its CPU.
const SHARE: f64 = 0.9;

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let share = program.share(thread)?;
    let counted = program.counted(thread)?;
    let value = format!(
        "it ran {:.0} % of {} and slept {}",
        share * 100.0,
        thread.window.spoken(),
        several(counted.voluntary, "time", "times")
    );
    Ok(Judgement::fail_if(share >= SHARE, value))
}
