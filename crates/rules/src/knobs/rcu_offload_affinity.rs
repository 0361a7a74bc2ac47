//! The threads that take over RCU callbacks: whether they are elsewhere.

use super::sources::{PARAMETERS, PER_CPU_KTHREADS};
use crate::balance::exposed;
use crate::case::Case;
use crate::change::Because;
use crate::edits::thread;
use crate::judgement::{Judged, Judgement, Severity};
use crate::kthreads::{complete, seen, touching};
use crate::remedy::Remedy;
use crate::words::named;
use crate::{Evidence, Examples, Knob, Lasts, Slice, Source};

pub static KNOB: Knob = Knob {
    id: "rcu-offload-affinity",
    title: "affinity of threads with RCU callbacks",
    what: "rcu_nocbs= and nohz_full= take RCU callbacks out of the softirqs of their CPUs and give them to threads, rcuog/N and rcuop/N, \
           which run wherever their affinity lets them. To keep them off the CPUs that they relieve is up to the user, unless the \
           kernel does it, as with nohz_full=.",
    why: "offloading pays only if the callbacks run elsewhere: a thread on the same CPU runs them there after all, hundreds in a row",
    tell: "The affinity of the threads whose names begin with rcuo. Which callbacks are offloaded is not judged here.",
    cost: "The other CPUs run the callbacks, and need the time for it.",
    wanted: "threads with RCU callbacks on the other CPUs",
    fix: || {
        Remedy::advice(
            Because::Threads,
            "taskset -pc LIST PID with the other CPUs for each thread that `pgrep '^rcuo'` finds",
        )
    },
    severity: Severity::High,
    evidence: Evidence::Documented,
    lasts: Lasts::Runtime,
    sources: &[
        Source {
            title: "kernel: OS jitter due to per-CPU kthreads, rcuop/%d and rcuog/%d",
            url: PER_CPU_KTHREADS,
        },
        Source { title: "kernel: command line, rcu_nocbs=", url: PARAMETERS },
    ],
    cures: &[Slice::Thread],
    after: &["cpu-isolation"],
    facts: &["/proc/PID/stat", "/proc/PID/status"],
    judge,
    examples: Examples {
        fires: concat!("--cpus 2-3\n", thread!(90001, "rcuop/9", 2097152, 0, 0, "0-3")),
        silent: concat!("--cpus 2-3\n/proc absent\n", thread!(90001, "rcuop/9", 2097152, 0, 0, "0-1")),
        unknown: "--cpus 2-3
                /proc refused",
    },
    ..Knob::DEFAULT
};

fn judge(case: &Case) -> Judged {
    case.needs_isolation()?;
    let threads = seen(case)?;
    let cpus = case.cpus();
    let names = touching(threads, cpus, |thread| thread.comm.starts_with("rcuo"))?;
    if names.is_empty() {
        complete(threads)?;
        return match threads.kernel.iter().any(|thread| thread.comm.starts_with("rcuo")) {
            true => Ok(Judgement::pass(format!("none on {}", named(cpus)))),
            false => Err(Judgement::not_applicable("no RCU callbacks are offloaded")),
        };
    }
    // Without load balancing such a thread stays where it began, which is hardly ever there.
    let kept_off = exposed(case).is_ok_and(|cpus| cpus.is_empty());
    let severity = if kept_off { Severity::Medium } else { Severity::High };
    Ok(Judgement::fail(format!("{names} allowed on {}", named(cpus))).severity(severity).fix(Remedy::advice(
        Because::Threads,
        format!("for p in $(pgrep '^rcuo'); do taskset -pc {} $p; done", case.housekeeping()?),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::check;

    #[test]
    fn all_of_them_belong_elsewhere() {
        check(&KNOB, "", "pass none on CPU 2-3");
        let wide = thread!(45, "rcuog/2", 2097152, 0, 0, "0-3");
        check(&KNOB, wide, "fail medium rcuog/2 allowed on CPU 2-3");
        check(
            &KNOB,
            &format!("--cpus 2-3\n/sys/devices/system/cpu/isolated:\n{wide}"),
            "fail high rcuog/2 allowed on CPU 2-3",
        );
        check(
            &KNOB,
            "/proc/44 absent\n/proc/45 absent\n/proc/54 absent",
            "not-applicable no RCU callbacks are offloaded",
        );
        check(&KNOB, "/proc/45/status refused", "unknown");
    }
}
