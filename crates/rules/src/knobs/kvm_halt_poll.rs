//! Polling on the host after a guest's CPU has halted.

use super::sources::HALT_POLLING;
use crate::change::{Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::virtual_cpus::require_host;
use model::slice::SliceKind;
use model::units::Nanos;

pub static KNOB: Knob = Knob {
    id: "kvm-halt-poll",
    title: "host polling before a guest sleeps",
    description: "When a guest's CPU halts, KVM polls for up to halt_poll_ns before its thread sleeps, 200 \
                  us by default on x86, and adapts the time to its success.",
    rationale: "a sleeping thread returns through the host's scheduler, and its CPU may be in an idle state \
                by then",
    detection: "The module's parameter, which also applies to new guests; a guest with a separate limit \
                (KVM_CAP_HALT_POLL) is not seen. Guests that poll themselves (idle=poll, haltpoll) never \
                halt, and do not need it. For the profile kvm-host.",
    side_effects: "The CPU is busy while it polls, which costs power and, if several guests share CPUs, \
                   takes time from others; a CPU that is not shared loses nothing.",
    wanted: "above 0, and at least the guest's usual pause",
    fix: || Change::write(TIME, 200_000).into(),
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    disputed: "if guests share CPUs 0 is right, and if they poll themselves it makes no difference: `onbeat \
               measure` in the guest with both values, and `onbeat compare`",
    persistence: Persistence::Runtime,
    sets: TIME,
    sources: &[Source { title: "kernel: the KVM halt polling system", url: HALT_POLLING }],
    cures: &[SliceKind::IdleExit, SliceKind::Unexplained],
    reads: &[TIME],
    judge,
    examples: Examples {
        fires: "--profile kvm-host
                /sys/module/kvm/parameters/halt_poll_ns: 0",
        silent: "--profile kvm-host
                 /sys/module/kvm/parameters/halt_poll_ns: 200000",
        unknown: "--profile kvm-host
                  /sys/module/kvm/parameters/halt_poll_ns refused",
    },
    ..Knob::DEFAULT
};

const TIME: &str = "/sys/module/kvm/parameters/halt_poll_ns";

fn judge(machine: &MachineView) -> Judged {
    require_host(machine)?;
    match machine.number_if_present(TIME)? {
        None => Err(Judgement::not_applicable("KVM is not loaded")),
        Some(0) => Ok(Judgement::fail("0").fix(
            Remedy::from(Change::write(TIME, 200_000))
                .persist(Change::cmdline_add("kvm.halt_poll_ns=200000")),
        )),
        Some(time) => Ok(Judgement::pass(Nanos(time).spaced().to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::{KNOB, TIME};
    use crate::fixture::check;

    #[test]
    fn the_time_counts_on_a_host() {
        check(&KNOB, &format!("--profile kvm-host\n{TIME}: 0"), "fail low 0");
        check(&KNOB, &format!("--profile kvm-host\n{TIME}: 200000"), "pass 200 us");
        check(&KNOB, "--profile kvm-host", "not-applicable KVM is not loaded");
        check(&KNOB, &format!("{TIME}: 0"), "not-applicable");
    }
}
