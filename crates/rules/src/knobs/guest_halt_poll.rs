//! Polling before a guest halts: to be awake without asking the host.

use super::sources::GUEST_POLLING;
use crate::change::{AdviceReason, Change, Persistence};
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use crate::words::truncate;
use facts::Fact;
use facts::kconfig::OptionValue;
use facts::virt::UNNAMED;
use model::slice::SliceKind;
use model::units::Nanos;

pub static KNOB: Knob = Knob {
    id: "guest-halt-poll",
    title: "polling before a guest halts",
    description: "When a guest's CPU becomes idle it halts, which returns it to the host. With the cpuidle \
                  driver and governor haltpoll it first polls for up to guest_halt_poll_ns, 200 us by \
                  default.",
    rationale: "a halted guest is woken through the host: an exit, a wake-up of the host's thread and an \
                entry come before the wake-up of the task",
    detection: "The cpuidle driver and the polling time. Guests with real idle states, or with idle=poll, do \
                not need it; whether the host polls instead (kvm.halt_poll_ns) is not visible.",
    side_effects: "The host's CPU is busy while the guest polls, even if other tasks wait for it. The driver \
                   does not load if any idle= parameter is given.",
    wanted: "haltpoll, with a time longer than the usual pause",
    fix: || {
        Remedy::advice(
            AdviceReason::Program,
            "modprobe cpuidle_haltpoll force=1, to keep it with the module in /etc/modules-load.d and its \
             option in /etc/modprobe.d; or let the host set the hint that loads it: -cpu \
             host,kvm-hint-dedicated=on in QEMU",
        )
    },
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    disputed: "polling on the host does the same without the guest, at the cost of the exits: `onbeat \
               compare` runs with each",
    persistence: Persistence::Runtime,
    unsettable: "the polling time is a choice, and a loaded module keeps its options",
    sources: &[Source { title: "kernel: guest halt polling", url: GUEST_POLLING }],
    cures: &[SliceKind::IdleExit, SliceKind::Unexplained],
    reads: &[TIME],
    facts: &[
        "/proc/sys/kernel/arch",
        "/proc/cmdline",
        "/sys/devices/system/cpu/cpuidle/current_driver",
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    ],
    judge,
    examples: Examples {
        fires: "/proc/sys/kernel/arch: x86_64
                /sys/devices/system/clocksource/clocksource0/available_clocksource: kvm-clock tsc acpi_pm
                /proc/cpuinfo:
                | flags : fpu tsc hypervisor
                cmdline - idle=poll
                /sys/devices/system/cpu/cpuidle/current_driver: none",
        silent: "/proc/sys/kernel/arch: x86_64
                 /sys/devices/system/clocksource/clocksource0/available_clocksource: kvm-clock tsc acpi_pm
                 /proc/cpuinfo:
                 | flags : fpu tsc hypervisor
                 cmdline - idle=poll
                 /sys/devices/system/cpu/cpuidle/current_driver: haltpoll
                 /sys/module/haltpoll/parameters/guest_halt_poll_ns: 200000",
        unknown: "/proc/sys/kernel/arch: x86_64
                  /sys/devices/system/clocksource/clocksource0/available_clocksource: kvm-clock tsc acpi_pm
                  /proc/cpuinfo:
                  | flags : fpu tsc hypervisor
                  cmdline - idle=poll
                  /sys/devices/system/cpu/cpuidle/current_driver refused",
    },
    ..Knob::DEFAULT
};

const TIME: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";
const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";

