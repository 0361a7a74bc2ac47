//! Full dynamic ticks: whether what must hold for the tick to stop does hold.

use super::parameter_conflicts::{POSSIBLE, PRESENT, refused_ticks};
use super::rcu_lazy::{PARAMETER, prompt_callbacks};
use super::sources::{ISOLATION, ISOLATION_C, NO_HZ, RT_CONFIG};
use crate::change::{AdviceReason, Change, Persistence};
use crate::intent::Profile;
use crate::judgement::{AuditVerdict, Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_from;
use crate::view::MachineView;
use crate::words::{cpu_list, truncate};
use facts::Fact;
use facts::kconfig::OptionValue;
use model::slice::SliceKind;
use model::units::{Cpu, CpuSet, named_cpus};

pub static KNOB: Knob = Knob {
    id: "tick-off",
    title: "stopping the tick",
    description: "nohz_full= names CPUs whose tick stops while they run a single task. It takes effect only \
                  if the kernel has NO_HZ_FULL, accepted the list, has dynamic ticks enabled, and has a \
                  stable clock; RCU callbacks of these CPUs are then handled on other CPUs.",
    rationale: "if the tick does not stop, it interrupts the task 100 to 1000 times a second, in addition to \
                the cost of nohz_full=",
    detection: "The list that the kernel accepted, the command line, and whether the TSC is still available \
                as a clocksource. Reasons for a tick at run time are not seen: a second runnable task, POSIX \
                CPU timers, sampling perf events, deadline tasks. A hypervisor's clock does not show whether \
                it is stable.",
    side_effects: "Each kernel entry and exit takes longer, because CPU time is accounted there: it is for \
                   threads that rarely enter the kernel. The kernel's guide advises against it for periodic \
                   loops.",
    wanted: "no tick on the audited CPUs",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "boot with nohz_full= and the audited CPUs (not all CPUs of the machine), on a kernel with \
             CONFIG_NO_HZ_FULL, and on x86 with a stable TSC",
        )
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    disputed: "a tick costs some microseconds, and stopping it makes each kernel entry more expensive: \
               `onbeat compare` of runs with and without nohz_full decides it for one program",
    persistence: Persistence::Boot,
    unsettable: "the tick stops only on CPUs in nohz_full= at boot, and depends on the tasks there",
    sources: &[
        Source { title: "kernel: CPU isolation, full dynticks", url: ISOLATION },
        Source { title: "kernel: real-time kernel configuration, CONFIG_NO_HZ_FULL", url: RT_CONFIG },
        Source { title: "kernel: reducing scheduling-clock ticks", url: NO_HZ },
        Source { title: "kernel source: kernel/sched/isolation.c, housekeeping_setup()", url: ISOLATION_C },
    ],
    cures: &[SliceKind::TimerIrq, SliceKind::TimerSoftirq],
    after: &["clocksource"],
    conflicts: &["idle-tick"],
    reads: &[PARAMETER, POSSIBLE, PRESENT],
    facts: &[
        "/sys/devices/system/cpu/nohz_full",
        "/sys/devices/system/cpu/online",
        "/sys/devices/system/cpu/isolated",
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
        "/proc/cmdline",
        "/proc/sys/kernel/arch",
        "/boot/config-RELEASE",
    ],
    judge,
    examples: Examples {
        fires: "--profile busy-poll
                --cpus 2-3
                cmdline + nohz_full=2-3
                /sys/devices/system/cpu/nohz_full: 3",
        silent: "--profile busy-poll
                 --cpus 2-3
                 /proc/sys/kernel/arch: x86_64
                 cmdline + nohz_full=2-3
                 /sys/devices/system/cpu/nohz_full: 2-3
                 /sys/devices/system/clocksource/clocksource0/available_clocksource: tsc hpet acpi_pm",
        unknown: "--profile busy-poll
                  --cpus 2-3
                  cmdline + nohz_full=2-3
                  /sys/devices/system/cpu/nohz_full refused",
    },
    ..Knob::DEFAULT
};

const LIST: &str = "/sys/devices/system/cpu/nohz_full";

