//! Periodic threads whose timers are permitted to be late.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{HIGHRES, TIMERSLACK2};
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::words::truncate_words;
use model::units::Nanos;

pub static CHECK: CheckRule = CheckRule {
    id: "loose-timer-slack",
    title: "timer slack of a periodic thread",
    description: "The kernel may extend each sleep of a thread without a real-time policy by its timer \
                  slack, 50 us by default, to wake several threads at once. Real-time threads have no timer \
                  slack.",
    rationale: "a thread that feeds or serves the loop wakes later than requested, by up to the slack",
    detection: "By /proc/TID/timerslack_ns of the threads without a real-time policy that sleep at least 50 \
                times a second. Whether the loop depends on them is not known.",
    wanted: "1 ns for threads whose wake-ups must be on time",
    fix: "call prctl(PR_SET_TIMERSLACK, 1) in the thread, or give it a real-time policy",
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "PR_SET_TIMERSLACK(2const)", url: TIMERSLACK2 },
        Source { title: "kernel: high resolution timers", url: HIGHRES },
    ],
    reads: &["/proc/TID/timerslack_ns", "/proc/PID/task/TID/status"],
    judge: CheckJudge::Process(judge),
    examples: Examples {
        fires: "thread 102 comm=feeder policy=other slack=50000 voluntary=5000",
        silent: "thread 102 comm=feeder policy=other slack=1 voluntary=5000",
        unknown: "thread 102 comm=feeder policy=other slack=unknown voluntary=5000",
    },
};

/// Wake-ups per second from which on a thread counts as periodic.
const PERIODIC: f64 = 50.0;

/// Slack in ns from which on it matters: other delays of a fair thread exceed a smaller one.
const SLACK: u64 = 10_000;

fn judge(program: &ProgramView) -> Judged {
    let (mut late, mut unread, mut looked) = (Vec::new(), 0, 0);
    for thread in program.process.threads.iter().filter(|thread| thread.policy.is_none()) {
        let Some(counted) = thread.counted.known() else { continue };
        if (counted.voluntary as f64) < PERIODIC * program.process.window.as_secs() {
            continue;
        }
        looked += 1;
        match thread.slack_ns.known() {
            Some(slack) if *slack >= SLACK => {
                let slack = Nanos(i64::try_from(*slack).unwrap_or(i64::MAX)).spaced();
                late.push(format!("{} {slack}", thread.comm));
            }
            Some(_) => {}
            None => unread += 1,
        }
    }
    match (late.is_empty(), unread) {
        (false, _) => Ok(Judgement::fail(truncate_words(late))),
        (true, 0) if looked == 0 => {
            Err(Judgement::not_applicable("no thread without a real-time policy is periodic"))
        }
        (true, 0) => Ok(Judgement::pass("none of its periodic threads has a significant timer slack")),
        (true, n) => {
            Err(Judgement::unknown(format!("the timer slack of {n} of its threads could not be read")))
        }
    }
}