fn judge(machine: &MachineView) -> Judged {
    let guest = machine.is_virtual()?;
    let name = truncate(&machine.facts().virtualization);
    if !guest {
        return Err(Judgement::not_applicable("this is not a guest"));
    }
    machine.require_x86()?;
    // Its driver registers in guests of KVM alone (haltpoll_init() of drivers/cpuidle).
    let is_kvm = machine.facts().cpuidle_driver.known().is_some_and(|driver| driver == "haltpoll");
    if name == UNNAMED && !is_kvm {
        return Err(Judgement::unknown("the hypervisor is not known: KVM is required"));
    }
    if name != "kvm" && !is_kvm {
        return Err(Judgement::not_applicable(format!("KVM is required; this is {name}")));
    }
    if machine.has_profile(Profile::BusyPoll) {
        return Err(Judgement::not_applicable(
            "a thread that never sleeps leaves its CPU no idle time to poll in",
        ));
    }
    if machine.cmdline()?.has("idle") {
        return Err(Judgement::not_applicable("idle= is given, and no other idle driver works with it"));
    }
    let driver = match &machine.facts().cpuidle_driver {
        // Without CONFIG_CPU_IDLE there are no drivers at all.
        Fact::Absent if !machine.kconfig()?.is_yes("CPU_IDLE") => "none",
        driver => machine.known(driver, DRIVER)?.as_str(),
    };
    match driver {
        "haltpoll" => match machine.number_if_present(TIME)?.ok_or_else(|| unknown_absent(TIME))? {
            0 => {
                Ok(Judgement::fail("haltpoll for 0 ns").fix(Remedy::from(Change::write(TIME, 200_000)).note(
                    "longer if the task's pauses are \
                                                                      longer",
                )))
            }
            time => Ok(Judgement::pass(format!("haltpoll for {}", Nanos(time).spaced()))),
        },
        "none" => Ok(Judgement::fail("halts at once").fix(forced(machine))),
        other => Err(Judgement::not_applicable(format!("it has real idle states: {}", truncate(other)))),
    }
}

/// The driver, where it is no module (drivers/cpuidle/cpuidle-haltpoll.c); the usual remedy where
/// it is one.
fn forced(machine: &MachineView) -> Remedy {
    let force = Change::cmdline_add("cpuidle_haltpoll.force=1");
    match machine.facts().kconfig.known().map(|config| config.get("HALTPOLL_CPUIDLE")) {
        Some(OptionValue::Yes) => force.into(),
        Some(OptionValue::No) => Remedy::of([Change::kconfig("HALTPOLL_CPUIDLE", "y"), force]),
        _ => Remedy::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::{DRIVER, KNOB, TIME};
    use crate::fixture::{Machine, check};

    const GUEST: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource: \
                         kvm-clock tsc\n/proc/cpuinfo:\n| flags : fpu hypervisor";

    #[test]
    fn it_is_for_guests_that_halt() {
        check(&KNOB, "", "not-applicable this is not a guest");
        check(&KNOB, &format!("{GUEST}\n{DRIVER}: none"), "fail low halts at once");
        for (option, remedy) in [
            ("m", "modprobe cpuidle_haltpoll"),
            ("y", "add cpuidle_haltpoll.force=1 to"),
            ("n", "boot a kernel built with CONFIG_HALTPOLL_CPUIDLE, and add cpuidle_haltpoll.force=1"),
        ] {
            let mut machine = Machine::base();
            machine.edit(&format!("{GUEST}\n{DRIVER}: none\nCONFIG_HALTPOLL_CPUIDLE={option}"));
            let fix = machine.finding(&KNOB).fix;
            assert!(fix.starts_with(remedy), "{fix}");
        }
        check(&KNOB, &format!("{GUEST}\n{DRIVER}: haltpoll\n{TIME}: 200000"), "pass haltpoll for 200 us");
        check(&KNOB, &format!("{GUEST}\n{DRIVER}: haltpoll\n{TIME}: 0"), "fail low haltpoll for 0 ns");
        check(&KNOB, &format!("{GUEST}\n{DRIVER}: none\n--profile busy-poll"), "not-applicable");
        check(&KNOB, &format!("{GUEST}\n{DRIVER}: haltpoll\n{TIME} absent"), "unknown");
        check(
            &KNOB,
            &format!("{GUEST}\n{DRIVER}: intel_idle"),
            "not-applicable it has real idle states: intel_idle",
        );
        check(
            &KNOB,
            &format!("{GUEST}\ncmdline + idle=poll"),
            "not-applicable idle= is given, and no other idle driver works with it",
        );
        let unnamed = "/proc/cpuinfo:\n| flags : fpu hypervisor";
        check(&KNOB, unnamed, "unknown");
        check(&KNOB, &format!("{unnamed}\n{DRIVER}: haltpoll\n{TIME}: 0"), "fail low haltpoll for 0 ns");
    }

    #[test]
    fn a_kernel_without_idle_drivers_halts() {
        let none = format!("{GUEST}\n/sys/devices/system/cpu/cpuidle absent");
        check(&KNOB, &format!("{none}\nCONFIG_CPU_IDLE=n"), "fail low halts at once");
        check(&KNOB, &format!("{none}\nCONFIG_CPU_IDLE=y"), "unknown");
        check(&KNOB, &format!("{none}\n/boot/config-6.12.9-rt-amd64 absent"), "unknown");
    }
}
