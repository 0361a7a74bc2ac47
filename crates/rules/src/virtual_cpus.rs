//! Guests of a host of real-time guests, for the rules about them.

use crate::competing_tuners::running_programs;
use crate::intent::Profile;
use crate::judgement::Judgement;
use crate::kernel_threads::require_complete;
use crate::unknown::unknown_from;
use crate::view::MachineView;
use facts::threads::{GuestThreads, Thread};
use model::units::CpuSet;

/// Programs that run guests, with their names truncated as in the kernel; some name their threads
/// so that vCPUs can be recognized.
pub const EMULATORS: &[&str] = &[
    "qemu-system-x86",
    "qemu-system-aar",
    "qemu-system-ris",
    "qemu-kvm",
    "cloud-hyperviso",
    "firecracker",
    "crosvm",
];

/// Returns early unless the machine is a host of real-time guests.
pub fn require_host(machine: &MachineView) -> Result<(), Judgement> {
    if machine.has_profile(Profile::KvmHost) {
        return Ok(());
    }
    Err(Judgement::not_applicable("it is for hosts of real-time guests: --profile kvm-host"))
}

/// The running guests; unknown if there may be one that is not visible.
pub fn guests<'a>(machine: &MachineView<'a>) -> Result<&'a [GuestThreads], Judgement> {
    require_host(machine)?;
    let threads = machine.known(&machine.survey.threads, "/proc")?;
    let running = running_programs(machine.survey, EMULATORS);
    let is_guest = |found: &str| threads.guests.iter().any(|guest| guest.emulator.comm == found);
    let unnamed = running.found.iter().find(|found| !is_guest(found));
    if let Some(program) = unnamed {
        return Err(Judgement::unknown(format!(
            "{program} runs, and none of its threads is named as a CPU: -name debug-threads=on in QEMU"
        )));
    }
    if threads.guests.is_empty() {
        require_complete(threads)?;
        running.and_no_more()?;
        return Err(Judgement::not_applicable("no virtual machine runs: start the guests, and ask again"));
    }
    Ok(&threads.guests)
}

/// CPUs that a thread may run on.
pub fn allowed_of(thread: &Thread) -> Result<&CpuSet, Judgement> {
    let path = format!("the affinity of {}", thread.comm);
    thread.allowed.known().ok_or_else(|| unknown_from(&path, &thread.allowed))
}

/// Name of a vCPU among others: `CPU 1/KVM (qemu-kvm, 602)`.
pub fn name_of(guest: &GuestThreads, vcpu: &Thread) -> String {
    format!("{} ({}, {})", vcpu.comm, guest.emulator.comm, vcpu.tid)
}
