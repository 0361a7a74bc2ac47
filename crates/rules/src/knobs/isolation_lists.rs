//! Lists of CPUs on the command line: whether they can be parsed, and agree.

use super::parameter_conflicts::{cpus_of_lists, one_list_for_all};
use super::sources::{ISOLATION, PARAMETERS};
use super::unsettable;
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::load_balancing::{FlagsAlone, flags_alone};
use crate::remedy::Remedy;
use crate::unknown::{unknown_absent, unknown_from};
use crate::view::MachineView;
use crate::words::{cpu_list, truncate, truncate_list};
use facts::Fact;
use facts::cmdline::Cmdline;
use facts::cpu_lists::{Isolcpus, parse_isolcpus, parse_kernel_list};
use facts::kconfig::OptionValue;
use facts::line::parse_cpus;
use model::slice::SliceKind;
use model::units::{Cpu, CpuSet};

pub static KNOB: Knob = Knob {
    id: "isolation-lists",
    title: "CPU lists on the command line",
    description: "isolcpus=, nohz_full= and rcu_nocbs= name the isolated CPUs, irqaffinity= the other ones, \
                  for new interrupts. An invalid list voids the whole parameter: isolcpus= and nohz_full= \
                  are ignored, rcu_nocbs= applies to all CPUs, irqaffinity= to little more than the boot \
                  CPU.",
    rationale: "a list with a mistake isolates nothing or the wrong CPUs, and allows interrupts and RCU \
                callbacks on the audited CPUs",
    detection: "The command line, parsed like the kernel does: flags of isolcpus= (an unknown one is \
                ignored, or before 5.6 voids the parameter), `N` for the last CPU, `all`, strides; and the \
                CPUs that the kernel reports as isolated (for nohz_full= from 7.x on also through the list \
                of housekeeping CPUs). Whether rcu_nocbs= covers all isolated CPUs is not judged here.",
    side_effects: "A reboot, after which CPUs that were in use may be out of load balancing.",
    wanted: "valid lists, rcu_nocbs= with the isolated CPUs and irqaffinity= with the others",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "correct the boot loader's configuration, and check /proc/cmdline and the start of the kernel \
             log after the reboot",
        )
    },
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[
        Source { title: "kernel: command line, cpu lists", url: PARAMETERS },
        Source { title: "kernel: CPU isolation, full isolation example", url: ISOLATION },
    ],
    cures: &[SliceKind::Irq, SliceKind::Thread, SliceKind::Softirq],
    reads: &[POSSIBLE, PRESENT, HOUSEKEEPING],
    facts: &["/boot/config-RELEASE", "/proc/cmdline", "/proc/sys/kernel/osrelease", ISOLATED, NOHZ_FULL],
    judge,
    examples: Examples {
        fires: "cmdline + isolcpus=domain,3
                cmdline + irqaffinity=3",
        silent: "/proc/cmdline: quiet isolcpus=managed_irq,domain,2-3 rcu_nocbs=2-3 irqaffinity=0-1
                 /sys/devices/system/cpu/isolated: 2-3",
        unknown: "/proc/cmdline refused",
    },
    ..Knob::DEFAULT
};

const POSSIBLE: &str = "/sys/devices/system/cpu/possible";
const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
const NOHZ_FULL: &str = "/sys/devices/system/cpu/nohz_full";
const PRESENT: &str = "/sys/devices/system/cpu/present";
/// From 7.x on the CPUs outside of nohz_full= and isolcpus=nohz; empty without either.
const HOUSEKEEPING: &str = "/sys/devices/system/cpu/housekeeping";
const NAMES: [&str; 4] = ["isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity"];

/// CPUs without a tick, by the kernel's list or by the CPUs that it reserves for other work.
fn ticks_off(machine: &MachineView, possible: &CpuSet) -> Result<Fact<CpuSet>, Judgement> {
    let listed = &machine.facts().nohz_full;
    let left = machine.cpu_list_if_present(HOUSEKEEPING).ok().flatten().filter(|left| !left.is_empty());
    match (listed.known(), left) {
        (Some(listed), Some(left)) if !left.and(listed).is_empty() => {
            Err(Judgement::unknown(format!("{HOUSEKEEPING} contradicts {NOHZ_FULL}")))
        }
        (None, Some(left)) => Ok(Fact::Known(possible.without(&left))),
        _ => Ok(listed.clone()),
    }
}

