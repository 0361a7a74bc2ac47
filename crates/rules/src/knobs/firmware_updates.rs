//! Firmware updates: fwupd, which queries the versions of the machine's devices and firmware.

use super::unsettable;
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::competing_tuners;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "firmware-updates",
    title: "checks for firmware updates",
    description: "fwupd checks for firmware updates, by a systemd timer as often as every hour or at the \
                  request of a desktop, and accesses the firmware and the devices.",
    rationale: "accessing the firmware can raise system management interrupts, which stop all CPUs, \
                including isolated ones, for an unbounded time",
    detection: "Whether fwupd runs, and systemd's link that enables fwupd-refresh.timer. Only a measurement \
                shows whether this machine's firmware uses system management interrupts. In a virtual \
                machine the host's firmware is not accessed.",
    side_effects: "Firmware security updates are no longer found automatically: check for them while the \
                   machine is not in use.",
    wanted: "fwupd is not running, and its timer is off",
    fix: || {
        Remedy::advice(
            AdviceReason::Program,
            "systemctl disable --now fwupd-refresh.timer; systemctl mask --now fwupd, and unmask \
             it to update",
        )
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Practice,
    disputed: "many machines answer without a system management interrupt: run `onbeat measure` while \
               fwupdmgr refresh and fwupdmgr get-devices run",
    persistence: Persistence::Boot,
    unsettable: unsettable::PROGRAM,
    sources: &[Source {
        title: "OpenShift Node Tuning Operator: fwupd-refresh.timer off in all performance \
                profiles",
        url: "https://github.com/openshift/cluster-node-tuning-operator/pull/1591",
    }],
    cures: &[SliceKind::Stopped, SliceKind::Unexplained],
    reads: &[TIMER],
    facts: &["/proc/PID/stat", "/proc/sys/kernel/arch", "/proc/cpuinfo"],
    programs: PROGRAMS,
    judge,
    examples: Examples {
        fires: "program + fwupd
                /proc/cpuinfo: flags : fpu tsc
                /sys/class/dmi/id/sys_vendor: Maker
                /sys/class/dmi/id/product_name: Desk",
        silent: "/etc/systemd/system/timers.target.wants/fwupd-refresh.timer absent
                 /proc/cpuinfo: flags : fpu tsc
                 /sys/class/dmi/id/sys_vendor: Maker
                 /sys/class/dmi/id/product_name: Desk",
        unknown: "/proc refused
                  /proc/sys/kernel/arch: x86_64
                  /proc/cpuinfo: flags : fpu tsc
                  /sys/class/dmi/id/sys_vendor: Maker
                  /sys/class/dmi/id/product_name: Desk",
    },
    ..Knob::DEFAULT
};

const PROGRAMS: &[&str] = &["fwupd"];
const TIMER: &str = "/etc/systemd/system/timers.target.wants/fwupd-refresh.timer@";

fn judge(machine: &MachineView) -> Judged {
    machine.require_x86()?;
    if machine.is_virtual() == Ok(true) {
        return Err(Judgement::not_applicable("a virtual machine does not reach the firmware of its host"));
    }
    let running = competing_tuners::running_programs(machine.survey, PROGRAMS);
    let runs = || {
        if running.found.is_empty() {
            running.and_no_more().map(|()| Judgement::pass("fwupd does not run"))
        } else {
            Ok(Judgement::fail("fwupd runs"))
        }
    };
    let timer = || match machine.line_if_present(TIMER)? {
        Some(_) => Ok(Judgement::fail("fwupd-refresh.timer is enabled")),
        None => Ok(Judgement::pass("its timer is off")),
    };
    Judgement::all([runs(), timer()])
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const TIMER: &str = "/etc/systemd/system/timers.target.wants/fwupd-refresh.timer";

    #[test]
    fn the_program_and_its_timer_count() {
        check(&KNOB, "", "pass fwupd does not run; its timer is off");
        check(&KNOB, "program + fwupd", "fail medium fwupd runs");
        check(
            &KNOB,
            &format!("{TIMER} -> fwupd-refresh.timer"),
            "fail medium fwupd-refresh.timer is enabled",
        );
        check(&KNOB, &format!("{TIMER} refused"), "unknown");
        check(
            &KNOB,
            &format!("{TIMER} -> x\n/proc/1/stat refused"),
            "fail medium fwupd-refresh.timer is enabled",
        );
        check(&KNOB, "/proc/sys/kernel/arch: aarch64", "not-applicable");
        check(&KNOB, "program + fwupd\n/sys/hypervisor/type: xen", "not-applicable");
    }
}
