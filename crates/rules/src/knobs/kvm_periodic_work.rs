//! Periodic work of KVM on all CPUs of guests.

use super::sources::{PARAMETERS, TUNED_KVM};
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::virtual_cpus::require_host;
use facts::kbool::kbool;
use facts::kconfig::OptionValue;
use facts::line::parse_i64;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "kvm-periodic-work",
    title: "periodic work of KVM",
    description: "With kvmclock_periodic_sync a work item makes all CPUs of each guest exit every five \
                  minutes; with ple_gap a virtual CPU exits when it seems to spin for a lock, so that \
                  another one may run.",
    rationale: "the exit interrupts the work of the guest, and a virtual CPU that does not share its \
                physical CPU gains nothing from it",
    detection: "The parameters of the modules kvm and kvm_intel, as TuneD's profile \
                realtime-virtual-host sets them; kvm_amd's pause_filter_count is not judged. For the \
                profile kvm-host.",
    side_effects: "Without the periodic work the clocks of guests that change frequency may drift; \
                   without ple_gap guests that share CPUs waste time on locks.",
    wanted: "kvmclock_periodic_sync N, ple_gap 0",
    fix: || {
        Remedy::advice(
            AdviceReason::Program,
            "options kvm kvmclock_periodic_sync=N and options kvm_intel ple_gap=0 in /etc/modprobe.d, and \
             reload the modules",
        )
    },
    severity: Severity::Low,
    evidence: EvidenceKind::Practice,
    disputed: "stops of microseconds every five minutes appear only in long runs: use `onbeat measure -D 1h` \
               in the guest",
    persistence: Persistence::Boot,
    unsettable: "a loaded module keeps its options, and guests run on it",
    sources: &[
        Source { title: "TuneD: realtime-virtual-host", url: TUNED_KVM },
        Source { title: "kernel: command line, kvm and kvm-intel", url: PARAMETERS },
    ],
    cures: &[SliceKind::Ipi, SliceKind::Stopped, SliceKind::Unexplained],
    reads: &[SYNC, GAP],
    judge,
    examples: Examples {
        fires: "--profile kvm-host
                /sys/module/kvm/parameters/kvmclock_periodic_sync: Y",
        silent: "--profile kvm-host
                 /sys/module/kvm/parameters/kvmclock_periodic_sync: N
                 /sys/module/kvm_intel/parameters/ple_gap: 0",
        unknown: "--profile kvm-host
                  /sys/module/kvm/parameters/kvmclock_periodic_sync refused",
    },
    ..Knob::DEFAULT
};

const SYNC: &str = "/sys/module/kvm/parameters/kvmclock_periodic_sync";
const GAP: &str = "/sys/module/kvm_intel/parameters/ple_gap";

fn judge(machine: &MachineView) -> Judged {
    require_host(machine)?;
    let flag = |text: &str| kbool(text.trim(), None).ok_or_else(|| "expected Y or N".to_owned());
    let (sync, gap) = (machine.parsed(SYNC, flag), machine.parsed(GAP, parse_i64));
    let (mut found, mut off) = (Vec::new(), Vec::new());
    if sync == Ok(Some(true)) {
        found.push("kvmclock_periodic_sync Y".to_owned());
        off.push(parameter(machine, "KVM", "kvm", "kvmclock_periodic_sync=N"));
    }
    if let Ok(Some(gap @ 1..)) = gap {
        found.push(format!("ple_gap {gap}"));
        off.push(parameter(machine, "KVM_INTEL", "kvm_intel", "ple_gap=0"));
    }
    if !found.is_empty() {
        return Ok(Judgement::fail(found.join(", ")).fix(Remedy::of(off)));
    }
    match (sync?, gap?) {
        (None, None) => Err(Judgement::not_applicable("KVM of x86 is not loaded")),
        _ => Ok(Judgement::pass("off")),
    }
}

/// The parameter where this kernel takes it: on its command line where the option is built in.
fn parameter(machine: &MachineView, option: &str, module: &str, word: &str) -> Change {
    match machine.facts().kconfig.known().map(|config| config.get(option)) {
        Some(OptionValue::Yes) => Change::cmdline_add(format!("{module}.{word}")),
        _ => Change::advice(
            AdviceReason::Program,
            format!("options {module} {word} in /etc/modprobe.d, and reload {module}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{GAP, KNOB, SYNC};
    use crate::fixture::{Machine, check};

    #[test]
    fn each_parameter_counts() {
        let host = |text: &str| format!("--profile kvm-host\n{text}");
        let both = format!("{SYNC}: Y\n{GAP}: 128");
        check(&KNOB, &host(&both), "fail low kvmclock_periodic_sync Y, ple_gap 128");
        check(&KNOB, &host(&format!("{SYNC} refused\n{GAP}: 128")), "fail low ple_gap 128");
        check(&KNOB, &host(&format!("{SYNC}: N\n{GAP}: 0")), "pass off");
        check(&KNOB, &host(&format!("{SYNC}: N")), "pass off");
        check(&KNOB, &host(""), "not-applicable KVM of x86 is not loaded");
        check(&KNOB, &both, "not-applicable");
        let fix = |edits: &str| {
            let mut machine = Machine::base();
            machine.edit(&host(edits));
            machine.finding(&KNOB).fix
        };
        let module = fix(&format!("{SYNC}: Y\nCONFIG_KVM=m"));
        assert_eq!(module, "options kvm kvmclock_periodic_sync=N in /etc/modprobe.d, and reload kvm");
        let built_in = fix(&format!("{GAP}: 128\nCONFIG_KVM_INTEL=y"));
        assert!(built_in.starts_with("add kvm_intel.ple_gap=0 to"), "{built_in}");
    }
}