/// Content of the lists.
#[derive(Default)]
struct Lists {
    /// CPUs by name, in the order of [`NAMES`]; those of `isolcpus=` only if it does more than move
    /// interrupts.
    cpus: [CpuSet; 4],
    /// CPUs that `isolcpus=` takes out of load balancing.
    domain: CpuSet,
    /// Errors, the worst first.
    wrong: Vec<String>,
    odd: Vec<String>,
}

fn judge(machine: &MachineView) -> Judged {
    let cmdline = machine.cmdline()?;
    let given: Vec<&str> = NAMES.into_iter().filter(|name| cmdline.values(name).next().is_some()).collect();
    if given.is_empty() {
        return Err(Judgement::not_applicable("the command line has no such list"));
    }
    let (possible, present) = match cpus_of_lists(machine, cmdline, &NAMES) {
        Some(named) => (named.clone(), built_for(machine, &named)),
        None => {
            let read = |path| machine.parsed(path, parse_cpus)?.ok_or_else(|| unknown_absent(path));
            (read(POSSIBLE)?, read(PRESENT)?)
        }
    };
    let last = possible.iter().last().unwrap_or_default();
    let one_for_all = one_list_for_all(machine) == Ok(true);
    let mut lists = read(cmdline, &CpusThere { last, possible: &possible, present: &present }, one_for_all);
    lists.flags(machine, cmdline, last);
    lists.compare();
    lists.fulfilled(machine, &possible);
    let flags_alone = flags_alone(machine);
    lists.wrong.extend(flags_alone.as_ref().map(FlagsAlone::words));
    let severity = if lists.wrong.is_empty() { Severity::Medium } else { Severity::High };
    let mistakes = lists.wrong.len() + lists.odd.len();
    let found = truncate_list(lists.wrong.into_iter().chain(lists.odd));
    if found.is_empty() {
        if machine.survey.is_stopped {
            takes(machine, &given)?;
            return Ok(Judgement::pass(format!("{} agree", given.join(", "))));
        }
        let ticks = ticks_off(machine, &possible)?;
        for (path, kernel) in [(ISOLATED, &machine.facts().isolated), (NOHZ_FULL, &ticks)] {
            if !matches!(kernel, Fact::Known(_) | Fact::Absent) {
                return Err(unknown_from(path, kernel));
            }
        }
        return Ok(Judgement::pass(format!("{} agree", given.join(", "))));
    }
    let failed = Judgement::fail(found).severity(severity);
    // The remedy of one mistake would hide the others.
    let alone = flags_alone.filter(|_| mistakes == 1);
    Ok(match alone {
        Some(alone) => failed.fix(alone.remedy),
        None => failed,
    })
}

/// Those of these CPUs for which a stopped kernel has room.
fn built_for(machine: &MachineView, named: &CpuSet) -> CpuSet {
    let room = match machine.facts().kconfig.known().map(|config| config.get("NR_CPUS")) {
        Some(OptionValue::Value(number)) => number.parse().ok(),
        _ => None,
    };
    named.iter().filter(|cpu| room.is_none_or(|room: u32| cpu.0 < room)).collect()
}

/// Returns early unless a stopped kernel is built with what these parameters need; one that is not
/// fails.
fn takes(machine: &MachineView, given: &[&str]) -> Result<(), Judgement> {
    let needed = [("isolcpus", "CPU_ISOLATION"), ("nohz_full", "NO_HZ_FULL"), ("rcu_nocbs", "RCU_NOCB_CPU")];
    for (name, option) in needed.into_iter().filter(|(name, _)| given.contains(name)) {
        let value = machine.kconfig()?.get(option);
        // isolcpus= is older than its option.
        if value == OptionValue::No || (value == OptionValue::Absent && name != "isolcpus") {
            return Err(Judgement::fail(format!("{name}= has no effect without CONFIG_{option}")));
        }
    }
    Ok(())
}

/// CPUs that lists can contain.
struct CpusThere<'a> {
    last: Cpu,
    possible: &'a CpuSet,
    present: &'a CpuSet,
}

