//! Swappiness: how readily memory of programs is swapped out rather than cached files dropped.

use super::sources::{RTCQS, SYSCTL_VM};
use crate::change::Change;
use crate::change::Persistence;
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::unknown::unknown_from;
use crate::view::MachineView;
use facts::Fact;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "swappiness",
    title: "swappiness",
    description: "With swap, when memory is short, vm.swappiness balances memory of programs against cached \
                  files: 100 treats both equally, the default of 60 prefers to drop files, 0 swaps only when \
                  hardly any files are left to drop.",
    rationale: "swapped-out memory of a program returns through a page fault that waits for the disk, \
                milliseconds or more",
    detection: "The sysctl, and /proc/swaps. Control groups of v1 have separate values, which are not read. \
                Whether the real-time programs have locked their memory, which is never swapped, is not \
                known.",
    side_effects: "Cached files are dropped sooner and have to be read again from the disk; near 0 the OOM \
                   killer acts earlier when memory is short.",
    wanted: "10 or less",
    fix: || Change::sysctl("vm.swappiness", 10).into(),
    severity: Severity::Info,
    evidence: EvidenceKind::Practice,
    disputed: "a program that locks its memory is not affected, and other programs may benefit from 60: \
               `onbeat measure` under the program's load with either value shows whether page faults are \
               among the spikes",
    persistence: Persistence::Runtime,
    sets: PATH,
    sources: &[
        Source { title: "kernel: /proc/sys/vm, swappiness", url: SYSCTL_VM },
        Source {
            title: "rtcqs, the check of swappiness; tuned's profile latency-performance sets 10",
            url: RTCQS,
        },
    ],
    cures: &[SliceKind::PageFault],
    after: &["swap"],
    reads: &[PATH],
    facts: &["/proc/swaps", "/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "/proc/swaps:
                | Filename Type Size Used Priority
                | /dev/sda2 partition 4194300 0 -2
                /proc/sys/vm/swappiness: 60",
        silent: "/proc/swaps:
                 | Filename Type Size Used Priority
                 | /dev/sda2 partition 4194300 0 -2
                 /proc/sys/vm/swappiness: 10",
        unknown: "/proc/swaps:
                  | Filename Type Size Used Priority
                  | /dev/sda2 partition 4194300 0 -2
                  /proc/sys/vm/swappiness refused",
    },
    ..Knob::DEFAULT
};

const PATH: &str = "/proc/sys/vm/swappiness";

fn judge(machine: &MachineView) -> Judged {
    let swaps = match &machine.survey.swaps {
        Fact::Known(swaps) => swaps,
        Fact::Absent if !machine.kconfig()?.is_yes("SWAP") => {
            return Err(Judgement::not_applicable("this kernel was built without swapping (CONFIG_SWAP)"));
        }
        other => return Err(unknown_from("/proc/swaps", other)),
    };
    if swaps.partitions + swaps.files == 0 {
        return Err(Judgement::not_applicable(match swaps.zram {
            0 => "the machine has no swap",
            // The kernel's document: "For in-memory swap, like zram or zswap, [...] values beyond
            // 100 can be considered."
            _ => "swap is in memory (zram), for which higher values are recommended",
        }));
    }
    match machine.number(PATH)? {
        value @ 0..=10 => Ok(Judgement::pass(value.to_string())),
        value @ 11..=200 => {
            let severity = if machine.has_profile(Profile::Audio) { Severity::Low } else { Severity::Info };
            Ok(Judgement::fail(value.to_string()).severity(severity))
        }
        other => Err(Judgement::unknown(format!("{PATH} is {other}, which no kernel accepts"))),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const DISK: &str = "/proc/swaps:\n| Filename Type Size Used Priority\n| /dev/sda2 partition \
                        4194300 0 -2";

    #[test]
    fn it_applies_where_there_is_swap_on_a_disk() {
        check(&KNOB, "/proc/sys/vm/swappiness: 60", "not-applicable the machine has no swap");
        let zram = DISK.replace("/dev/sda2", "/dev/zram0");
        check(
            &KNOB,
            &format!("{zram}\n/proc/sys/vm/swappiness: 180"),
            "not-applicable swap is in memory (zram), for which higher values are recommended",
        );
        check(&KNOB, &format!("{DISK}\n/proc/sys/vm/swappiness: 60"), "fail info 60");
        check(&KNOB, &format!("{DISK}\n/proc/sys/vm/swappiness: 60\n--profile audio"), "fail low 60");
        check(&KNOB, &format!("{DISK}\n/proc/sys/vm/swappiness: 0"), "pass 0");
        check(&KNOB, "/proc/swaps absent\nCONFIG_SWAP=n", "not-applicable");
    }

    #[test]
    fn what_cannot_be_is_not_judged() {
        check(&KNOB, &format!("{DISK}\n/proc/sys/vm/swappiness: 201"), "unknown");
        check(&KNOB, &format!("{DISK}\n/proc/sys/vm/swappiness absent"), "unknown");
        check(&KNOB, "/proc/swaps refused\n/proc/sys/vm/swappiness: 60", "unknown");
        check(&KNOB, "/proc/swaps absent\nCONFIG_SWAP=y", "unknown /proc/swaps is not there");
    }
}
