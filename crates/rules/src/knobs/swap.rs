//! Swap: whether memory can be taken away from programs and has to be fetched back.

use super::sources::ISOLATION;
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::{unknown_absent, unknown_from};
use crate::view::MachineView;
use facts::Fact;
use facts::kconfig::OptionValue;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "swap",
    title: "swap",
    description: "Storage for memory of programs that was not used for some time: partitions, files, or \
                  compressed memory (zram).",
    rationale: "a swapped-out page returns through a page fault that waits for the disk, milliseconds or \
                more, or for the decompression with zram",
    detection: "The types in /proc/swaps; their locations are not recorded. Programs that lock their memory \
                are not distinguished, and zswap appears only as the partition or file behind it. Without \
                swap, pages of files that are not locked, such as programs and libraries, are still dropped \
                and read again.",
    side_effects: "Without swap a machine that runs out of memory kills programs immediately instead of \
                   becoming slow first: keep memory free, or limit the memory of other programs with control \
                   groups.",
    wanted: "no swap, or all memory of the real-time programs is locked",
    fix: || {
        Remedy::advice(
            AdviceReason::Program,
            "swapoff -a; to keep it, remove the swap lines from /etc/fstab, and disable dphys-swapfile and \
             the zram generator; in any case lock the memory of real-time programs with mlockall",
        )
    },
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    disputed: "a program that calls mlockall is never swapped, and other programs may benefit from swap: \
               `onbeat measure` under the program's load, with swap on and off, shows whether page faults \
               are among the spikes",
    persistence: Persistence::Runtime,
    unsettable: "swapped-out memory has to fit into RAM when swap is switched off; otherwise programs are \
                 killed",
    sources: &[
        Source { title: "kernel: CPU isolation, checklist: mlock", url: ISOLATION },
        Source {
            title: "mlock(2), notes on real-time processes",
            url: "https://man7.org/linux/man-pages/man2/mlock.2.html",
        },
    ],
    cures: &[SliceKind::PageFault],
    facts: &["/proc/swaps", "/proc/meminfo", "/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "/proc/swaps:
                | Filename Type Size Used Priority
                | /dev/sda2 partition 4194300 0 -2",
        silent: "/proc/swaps:
                 | Filename Type Size Used Priority",
        unknown: "/proc/swaps refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    let swaps = match &machine.survey.swaps {
        Fact::Known(swaps) => swaps,
        Fact::Absent => match machine.kconfig()?.get("SWAP") {
            OptionValue::No | OptionValue::Absent => {
                return Err(Judgement::not_applicable(
                    "this kernel was built without swapping (CONFIG_SWAP)",
                ));
            }
            _ => return Err(unknown_absent("/proc/swaps")),
        },
        other => return Err(unknown_from("/proc/swaps", other)),
    };
    let kinds = [(swaps.partitions, "partition"), (swaps.files, "file"), (swaps.zram, "zram device")];
    let count_text = |&(count, kind): &(u64, &str)| match count {
        0 => None,
        1 => Some(format!("1 {kind}")),
        _ => Some(format!("{count} {kind}s")),
    };
    let value = kinds.iter().filter_map(count_text).collect::<Vec<_>>().join(", ");
    if value.is_empty() {
        return Ok(Judgement::pass("none"));
    }
    let severity = match swaps.partitions + swaps.files {
        0 => Severity::Low,
        _ if machine.has_profile(Profile::Audio) => Severity::Medium,
        _ => Severity::High,
    };
    Ok(Judgement::fail(value).severity(severity))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const HEADER: &str = "/proc/swaps:\n| Filename Type Size Used Priority";

    #[test]
    fn kinds_weigh_differently() {
        check(&KNOB, "", "pass none");
        check(&KNOB, &format!("{HEADER}\n| /dev/zram0 partition 1 0 100"), "fail low 1 zram device");
        let both =
            format!("{HEADER}\n| /dev/zram0 partition 1 0 100\n| /swap file 1 0 -2\n| /swap2 file 1 0 -3");
        check(&KNOB, &both, "fail high 2 files, 1 zram device");
        check(&KNOB, &format!("{both}\n--profile audio"), "fail medium");
    }

    #[test]
    fn no_file_is_no_swap_only_where_the_kernel_has_none() {
        check(&KNOB, "/proc/swaps absent\nCONFIG_SWAP=y", "unknown /proc/swaps is not there");
        check(&KNOB, "/proc/swaps absent\nCONFIG_SWAP=n", "not-applicable");
        check(&KNOB, "/proc/swaps absent\n/boot/config-6.12.9-rt-amd64 absent", "unknown");
        check(&KNOB, "/proc/swaps: none\nCONFIG_SWAP=n", "unknown");
    }
}