fn judge(machine: &MachineView) -> Judged {
    // For loops that sleep another rule requires an empty list, and the two exclude each other.
    if machine.has_profile(Profile::ControlLoop) || machine.has_profile(Profile::Audio) {
        return Err(Judgement::not_applicable(
            "only threads that never sleep benefit from it: see nohz-full",
        ));
    }
    let nohz_full = &machine.facts().nohz_full;
    let asked = machine.cmdline().map(|cmdline| cmdline.value("nohz_full"));
    let none = matches!(nohz_full, Fact::Absent) || nohz_full.known().is_some_and(CpuSet::is_empty);
    if none && asked.clone()?.is_none() {
        machine.require_isolation()?;
        // Only a thread that never sleeps gains from it.
        if !machine.has_profile(Profile::BusyPoll) {
            return Err(Judgement::not_applicable(
                "nohz_full= is not given, and loops that sleep do not need \
                                                  it",
            ));
        }
        let boot = Change::cmdline_add(format!("nohz_full={}", machine.cpus()));
        let config = machine.facts().kconfig.known();
        let built = !matches!(nohz_full, Fact::Absent)
            && config.is_none_or(|config| config.get("NO_HZ_FULL") != OptionValue::No);
        let both = if built { boot.into() } else { Remedy::of([Change::kconfig("NO_HZ_FULL", "y"), boot]) };
        return Ok(Judgement::fail("nohz_full= is not given").fix(prompt_callbacks(machine, both)));
    }
    Judgement::all([list(machine, asked), dynamic(machine), stable(machine)])
}

/// The kernel took the audited CPUs into its list.
fn list(machine: &MachineView, asked: Result<Option<&str>, Judgement>) -> Judged {
    let cpus = machine.cpus();
    let nohz_full = match &machine.facts().nohz_full {
        Fact::Known(cpus) => cpus,
        Fact::Absent => {
            return match machine.kconfig()?.get("NO_HZ_FULL") {
                OptionValue::Yes => Err(Judgement::unknown(format!("{LIST} is not there"))),
                _ => Ok(Judgement::fail("nohz_full= is given to a kernel without NO_HZ_FULL")
                    .fix(Change::kconfig("NO_HZ_FULL", "y"))),
            };
        }
        other => return Err(unknown_from(LIST, other)),
    };
    let missing = cpus.without(nohz_full);
    if missing.is_empty() && !cpus.is_empty() {
        return Ok(Judgement::pass(format!("nohz_full on {}", cpu_list(cpus))));
    }
    if nohz_full.is_empty() {
        let asked = truncate(asked.ok().flatten().unwrap_or_default());
        let (why, fix) = refused_ticks(machine).unwrap_or_else(|| {
            let why = "the kernel refused the list: it cannot be parsed, or contradicts isolcpus=; the \
                       kernel's log shows which";
            (why.to_owned(), Change::cmdline_add(format!("nohz_full={cpus}")).into())
        });
        return Ok(Judgement::fail(format!("nohz_full={asked} was not accepted")).because(why).fix(fix));
    }
    Ok(Judgement::fail(format!(
        "nohz_full is {}: the tick does not stop on {}",
        truncate(&nohz_full.to_string()),
        cpu_list(&missing)
    ))
    .because("the boot CPU keeps the time and is removed from the list; CPUs outside of it keep their tick")
    .fix(put_in(nohz_full, &missing)))
}

/// The CPUs in the list, but for the boot CPU, which keeps the time.
fn put_in(nohz_full: &CpuSet, missing: &CpuSet) -> Remedy {
    let elsewhere =
        Remedy::advice(AdviceReason::Choice, format!("put the task on {}", named_cpus(nohz_full)));
    if missing.contains(Cpu(0)) {
        return elsewhere;
    }
    Remedy::from(Change::cmdline_add(format!("nohz_full={}", nohz_full.or(missing)))).or(elsewhere)
}

/// Dynamic ticks are not switched off as a whole.
fn dynamic(machine: &MachineView) -> Judged {
    let mut values = machine.cmdline()?.values("nohz").rev();
    let last = values.find_map(|value| Some((value, machine.truth(value)?)));
    match last {
        Some((value, false)) => {
            let word = format!("nohz={}", truncate(value));
            Ok(Judgement::fail(&word).fix(Change::cmdline_remove(&word)))
        }
        _ => Ok(Judgement::pass("")),
    }
}