/// True if the kernel does not accept both: for `isolcpus=` it compares the CPUs of flags that both
/// have, or of all if it has one list for all (`housekeeping_setup()`).
fn differ(name: &str, one: &str, other: &str, last: Cpu, one_for_all: bool) -> bool {
    let parse = |value: &str| match name {
        "isolcpus" => parse_isolcpus(value, last)
            .map(|found| ([found.domain, found.managed_irq, found.nohz], found.cpus)),
        _ => parse_kernel_list(value, last).map(|cpus| ([true; 3], cpus)),
    };
    match (parse(one), parse(other)) {
        (Ok(one), Ok(other)) => {
            let shared = one.0.iter().zip(other.0).any(|(one, other)| *one && other);
            one.1 != other.1 && (one_for_all || shared)
        }
        _ => one != other,
    }
}

/// Limit of compared lists of one name: no line in use has as many.
const MAX_COMPARED: usize = 32;

fn read(cmdline: &Cmdline, there: &CpusThere, one_for_all: bool) -> Lists {
    let last = there.last;
    let mut lists = Lists::default();
    for (at, name) in NAMES.into_iter().enumerate() {
        let values: Vec<&str> = cmdline.values(name).collect();
        let mut distinct = values.clone();
        distinct.sort_unstable();
        distinct.dedup();
        distinct.truncate(MAX_COMPARED);
        let mut pairs = distinct
            .iter()
            .enumerate()
            .flat_map(|(at, one)| distinct[..at].iter().map(move |other| (one, other)));
        if pairs.any(|(one, other)| differ(name, one, other, last, one_for_all)) {
            lists.wrong.push(format!("{name}= is given twice with different values"));
        }
        for value in values {
            let parsed = match name {
                "isolcpus" => {
                    let found = parse_isolcpus(value, last);
                    if let Ok(Isolcpus { domain: true, cpus, .. }) = &found {
                        lists.domain = lists.domain.or(cpus);
                    }
                    found.map(|found| (found.domain || found.nohz, found.cpus))
                }
                _ => parse_kernel_list(value, last).map(|cpus| (true, cpus)),
            };
            match parsed {
                Err(_) => lists.wrong.push(format!("{name}={} is not a CPU list", truncate(value))),
                Ok((_, cpus)) if cpus.is_empty() => {
                    lists.wrong.push(format!("{name}={} names no CPU", truncate(value)));
                }
                Ok((counts, cpus)) => {
                    // Both words mean the possible CPUs, including those that are added later.
                    let is_open = value.contains('N') || value.to_ascii_lowercase().contains("all");
                    let missing = cpus.without(if is_open { there.possible } else { there.present });
                    if !missing.is_empty() {
                        lists.odd.push(format!("{name}= names {}, not present", cpu_list(&missing)));
                    }
                    if counts {
                        lists.cpus[at] = lists.cpus[at].or(&cpus);
                    }
                }
            }
        }
    }
    lists
}

impl Lists {
    /// Looks for flags of `isolcpus=` that this kernel does not know: since 5.6 one is ignored,
    /// before it voids the parameter (`housekeeping_isolcpus_setup()` of kernel/sched/isolation.c,
    /// commit 3662daf02350 of 5.7, which is in 5.6.9 and not in 5.4).
    fn flags(&mut self, machine: &MachineView, cmdline: &Cmdline, last: Cpu) {
        let is_old = machine.series().is_ok_and(|series| series < (5, 6));
        for found in cmdline.values("isolcpus").filter_map(|value| parse_isolcpus(value, last).ok()) {
            let managed = (is_old && found.managed_irq).then(|| "managed_irq".to_owned());
            let Some(flag) = found.skipped.or(managed).filter(|_| !found.cpus.is_empty()) else { continue };
            let flag = truncate(&flag);
            if is_old {
                self.wrong.push(format!("isolcpus= is void: this kernel does not know the flag {flag}"));
            } else {
                self.odd.push(format!("unknown flag {flag} of isolcpus= is ignored"));
            }
        }
    }

    /// Looks for lists that contradict each other.
    fn compare(&mut self) {
        let [domain, nohz, nocbs, irqs] = &self.cpus;
        let apart = domain.or(nohz);
        let disjoint = |a: &CpuSet, b: &CpuSet| !a.is_empty() && !b.is_empty() && a.and(b).is_empty();
        let both = irqs.and(&apart);
        if !both.is_empty() {
            self.wrong.push(format!("irqaffinity= includes the isolated {}", cpu_list(&both)));
        }
        if disjoint(nocbs, &apart) {
            self.wrong.push(format!("rcu_nocbs= includes none of the isolated {}", cpu_list(&apart)));
        }
        if disjoint(nohz, domain) {
            self.wrong.push(format!("nohz_full= includes none of {} of isolcpus=", cpu_list(domain)));
        }
    }
}

