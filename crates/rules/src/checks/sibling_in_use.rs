//! Cores that are shared with other threads.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{RT_HARDWARE, TOPOLOGY};
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::unknown::unknown_from;
use crate::words::cpu_list;
use facts::process::ProgramThread;

pub static CHECK: CheckRule = CheckRule {
    id: "sibling-in-use",
    title: "a core shared with other work",
    description: "The thread's CPU is one of several hardware threads (SMT) of a core, and the others may \
                  run any work.",
    rationale: "work on the sibling uses part of the core's execution units and caches: the same work takes \
                up to twice as long",
    detection: "By the core topology in /sys/devices/system/cpu, for a thread that is pinned to one CPU. \
                Whether anything runs on the sibling is not checked.",
    wanted: "a core that no other work shares",
    fix: "take the sibling offline, or keep other work off it",
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "kernel: hardware for real time", url: RT_HARDWARE },
        Source { title: "kernel: CPU topology", url: TOPOLOGY },
    ],
    reads: &["/sys/devices/system/cpu/cpu#/topology/thread_siblings_list", "/proc/PID/task/TID/status"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "machine cores=0-1;2-3",
        silent: "machine cores=2-3",
        unknown: "cores refused",
    },
};

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let cores = &program.machine.cores;
    let cores = cores.known().ok_or_else(|| unknown_from("/sys/devices/system/cpu", cores))?;
    let allowed = program.allowed(thread)?;
    if allowed.len() != 1 {
        return Err(Judgement::not_applicable("it is not pinned to one CPU: see no-affinity"));
    }
    let core = allowed.iter().next().and_then(|cpu| cores.iter().find(|core| core.contains(cpu)));
    Ok(match core {
        Some(core) => {
            Judgement::fail(format!("CPU {allowed} shares a core with {}", cpu_list(&core.without(allowed))))
        }
        None => Judgement::pass(format!("CPU {allowed} has no sibling on its core")),
    })
}
