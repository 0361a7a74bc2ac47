//! Laptop mode: writes are delayed until the disk spins anyway.

use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "laptop-mode",
    title: "laptop mode",
    description: "Delays writes so that a disk can spin down, and writes all changed data some seconds after \
                  the disk was read. Power-saving tools set vm.laptop_mode. The default is 0, and newer \
                  kernels keep the file but ignore it.",
    rationale: "all changed data is written at once after a read: a burst that keeps storage, its interrupts \
                and memory busy",
    detection: "vm.laptop_mode. From 7.0 on any value passes: laptop mode was removed from the kernel after \
                6.19.",
    side_effects: "Rotating disks spin down less often.",
    wanted: "0",
    fix: || Remedy::from(Change::sysctl("vm.laptop_mode", 0)).note("stop the program that sets it"),
    severity: Severity::Info,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sets: PATH,
    sources: &[
        Source {
            title: "kernel 6.12: laptop mode",
            url: "https://www.kernel.org/doc/html/v6.12/admin-guide/laptops/laptop-mode.html",
        },
        Source {
            title: "Linux: mm/block/fs: remove laptop_mode",
            url: "https://github.com/torvalds/linux/commit/64dd89ae01f2708a508e028c28b7906e4702a9a7",
        },
    ],
    cures: &[SliceKind::Workqueue],
    reads: &[PATH],
    facts: &["/proc/sys/kernel/osrelease"],
    judge,
    examples: Examples {
        fires: "/proc/sys/vm/laptop_mode: 5",
        silent: "/proc/sys/vm/laptop_mode: 0",
        unknown: "/proc/sys/vm/laptop_mode refused",
    },
    ..Knob::DEFAULT
};

const PATH: &str = "/proc/sys/vm/laptop_mode";

fn judge(machine: &MachineView) -> Judged {
    let seconds = machine.number_if_present(PATH)?;
    if seconds == Some(0) {
        return Ok(Judgement::pass("0"));
    }
    // Newer kernels show the number that was written, but ignore it.
    if machine.series()? >= (7, 0) {
        return Err(Judgement::not_applicable("laptop mode was removed from the kernel after 6.19"));
    }
    Ok(Judgement::fail(seconds.ok_or_else(|| unknown_absent(PATH))?.to_string()))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn newer_kernels_ignore_it() {
        check(&KNOB, "", "pass 0");
        check(&KNOB, "/proc/sys/vm/laptop_mode: 2", "fail info 2");
        check(&KNOB, "/proc/sys/vm/laptop_mode absent", "unknown");
        let newer = "/proc/sys/kernel/osrelease: 7.1.0\n/proc/sys/vm/laptop_mode";
        check(&KNOB, &format!("{newer} absent"), "not-applicable");
        check(&KNOB, &format!("{newer}: 5"), "not-applicable");
        check(&KNOB, &format!("{newer}: 0"), "pass 0");
    }
}
