//! Scheduling policy of the vCPUs of real-time guests.

use super::sources::LIBVIRT_REALTIME;
use crate::change::{AdviceReason, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::virtual_cpus::{EMULATORS, allowed_of, guests, name_of};
use crate::words::{cpu_list, truncate_list};
use facts::tasks::RtPolicy;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "vcpu-policy",
    title: "scheduling policy of virtual CPUs",
    description: "Each virtual CPU is a thread of the host. With SCHED_OTHER it shares its CPU with other \
                  tasks; with SCHED_FIFO only tasks of higher priority run before it.",
    rationale: "a guest's real-time task has no higher priority than the host thread that it runs on: while \
                that thread waits, everything in the guest waits",
    detection: "The policy and priority of the threads called CPU N/KVM (QEMU, with debug-threads=on as \
                libvirt has it), vcpuN, fc_vcpu N and crosvm_vcpuN that may run on the audited CPUs and \
                nowhere else; other guests are not judged. Which of them a guest uses for its real-time \
                tasks is not known. For the profile kvm-host.",
    side_effects: "A guest that computes without a pause blocks the host's ordinary threads on that CPU \
                   forever: the CPU must have no other work. At the priority of the host's interrupt \
                   threads, 50, or above, it stops these too.",
    wanted: "SCHED_FIFO, usually with priority 1, and below 50",
    fix: || {
        Remedy::advice(
            AdviceReason::Threads,
            "<vcpusched vcpus='LIST' scheduler='fifo' priority='1'/> in the guest's <cputune>, or chrt \
             -f -p 1 TID",
        )
    },
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    unsettable: "only the owner knows which guests are real-time",
    sources: &[Source { title: "libvirt: KVM real time guest configuration", url: LIBVIRT_REALTIME }],
    cures: &[SliceKind::Thread, SliceKind::Stopped, SliceKind::Unexplained],
    facts: &["/proc/PID/task/TID/stat", "/proc/PID/task/TID/status"],
    programs: EMULATORS,
    judge,
    examples: Examples {
        fires: "--profile kvm-host
                guest 90001 qemu-kvm 0-1
                vcpu 90002 2 other",
        silent: "--profile kvm-host
                 guest 90001 qemu-kvm 0-1
                 vcpu 90002 2 fifo 1",
        unknown: "--profile kvm-host
                  /proc refused",
    },
    ..Knob::DEFAULT
};

/// Priority of the host's interrupt threads.
const INTERRUPTS: u32 = 50;

fn judge(machine: &MachineView) -> Judged {
    let cpus = machine.cpus();
    let (mut fair, mut high, mut right) = (Vec::new(), Vec::new(), Vec::new());
    for guest in guests(machine)? {
        for vcpu in &guest.vcpus {
            let allowed = allowed_of(vcpu)?;
            if allowed.is_empty() || !allowed.without(cpus).is_empty() {
                continue;
            }
            match vcpu.policy {
                None => fair.push(name_of(guest, vcpu)),
                Some(RtPolicy::Deadline) => right.push(vcpu),
                Some(_) if vcpu.priority >= INTERRUPTS => {
                    high.push(format!("{} at {}", name_of(guest, vcpu), vcpu.priority));
                }
                Some(_) => right.push(vcpu),
            }
        }
    }
    if !fair.is_empty() {
        return Ok(Judgement::fail(format!("SCHED_OTHER: {}", truncate_list(fair))));
    }
    if !high.is_empty() {
        return Ok(Judgement::fail(truncate_list(high)).severity(Severity::Medium).because(
            "a guest that computes without a pause stops the host's interrupt threads on its CPU, and \
             everything that waits for them",
        ));
    }
    if right.is_empty() {
        let words = format!("no virtual CPU is pinned to {}: see vcpu-placement", cpu_list(cpus));
        return Err(Judgement::not_applicable(words));
    }
    Ok(Judgement::pass(format!("real-time: {}", right.len())))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const HOST: &str = "--profile kvm-host\nguest 90001 qemu-kvm 0-1";

    #[test]
    fn the_cpus_of_guests_are_real_time_threads() {
        check(&KNOB, "", "not-applicable it is for hosts of real-time guests: --profile kvm-host");
        let none = "not-applicable no virtual machine runs: start the guests, and ask again";
        check(&KNOB, "--profile kvm-host", none);
        let one = format!("{HOST}\nvcpu 90002 2 other\nvcpu 90003 3 fifo 1");
        check(&KNOB, &one, "fail high SCHED_OTHER: CPU 0/KVM (qemu-kvm, 90002)");
        let both = format!("{HOST}\nvcpu 90002 2 fifo 1\nvcpu 90003 3 rr 2");
        check(&KNOB, &both, "pass real-time: 2");
        let above = format!("{HOST}\nvcpu 90002 2 fifo 60");
        check(&KNOB, &above, "fail medium CPU 0/KVM (qemu-kvm, 90002) at 60");
        // One vCPU is for the guest's own housekeeping.
        let other = format!("{HOST}\nvcpu 90002 0-1 other\nvcpu 90003 3 fifo 1");
        check(&KNOB, &other, "pass real-time: 1");
        check(&KNOB, &format!("{HOST}\nvcpu 90002 0-1 other"), "not-applicable");
    }

    #[test]
    fn threads_without_names_are_not_known() {
        check(&KNOB, "--profile kvm-host\nprogram + qemu-kvm", "unknown");
    }
}
