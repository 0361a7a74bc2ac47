//! Placement of the vCPUs of real-time guests, each on a separate CPU.

use std::collections::BTreeMap;

use super::sources::LIBVIRT_REALTIME;
use crate::change::{AdviceReason, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::virtual_cpus::{EMULATORS, allowed_of, guests, name_of, require_host};
use crate::words::{cpu_list, truncate_list};
use model::slice::SliceKind;
use model::units::Cpu;

pub static KNOB: Knob = Knob {
    id: "vcpu-placement",
    title: "placement of virtual CPUs",
    description: "The thread of a virtual CPU runs wherever its affinity allows: after a migration it finds \
                  cold caches, and two of them on one CPU wait for each other.",
    rationale: "a guest whose virtual CPU is migrated, or waits for that of another guest, stops without its \
                tasks noticing",
    detection: "The affinity of the threads called CPU N/KVM, vcpuN, fc_vcpu N and crosvm_vcpuN compared \
                with the isolated CPUs: each thread that may run there should have one CPU and share it with \
                no other. For the profile kvm-host.",
    side_effects: "One dedicated CPU per virtual CPU of a real-time guest.",
    wanted: "one isolated CPU for each",
    fix: || {
        Remedy::advice(
            AdviceReason::Threads,
            "<vcpupin vcpu='N' cpuset='CPU'/> in the guest's <cputune>, or taskset -pc CPU TID, with a \
             different CPU for each",
        )
    },
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    unsettable: "only the owner knows which guests are real-time",
    sources: &[Source { title: "libvirt: KVM real time guest configuration", url: LIBVIRT_REALTIME }],
    cures: &[SliceKind::Thread, SliceKind::Stopped, SliceKind::Unexplained],
    facts: &["/proc/PID/task/TID/status", "/sys/devices/system/cpu/online"],
    programs: EMULATORS,
    judge,
    examples: Examples {
        fires: "--profile kvm-host
                guest 90001 qemu-kvm 0-1
                vcpu 90002 2-3 fifo 1",
        silent: "--profile kvm-host
                 guest 90001 qemu-kvm 0-1
                 vcpu 90002 2 fifo 1",
        unknown: "--profile kvm-host
                  /proc refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    require_host(machine)?;
    machine.require_isolation()?;
    let cpus = machine.cpus();
    let mut loose = Vec::new();
    let mut bound: BTreeMap<Cpu, Vec<String>> = BTreeMap::new();
    for guest in guests(machine)? {
        for vcpu in &guest.vcpus {
            let allowed = allowed_of(vcpu)?;
            match (allowed.len(), allowed.iter().next()) {
                _ if allowed.and(cpus).is_empty() => {}
                (1, Some(cpu)) => bound.entry(cpu).or_default().push(name_of(guest, vcpu)),
                _ => loose.push(format!("{} on {allowed}", name_of(guest, vcpu))),
            }
        }
    }
    if !loose.is_empty() {
        return Ok(Judgement::fail(format!("not pinned to one CPU: {}", truncate_list(loose))));
    }
    let shared = bound.iter().filter(|(_, names)| names.len() > 1);
    let shared = truncate_list(shared.map(|(cpu, names)| format!("CPU {cpu} has {}", names.join(" and "))));
    if !shared.is_empty() {
        return Ok(Judgement::fail(shared));
    }
    if bound.is_empty() {
        let words = format!("no virtual CPU is pinned to {}", cpu_list(cpus));
        return Ok(Judgement::fail(words).severity(Severity::Medium));
    }
    Ok(Judgement::pass(format!("{} pinned, each to a different CPU", bound.len())))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const HOST: &str = "--profile kvm-host\nguest 90001 qemu-kvm 0-1";

    #[test]
    fn each_has_a_cpu_of_its_own() {
        let own = format!("{HOST}\nvcpu 90002 2 fifo 1\nvcpu 90003 3 fifo 1");
        check(&KNOB, &own, "pass 2 pinned, each to a different CPU");
        let loose = format!("{HOST}\nvcpu 90002 2 fifo 1\nvcpu 90003 0-3 other");
        check(&KNOB, &loose, "fail high not pinned to one CPU: CPU 1/KVM (qemu-kvm, 90003) on 0-3");
        let one = format!("{HOST}\nvcpu 90002 2 fifo 1\nvcpu 90003 2 fifo 1");
        let words = "CPU 2 has CPU 0/KVM (qemu-kvm, 90002) and CPU 1/KVM (qemu-kvm, 90003)";
        check(&KNOB, &one, &format!("fail high {words}"));
        let elsewhere = format!("{HOST}\nvcpu 90002 0 other");
        check(&KNOB, &elsewhere, "fail medium no virtual CPU is pinned to CPUs 2-3");
        check(&KNOB, &format!("{own}\n--cpus 0-3"), "not-applicable");
    }
}
