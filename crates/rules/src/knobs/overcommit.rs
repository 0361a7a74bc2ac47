//! Overcommit: whether the kernel promises more memory than there is.

use super::sources::{OVERCOMMIT, SYSCTL_VM};
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "overcommit",
    title: "memory overcommit",
    description: "Whether programs may be promised more memory than exists: by a heuristic (0, the default), \
                  always (1), or never beyond swap and a share of the memory (2).",
    rationale: "if too much was promised, the last program to touch its memory triggers reclaim and then the \
                OOM killer, which scans all tasks and may choose the wrong one",
    detection: "vm.overcommit_memory. Whether memory is short is not checked: with enough memory the setting \
                makes no difference.",
    side_effects: "With 2, programs that request far more than they use, such as those with many threads or \
                   large heaps, are refused memory and may not start; vm.overcommit_ratio has to fit the \
                   machine.",
    wanted: "2, on machines whose programs are known",
    fix: || {
        Remedy::from(Change::sysctl("vm.overcommit_memory", 2))
            .note("before that, set vm.overcommit_ratio to what may be promised")
    },
    severity: Severity::Info,
    evidence: EvidenceKind::Practice,
    disputed: "a real-time program that allocates and locks its memory at its start does not depend on it, \
               and 2 breaks programs of desktops and container hosts: `onbeat measure` under the machine's \
               heaviest load shows whether reclaim or the OOM killer ever causes spikes",
    persistence: Persistence::Runtime,
    unsettable: "the limit depends on the machine's programs: if it is too low they fail, and logins too",
    sources: &[
        Source { title: "kernel: overcommit accounting", url: OVERCOMMIT },
        Source {
            title: "kernel: /proc/sys/vm, overcommit_memory and oom_kill_allocating_task",
            url: SYSCTL_VM,
        },
    ],
    cures: &[SliceKind::PageFault, SliceKind::LockContention],
    reads: &[PATH],
    judge,
    examples: Examples {
        fires: "/proc/sys/vm/overcommit_memory: 0",
        silent: "/proc/sys/vm/overcommit_memory: 2",
        unknown: "/proc/sys/vm/overcommit_memory refused",
    },
    ..Knob::DEFAULT
};

const PATH: &str = "/proc/sys/vm/overcommit_memory";

fn judge(machine: &MachineView) -> Judged {
    match machine.number(PATH)? {
        2 => Ok(Judgement::pass("2, never")),
        1 => Ok(Judgement::fail("1, always")),
        0 => Ok(Judgement::fail("0, by a heuristic")),
        other => Err(Judgement::unknown(format!("{PATH} is {other}, which is not a known value"))),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn only_never_passes() {
        check(&KNOB, "", "pass 2, never");
        check(&KNOB, "/proc/sys/vm/overcommit_memory: 0", "fail info 0, by a heuristic");
        check(&KNOB, "/proc/sys/vm/overcommit_memory: 1", "fail info 1, always");
        check(&KNOB, "/proc/sys/vm/overcommit_memory: 3", "unknown");
        check(&KNOB, "/proc/sys/vm/overcommit_memory absent", "unknown");
    }
}