impl Lists {
    /// Looks for CPUs that the kernel did not isolate as its command line asks: it may have no such
    /// parameter, or refuse two lists that differ, as it did before 5.18.
    fn fulfilled(&mut self, machine: &MachineView, possible: &CpuSet) {
        let ticks = ticks_off(machine, possible).unwrap_or(Fact::NotCaptured);
        let isolated = &machine.facts().isolated;
        let lists = [("isolcpus", &self.domain, isolated), ("nohz_full", &self.cpus[1], &ticks)];
        for (name, asked, kernel) in lists {
            let none = CpuSet::default();
            let kernel_cpus = match kernel {
                Fact::Known(cpus) => cpus,
                // The file of nohz_full= exists with NO_HZ_FULL only, without which the word is
                // refused; that of the isolated CPUs is next to it.
                Fact::Absent if isolated.known().is_some() => &none,
                _ => continue,
            };
            let missing = asked.and(possible).without(kernel_cpus);
            if !missing.is_empty() {
                let remark = format!("{name}= names {}, which the kernel did not accept", cpu_list(&missing));
                if asked.and(kernel_cpus).is_empty() {
                    self.wrong.push(remark)
                } else {
                    self.odd.push(remark)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    /// A synthetic command line.
    fn lists(words: &str, expected: &str) {
        let files = "/sys/devices/system/cpu/isolated: 0-3\n/sys/devices/system/cpu/nohz_full: 0-3";
        check(&KNOB, &format!("{files}\n/proc/cmdline: quiet {words}"), expected);
    }

    #[test]
    fn lists_have_to_agree() {
        check(&KNOB, "", "pass isolcpus, rcu_nocbs, irqaffinity agree");
        lists("", "not-applicable the command line has no such list");
        lists("isolcpus=2-3 irqaffinity=0-2", "fail high irqaffinity= includes the isolated CPU 2");
        lists("nohz_full=3 irqaffinity=0-2", "pass nohz_full, irqaffinity agree");
        // The flag alone isolates nothing.
        lists("isolcpus=managed_irq,2-3 irqaffinity=0-3", "pass isolcpus, irqaffinity agree");
        lists("isolcpus=nohz,3 irqaffinity=3", "fail high irqaffinity= includes the isolated CPU 3");
        lists("isolcpus=2-3 rcu_nocbs=0-1", "fail high rcu_nocbs= includes none of the isolated CPUs 2-3");
        lists("isolcpus=2-N rcu_nocbs=all irqaffinity=0-1", "pass");
        lists("isolcpus=2 nohz_full=3", "fail high nohz_full= includes none of CPU 2 of isolcpus=");
        lists("isolcpus=2 isolcpus=3", "fail high isolcpus= is given twice with different values");
        lists("isolcpus=2 isolcpus=2", "pass isolcpus agree");
        lists("isolcpus=managed_irq,2-3 isolcpus=domain,2-3", "pass isolcpus agree");
        lists("isolcpus=managed_irq,1 isolcpus=domain,2-3", "pass isolcpus agree");
        lists(
            "isolcpus=managed_irq,domain,1 isolcpus=2-3",
            "fail high isolcpus= is given twice with different values",
        );
        let old = "/proc/sys/kernel/osrelease: 5.10.9\n/sys/devices/system/cpu/isolated: 2-3\n\
                   /proc/cmdline: isolcpus=managed_irq,";
        check(&KNOB, &format!("{old}2-3 isolcpus=domain,2-3"), "pass isolcpus agree");
        let refused = "fail high isolcpus= is given twice with different values";
        check(&KNOB, &format!("{old}1 isolcpus=domain,2-3"), refused);
        lists("rcu_nocbs=2-3 rcu_nocbs=2,3", "pass rcu_nocbs agree");
    }

    #[test]
    fn flags_without_domain_isolate_only_what_they_name() {
        let none = "/sys/devices/system/cpu/isolated:\n/sys/fs/cgroup/cpuset.cpus.isolated:";
        for flag in ["managed_irq", "nohz"] {
            let failed = format!(
                "fail high isolcpus={flag},2-3 lacks the flag domain: load is balanced over CPUs 2-3"
            );
            check(&KNOB, &format!("{none}\n/proc/cmdline: isolcpus={flag},2-3"), &failed);
        }
        let mut machine = Machine::base();
        machine.edit(&format!("{none}\n/proc/cmdline: isolcpus=managed_irq,2-3"));
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.contains("isolcpus=domain,managed_irq,2-3"), "{fix}");
        // A partition isolates them from load balancing as well.
        let partition = "/sys/devices/system/cpu/isolated:\n/sys/fs/cgroup/cpuset.cpus.isolated: 2-3";
        check(&KNOB, &format!("{partition}\n/proc/cmdline: isolcpus=managed_irq,2-3"), "pass isolcpus agree");
    }

    #[test]
    fn an_unknown_flag_is_passed_over_or_voids_the_parameter() {
        let passed = "fail medium unknown flag managed of isolcpus= is ignored";
        lists("isolcpus=managed,domain,2-3", passed);
        let old = |flags: &str, expected: &str| {
            let isolated = "/sys/devices/system/cpu/isolated: 2-3";
            let release = "/proc/sys/kernel/osrelease: 5.4.9";
            check(&KNOB, &format!("{isolated}\n{release}\n/proc/cmdline: isolcpus={flags},2-3"), expected);
        };
        old(
            "managed_irq,domain",
            "fail high isolcpus= is void: this kernel does not know the flag \
                                   managed_irq",
        );
        old("later,domain", "fail high isolcpus= is void: this kernel does not know the flag later");
        old("nohz,domain", "pass isolcpus agree");
    }

    #[test]
    fn the_kernel_has_the_last_word() {
        let kernel = |isolated: &str, nohz_full: &str, expected: &str| {
            let files = format!(
                "/sys/devices/system/cpu/isolated{isolated}\n\
                 /sys/devices/system/cpu/nohz_full{nohz_full}"
            );
            check(&KNOB, &format!("{files}\n/proc/cmdline: isolcpus=domain,2-3 nohz_full=2-3"), expected);
        };
        kernel(": 2-3", ": 2-3", "pass isolcpus, nohz_full agree");
        kernel(": 2-3", ":   (null)", "fail high nohz_full= names CPUs 2-3, which the kernel did not accept");
        kernel(": 2", ": 2-3", "fail medium isolcpus= names CPU 3, which the kernel did not accept");
        kernel(": 2-3", " refused", "unknown");
        let left =
            [" refused", ": 2-3"].map(|list| format!("{list}\n/sys/devices/system/cpu/housekeeping: "));
        let [refused, listed] = left;
        let refused = ["0-1", "", "0-2"].map(|left| format!("{refused}{left}"));
        kernel(": 2-3", &refused[0], "pass isolcpus, nohz_full agree");
        kernel(": 2-3", &refused[1], "unknown");
        kernel(": 2-3", &refused[2], "fail medium nohz_full= names CPU 2, which the kernel did not accept");
        let contradicting = format!("{listed}0-2");
        kernel(": 2-3", &contradicting, "unknown");
        kernel(": 2-3", " absent", "fail high nohz_full= names CPUs 2-3, which the kernel did not accept");
    }

    #[test]
    fn lists_have_to_be_read() {
        lists("isolcpus=2-3n", "fail high isolcpus=2-3n is not a CPU list");
        lists("isolcpus=", "fail high isolcpus= names no CPU");
        lists("isolcpus=N", "fail high isolcpus=N names no CPU");
        let more = "/sys/devices/system/cpu/possible: 0-7\n/sys/devices/system/cpu/isolated: 2-7\n\
                    /proc/cmdline: isolcpus=";
        check(&KNOB, &format!("{more}2-N"), "pass isolcpus agree");
        check(&KNOB, &format!("{more}2-7"), "fail medium isolcpus= names CPUs 4-7, not present");
        lists("rcu_nocbs=2-9", "fail medium rcu_nocbs= names CPUs 4-9, not present");
        lists(
            &format!("nohz_full={}", "x".repeat(400)),
            &format!("fail high nohz_full={}... is not a CPU list", "x".repeat(40)),
        );
        check(&KNOB, "/sys/devices/system/cpu/present refused", "unknown");
        check(&KNOB, "/sys/devices/system/cpu/possible absent", "unknown");
    }
}