/// The scheduler's clock is stable: elsewhere than on x86 it always is.
fn stable(machine: &MachineView) -> Judged {
    match machine.require_x86() {
        Err(early) if early.verdict == AuditVerdict::NotApplicable => return Ok(Judgement::pass("")),
        other => other?,
    }
    let offered = machine.known(
        &machine.facts().clocksources,
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    )?;
    let has = |name: &str| offered.iter().any(|known| known == name);
    if !has("tsc") {
        return Ok(Judgement::fail("the TSC is unstable").because("an unstable clock needs the tick").fix(
            Remedy::advice(
                AdviceReason::Machine,
                "see clocksource for the reason why the TSC was \
                                                        rejected",
            ),
        ));
    }
    if has("kvm-clock") {
        return Err(Judgement::unknown(
            "only the kernel's log shows whether the hypervisor's clock is stable: `onbeat measure` counts \
             the timer interrupts",
        ));
    }
    Ok(Judgement::pass(""))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn a_kernel_without_the_option_has_to_be_built() {
        let mut machine = crate::fixture::Machine::base();
        machine
            .edit(&format!("--profile busy-poll\n--cpus 2-3\n{}: (null)\nCONFIG_NO_HZ_FULL=n", super::LIST));
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.starts_with("boot a kernel built with CONFIG_NO_HZ_FULL, and "), "{fix}");
    }

    #[test]
    fn a_refused_list_has_its_reason() {
        let fix = |edits: &str| {
            let mut machine = crate::fixture::Machine::base();
            machine
                .edit(&format!("--profile busy-poll\n--cpus 2-3\n/proc/sys/kernel/arch: riscv64\n{edits}"));
            let nohz_full = machine.finding(&crate::knobs::nohz_full::KNOB).fix;
            let found = machine.finding(&KNOB);
            (found.reason, found.fix, nohz_full)
        };
        let lists = "/proc/sys/kernel/osrelease: 7.3.1\n/proc/cmdline: isolcpus=0-1 nohz_full=2-3";
        let (why, off, full) = fix(lists);
        assert_eq!(why, "nohz_full=2-3 with isolcpus=0-1 leaves no CPU, and is refused");
        for fix in [off, full] {
            assert!(fix.starts_with("replace isolcpus=0-1 by isolcpus=") && !fix.contains("TSC"), "{fix}");
        }
        let (_, off, _) = fix("cmdline + nohz_full=2-x");
        assert_eq!(off, "replace nohz_full=2-x by nohz_full=2-3 on the kernel's command line");
    }

    const SET: &str = "--profile busy-poll\ncmdline + nohz_full=2-3\n\
                       /sys/devices/system/cpu/nohz_full: 2-3";
    const OFFERED: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

    #[test]
    fn it_applies_where_it_is_wanted() {
        check(&KNOB, "", "not-applicable only threads that never sleep benefit from it: see nohz-full");
        check(&KNOB, &format!("{SET}\n--profile control-loop"), "not-applicable");
        check(
            &KNOB,
            "--profile guest",
            "not-applicable nohz_full= is not given, and loops that sleep do not need it",
        );
        check(&KNOB, "--profile busy-poll", "fail medium nohz_full= is not given");
        check(
            &KNOB,
            "--profile busy-poll\n/sys/devices/system/cpu/nohz_full absent",
            "fail medium nohz_full= is not given",
        );
        check(&KNOB, "--profile busy-poll\n/proc/cmdline refused", "unknown");
        check(&KNOB, SET, "pass nohz_full on CPUs 2-3");
    }

    #[test]
    fn each_condition_can_fail() {
        check(
            &KNOB,
            &format!("{SET}\n--cpus 0,3"),
            "fail medium nohz_full is 2-3: the tick does not stop on CPU 0",
        );
        check(
            &KNOB,
            "--profile busy-poll\ncmdline + nohz_full=2-x",
            "fail medium nohz_full=2-x was not accepted",
        );
        check(&KNOB, &format!("{SET}\ncmdline + nohz=off"), "fail medium nohz=off");
        check(&KNOB, &format!("{SET}\ncmdline + nohz=Off\ncmdline + nohz=?"), "fail medium nohz=Off");
        check(&KNOB, &format!("{SET}\ncmdline + nohz=off\ncmdline + nohz=on"), "pass nohz_full on CPUs 2-3");
        check(&KNOB, &format!("{SET}\n{OFFERED}: hpet acpi_pm"), "fail medium the TSC is unstable");
        check(&KNOB, &format!("{SET}\n{OFFERED}: tsc kvm-clock"), "unknown");
        check(&KNOB, &format!("{SET}\n{OFFERED} refused"), "unknown");
        check(
            &KNOB,
            &format!("{SET}\n/proc/sys/kernel/arch: aarch64\n{OFFERED}: arch_sys_counter"),
            "pass nohz_full on CPUs 2-3",
        );
    }

    #[test]
    fn a_kernel_without_it_is_distinguished_from_one_that_hides_it() {
        let asked = "--profile busy-poll\ncmdline + nohz_full=2-3\n\
                     /sys/devices/system/cpu/nohz_full absent";
        check(
            &KNOB,
            &format!("{asked}\nCONFIG_NO_HZ_FULL=n"),
            "fail medium nohz_full= is given to a kernel without NO_HZ_FULL",
        );
        check(&KNOB, &format!("{asked}\nCONFIG_NO_HZ_FULL=y"), "unknown");
        check(&KNOB, &format!("{asked}\n/boot/config-6.12.9-rt-amd64 absent"), "unknown");
    }
}
