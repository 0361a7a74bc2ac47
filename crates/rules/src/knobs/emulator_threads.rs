//! Threads of a real-time guest's program other than its vCPUs.

use super::sources::LIBVIRT_REALTIME;
use crate::change::{AdviceReason, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::virtual_cpus::{EMULATORS, allowed_of, guests, require_host};
use crate::words::truncate_list;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "emulator-threads",
    title: "emulator threads on the CPUs of guests",
    description: "Besides the threads of the guest's virtual CPUs, QEMU has threads for devices, storage, \
                  migration and the monitor, which have the placement of its first thread.",
    rationale: "an emulator thread on the CPU of a virtual CPU takes time from it, or never runs if that one \
                is SCHED_FIFO: then a device that the guest waits for does not answer",
    detection: "The affinity of the first thread of each program with threads that are named as virtual \
                CPUs. Threads with a separate placement (iothreads) are not seen, nor are vhost kernel \
                threads. For the profile kvm-host.",
    side_effects: "Emulated devices are served by the remaining CPUs.",
    wanted: "the housekeeping CPUs",
    fix: || {
        Remedy::advice(
            AdviceReason::Threads,
            "<emulatorpin cpuset='LIST'/> in the guest's <cputune> with the housekeeping CPUs, or taskset \
             -pc LIST PID",
        )
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    unsettable: "only the owner knows which guests are real-time",
    sources: &[Source { title: "libvirt: KVM real time guest configuration", url: LIBVIRT_REALTIME }],
    cures: &[SliceKind::Thread],
    facts: &["/proc/PID/status", "/sys/devices/system/cpu/online"],
    programs: EMULATORS,
    judge,
    examples: Examples {
        fires: "--profile kvm-host
                guest 90001 qemu-kvm 0-3
                vcpu 90002 2 fifo 1",
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
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for guest in guests(machine)? {
        let emulator = &guest.emulator;
        let both = allowed_of(emulator)?.and(cpus);
        let name = format!("{} ({})", emulator.comm, emulator.tid);
        if both.is_empty() { outside.push(name) } else { inside.push(format!("{name} on {both}")) }
    }
    if inside.is_empty() {
        return Ok(Judgement::pass(format!("kept off: {}", truncate_list(outside))));
    }
    Ok(Judgement::fail(truncate_list(inside)))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn the_first_thread_shows_where_the_others_go() {
        let guest =
            |cpus: &str| format!("--profile kvm-host\nguest 90001 qemu-kvm {cpus}\nvcpu 90002 2 fifo 1");
        check(&KNOB, &guest("0-1"), "pass kept off: qemu-kvm (90001)");
        check(&KNOB, &guest("1-2"), "fail medium qemu-kvm (90001) on 2");
        check(&KNOB, "", "not-applicable it is for hosts of real-time guests: --profile kvm-host");
    }
}
