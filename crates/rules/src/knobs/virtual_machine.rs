//! A virtual machine: its latency depends on the host.

use super::sources::RT_HARDWARE;
use super::unsettable;
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::truncate;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "virtual-machine",
    title: "virtual machine",
    description: "In a guest each CPU is a thread of the host: it runs when the host schedules it, and \
                  timers, interrupts and idle states go through the hypervisor.",
    rationale: "the host can take the CPU away for any length of time, and nothing inside the guest can \
                prevent or bound it",
    detection: "The processor's flag, the clocks and the names in the firmware tables. The host's setup is \
                not visible from inside: frequencies, idle states, device interrupts, other guests, the \
                priority of the threads that run this guest.",
    side_effects: "Real time in a guest needs a tuned host: virtual CPUs pinned one to one to isolated CPUs, \
                   with real-time priority and locked memory, and no emulated devices in the path.",
    wanted: "bare metal, or a host that was tuned for it",
    fix: || {
        Remedy::advice(
            AdviceReason::Machine,
            "run on bare metal; or tune and audit the host, and audit the guest with --profile guest",
        )
    },
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Firmware,
    unsettable: unsettable::MACHINE,
    sources: &[Source { title: "kernel: considering hardware, virtualization", url: RT_HARDWARE }],
    cures: &[SliceKind::Stopped, SliceKind::Unexplained],
    facts: &[
        "/proc/cpuinfo",
        "/sys/hypervisor/type",
        "/sys/class/dmi/id/sys_vendor",
        "/sys/class/dmi/id/product_name",
        "/proc/device-tree/compatible",
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    ],
    judge,
    examples: Examples {
        fires: "/proc/cpuinfo:
                | flags : fpu tsc hypervisor
                --profile control-loop",
        silent: "--profile guest",
        unknown: "/proc/cpuinfo refused
                  /sys/hypervisor absent
                  /sys/class/dmi/id refused
                  /proc/device-tree absent
                  /sys/devices/system/clocksource/clocksource0/available_clocksource refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    let name = truncate(&machine.facts().virtualization);
    if !machine.is_virtual()? {
        return Ok(Judgement::pass("metal"));
    }
    if machine.has_profile(Profile::Guest) {
        return Ok(Judgement::pass(format!("{name}, as expected")));
    }
    let severity = if machine.has_profile(Profile::Audio) { Severity::Medium } else { Severity::High };
    Ok(Judgement::fail(name).severity(severity))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const GUEST: &str = "/sys/class/dmi/id/sys_vendor: QEMU\n/proc/cpuinfo:\n| flags : fpu \
                         hypervisor";

    #[test]
    fn a_guest_is_fine_where_one_is_meant() {
        check(&KNOB, "", "pass metal");
        check(&KNOB, GUEST, "fail high qemu");
        check(&KNOB, &format!("{GUEST}\n--profile audio"), "fail medium qemu");
        check(&KNOB, &format!("{GUEST}\n--profile guest"), "pass qemu, as expected");
        check(&KNOB, "--profile guest", "pass metal");
        check(&KNOB, "/proc/cpuinfo:\n| flags : hypervisor", "fail high vm-other");
    }
}
