//! Words on the command line that contradict each other.

use super::mitigations::keeps_vectors;
use super::sources::{ISOLATION_C, PARAMETERS};
use super::takers::takes;
use super::unsettable;
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::load_balancing::isolate_at_boot;
use crate::parameters::has_one_value;
use crate::remedy::Remedy;
use crate::unknown::{unknown_absent, unknown_from};
use crate::view::MachineView;
use crate::words::truncate;
use facts::Fact;
use facts::cmdline::Cmdline;
use facts::cpu_lists::{parse_isolcpus, parse_kernel_list};
use facts::kbool::kbool;
use model::slice::SliceKind;
use model::units::{Cpu, CpuSet};
use std::collections::BTreeSet;

pub static KNOB: Knob = Knob {
    id: "parameter-conflicts",
    title: "contradictory kernel parameters",
    description: "A parameter that is on the command line twice, with two values: usually the last one \
                  counts; parameters that may be repeated, such as console= and hugepages=, are not \
                  conflicts. Of isolcpus= and nohz_full= the first counts, because the kernel refuses a list \
                  that differs from the accepted one. Before 5.18 it also refused different lists for these \
                  two; from 7.0 on it refuses the second of them if both together leave no CPU for the \
                  rest.",
    rationale: "one of the two values has no effect, and the parameter determines which: CPUs that should be \
                isolated may not be",
    detection: "The command line that the kernel booted with. Parameters come from the boot loader, the \
                kernel's built-in command line, and drop-in files, so two of them are often far apart. \
                Kernels with the version 5.14 come from distributions with many backports: it is not known \
                whether they accept different lists in isolcpus= and nohz_full=.",
    side_effects: "Only a reboot; the effective value may change.",
    wanted: "each parameter has one value",
    fix: || {
        Remedy::advice(AdviceReason::Choice, "keep only the intended one in the boot loader's configuration")
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Source,
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[
        Source { title: "kernel: command line", url: PARAMETERS },
        Source { title: "kernel source: kernel/sched/isolation.c, housekeeping_setup()", url: ISOLATION_C },
    ],
    cures: &[SliceKind::TimerIrq, SliceKind::Thread, SliceKind::Irq],
    reads: &[POSSIBLE, PRESENT],
    facts: &[
        "/boot/config-RELEASE",
        "/proc/cmdline",
        "/proc/sys/kernel/osrelease",
        "/sys/devices/system/cpu/nohz_full",
    ],
    judge,
    examples: Examples {
        fires: "cmdline + irqaffinity=0-1
                cmdline + irqaffinity=0-3",
        silent: "",
        unknown: "/proc/cmdline refused",
    },
    ..Knob::DEFAULT
};

pub const POSSIBLE: &str = "/sys/devices/system/cpu/possible";
pub const PRESENT: &str = "/sys/devices/system/cpu/present";

fn judge(machine: &MachineView) -> Judged {
    let cmdline = machine.cmdline()?;
    let names: BTreeSet<String> = cmdline.params.iter().map(|param| param.name.replace('-', "_")).collect();
    let mut found: Vec<String> = names.iter().filter_map(|name| twice(machine, cmdline, name)).collect();
    let refused = refused(machine, cmdline);
    found.extend(refused.clone().unwrap_or_default());
    if !found.is_empty() {
        return Ok(Judgement::fail(first_three(&found)));
    }
    refused?;
    Ok(Judgement::pass("none"))
}

/// The first three of some names with their values, which are longer than words: fewer fit.
fn first_three(found: &[String]) -> String {
    let examples = found.iter().take(3).cloned().collect::<Vec<_>>().join("; ");
    if found.len() > 3 { format!("{examples}; {} more", found.len() - 3) } else { examples }
}

/// Values of a pure switch: `kstrtobool()` reads no more than two letters.
const SWITCHES: &[&str] = &["0", "1", "n", "no", "off", "on", "y", "yes"];

/// Parameters with a value that stays in effect, whatever comes later (`idle_setup()` of
/// arch/x86/kernel/process.c, `pcie_aspm_disable()` of drivers/pci/pcie/aspm.c).
const STRONGEST: &[(&str, &str)] = &[("idle", "poll"), ("pcie_aspm", "off"), (MITIGATIONS, "off")];
const MITIGATIONS: &str = "mitigations";

fn twice(machine: &MachineView, cmdline: &Cmdline, name: &str) -> Option<String> {
    let strongest = STRONGEST.iter().find(|known| known.0 == name);
    let strongest = strongest.filter(|_| name != MITIGATIONS || keeps_vectors(machine));
    let lasting = strongest.and_then(|(_, value)| cmdline.values(name).find(|given| given == value));
    let accepts = |value: &str| takes(machine, name, value).then_some(());
    let last = || cmdline.in_effect(name, accepts).map(|(value, ())| value).or_else(|| cmdline.value(name));
    let last = lasting.or_else(|| last().filter(|_| strongest.is_some() || has_one_value(name)))?;
    // `1` and `on` are the same to most parameters that accept either.
    let word = |value: &str| kbool(value, None).filter(|_| SWITCHES.contains(&value));
    let same = |value: &str| value == last || (word(value).is_some() && word(value) == word(last));
    let other = cmdline.values(name).find(|value| !same(value))?;
    Some(format!("{}={} overrides {}", truncate(name), truncate(last), truncate(other)))
}

/// A list that takes CPUs out of some kinds of housekeeping.
struct List {
    name: &'static str,
    kinds: Vec<&'static str>,
    cpus: CpuSet,
}

impl List {
    /// True if timers are kept off its CPUs.
    fn is_of_timers(&self) -> bool {
        self.kinds.iter().any(|kind| matches!(*kind, "nohz" | "domain"))
    }

    fn or(&self, other: &List) -> CpuSet {
        self.cpus.or(&other.cpus)
    }
}

/// True if the kernel requires a present CPU that is in neither list, for the timers that migrate
/// (`housekeeping_setup()` in 7.0).
fn checks_the_rest(machine: &MachineView) -> bool {
    machine.series().is_ok_and(|series| series >= (7, 0))
}

/// Lists that the kernel refuses: an accepted one is never revoked.
fn refused(machine: &MachineView, cmdline: &Cmdline) -> Result<Vec<String>, Judgement> {
    if !cmdline.has("isolcpus") && !cmdline.has("nohz_full") {
        return Ok(Vec::new());
    }
    let named = cpus_of_lists(machine, cmdline, &["isolcpus", "nohz_full"]);
    let (possible, present) = match &named {
        Some(named) => (named.clone(), named.clone()),
        None => {
            let possible = machine.cpu_list_if_present(POSSIBLE)?.ok_or_else(|| unknown_absent(POSSIBLE))?;
            (possible.clone(), machine.cpu_list_if_present(PRESENT)?.unwrap_or(possible))
        }
    };
    let last = possible.iter().last().ok_or_else(|| unknown_absent("the last CPU"))?;
    let lists = lists(cmdline, last)?;
    // A kernel without NO_HZ_FULL, and so without its file, accepts no list that asks for it.
    let lacks = || machine.kconfig().is_ok_and(|config| !config.is_yes("NO_HZ_FULL"));
    let ticks = if named.is_some() { !lacks() } else { machine.facts().nohz_full != Fact::Absent };
    let (mut effective, mut found): (Vec<List>, Vec<String>) = (Vec::new(), Vec::new());
    let mut one_for_all = Ok(false);
    for list in lists.into_iter().filter(|list| ticks || !list.kinds.contains(&"nohz")) {
        let shares = |other: &List| list.kinds.iter().any(|kind| other.kinds.contains(kind));
        let mut differing = effective.iter().filter(|other| other.cpus != list.cpus).peekable();
        if differing.peek().is_some() {
            one_for_all = one_list_for_all(machine);
        }
        let all = one_for_all == Ok(true);
        let rival = differing.find(|other| all || shares(other));
        let parameter = |list: &List| format!("{}={}", list.name, truncate(&list.cpus.to_string()));
        let leaves_none = |other: &&List| {
            list.is_of_timers() && other.is_of_timers() && present.without(&other.or(&list)).is_empty()
        };
        if let Some(rival) = rival {
            found.push(format!("{} overrides {}", parameter(rival), parameter(&list)));
        } else if let Some(other) = effective.iter().find(leaves_none).filter(|_| checks_the_rest(machine)) {
            if named.is_some() {
                return Err(unknown_from(PRESENT, &Fact::<()>::NotRunning));
            }
            found.push(format!(
                "{} with {} leaves no CPU, and is refused",
                parameter(&list),
                parameter(other)
            ));
        } else {
            effective.push(list);
        }
    }
    match one_for_all {
        Err(unknown) if found.is_empty() => Err(unknown),
        _ => Ok(found),
    }
}

/// Reason why the kernel refuses nohz_full=, if that is another list, and lists that it takes.
pub fn refused_ticks(machine: &MachineView) -> Option<(String, Remedy)> {
    let found = refused(machine, machine.cmdline().ok()?).ok()?;
    // Of two lists the second one is refused.
    let names_it =
        |words: &&String| words.contains(" overrides nohz_full=") || words.contains("leaves no CPU");
    let why = found.iter().find(names_it)?.clone();
    let ticks = Change::cmdline_add(format!("nohz_full={}", machine.cpus()));
    Some((why, isolate_at_boot(machine).and(ticks)))
}

/// The CPUs that the lists of a stopped machine name, which stand for those that it has; none if
/// one depends on their number, or on a running kernel.
pub fn cpus_of_lists(machine: &MachineView, cmdline: &Cmdline, names: &[&str]) -> Option<CpuSet> {
    let values = names.iter().flat_map(|name| cmdline.values(name).map(move |value| (*name, value)));
    // `N` and `all` differ between a machine with one CPU and one with many.
    let list = |(name, value): (&str, &str)| {
        let of = |last| match name {
            "isolcpus" => parse_isolcpus(value, last).map(|found| found.cpus),
            _ => parse_kernel_list(value, last),
        };
        match [Cpu(0), Cpu(1 << 12)].map(of) {
            [Ok(one), Ok(other)] => (one == other).then_some(one),
            // No list on any machine.
            [Err(_), Err(_)] => Some(CpuSet::default()),
            _ => None,
        }
    };
    let all: Option<Vec<CpuSet>> = values.map(list).collect();
    // Each machine has the CPU that boots.
    let boot: CpuSet = [Cpu(0)].into_iter().collect();
    all.filter(|_| machine.survey.is_stopped).map(|all| all.iter().fold(boot, |all, list| all.or(list)))
}

/// True if the kernel has a single list for all kinds of housekeeping.
pub fn one_list_for_all(machine: &MachineView) -> Result<bool, Judgement> {
    match machine.series()? {
        (5, 14) => Err(Judgement::unknown(
            "isolcpus= and nohz_full= differ, and it is not known whether this distribution's 5.14 accepts \
             both: its log says \"nohz_full= must match isolcpus=\" if not",
        )),
        series => Ok(series < (5, 18)),
    }
}

/// Lists in the order of the command line.
fn lists(cmdline: &Cmdline, last: Cpu) -> Result<Vec<List>, Judgement> {
    let mut lists = Vec::new();
    for param in &cmdline.params {
        let value = param.value.as_deref().unwrap_or_default();
        let wrong = |why| Judgement::unknown(format!("{} cannot be parsed: {why}", truncate(&param.name)));
        match param.name.as_str() {
            "nohz_full" => {
                let cpus = parse_kernel_list(value, last).map_err(wrong)?;
                lists.push(List { name: "nohz_full", kinds: vec!["nohz"], cpus });
            }
            "isolcpus" => {
                let isolcpus = parse_isolcpus(value, last).map_err(wrong)?;
                let flags = [
                    ("domain", isolcpus.domain),
                    ("managed_irq", isolcpus.managed_irq),
                    ("nohz", isolcpus.nohz),
                ];
                let kinds = flags.into_iter().filter(|(_, set)| *set).map(|(kind, _)| kind).collect();
                lists.push(List { name: "isolcpus", kinds, cpus: isolcpus.cpus });
            }
            _ => {}
        }
    }
    Ok(lists)
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn the_last_value_counts_of_most() {
        check(&KNOB, "", "pass none");
        check(&KNOB, "cmdline + rcu_nocbs=2-3", "pass none");
        check(&KNOB, "cmdline + rcu_nocbs=3", "fail medium rcu_nocbs=3 overrides 2-3");
        check(
            &KNOB,
            "cmdline + preempt=full\ncmdline + preempt=none\ncmdline + nohz=on\ncmdline + nohz=off",
            "fail medium nohz=off overrides on; preempt=none overrides full",
        );
        check(&KNOB, "cmdline + psi=1\ncmdline + psi=0", "fail medium psi=0 overrides 1");
        check(&KNOB, "cmdline + loglevel=7\ncmdline + loglevel=4", "fail medium loglevel=4 overrides 7");
        check(&KNOB, "cmdline + psi=1\ncmdline + psi=on", "pass none");
        check(
            &KNOB,
            "cmdline + hugepagesz=2M\ncmdline + hugepagesz=1G\ncmdline + rd.lvm.lv=a/b\ncmdline + \
             rd.lvm.lv=a/c",
            "pass none",
        );
        // These accumulate.
        check(&KNOB, "cmdline + tsc=reliable\ncmdline + console=tty0\ncmdline + console=ttyS0", "pass none");
        check(&KNOB, "cmdline + nmi_watchdog=panic\ncmdline + nmi_watchdog=0", "pass none");
        check(&KNOB, "cmdline + idle=poll\ncmdline + idle=halt", "fail medium idle=poll overrides halt");
        check(
            &KNOB,
            "cmdline + idle=halt\ncmdline + idle=nomwait",
            "fail medium idle=nomwait overrides halt",
        );
        let mitigations = "cmdline + mitigations=off\ncmdline + mitigations=auto";
        let of = |series: &str| format!("/proc/sys/kernel/osrelease: {series}.1\n{mitigations}");
        check(&KNOB, &of("6.12"), "fail medium mitigations=auto overrides off");
        check(&KNOB, &of("7.3"), "fail medium mitigations=off overrides auto");
        check(&KNOB, "cmdline + psi=1\ncmdline + psi=x", "fail medium psi=1 overrides x");
        let aspm = "cmdline + pcie_aspm=off\ncmdline + pcie_aspm=force";
        check(&KNOB, aspm, "fail medium pcie_aspm=off overrides force");
    }

    #[test]
    fn lists_of_isolated_cpus_are_taken_once() {
        check(&KNOB, "cmdline + isolcpus=domain,2-3", "pass none");
        check(&KNOB, "cmdline + isolcpus=nohz,3", "pass none");
        check(&KNOB, "cmdline + isolcpus=3", "fail medium isolcpus=2-3 overrides isolcpus=3");
        check(
            &KNOB,
            "cmdline + nohz_full=3\ncmdline + isolcpus=nohz,2",
            "fail medium nohz_full=3 overrides isolcpus=2",
        );
        check(&KNOB, "cmdline + nohz_full=3", "pass none");
        let old = "/proc/sys/kernel/osrelease: 5.10.1";
        check(
            &KNOB,
            &format!("{old}\ncmdline + nohz_full=3"),
            "fail medium isolcpus=2-3 overrides \
                                                                nohz_full=3",
        );
        check(&KNOB, &format!("{old}\ncmdline + nohz_full=2-N"), "pass none");
        let without = "/sys/devices/system/cpu/nohz_full absent";
        check(&KNOB, &format!("{old}\n{without}\ncmdline + nohz_full=3"), "pass none");
        let backported = "/proc/sys/kernel/osrelease: 5.14.0-570.el9.x86_64";
        check(&KNOB, &format!("{backported}\ncmdline + nohz_full=3"), "unknown");
        check(&KNOB, &format!("{backported}\ncmdline + nohz_full=2-3"), "pass none");
        let both = format!("{backported}\ncmdline + isolcpus=1\ncmdline + nohz_full=3");
        check(&KNOB, &both, "fail medium isolcpus=2-3 overrides isolcpus=1");
        check(
            &KNOB,
            &format!("{backported}\ncmdline + isolcpus=3"),
            "fail medium isolcpus=2-3 overrides isolcpus=3",
        );
        // A list that was refused refuses no other.
        check(
            &KNOB,
            "cmdline + isolcpus=domain,nohz,3\ncmdline + nohz_full=1",
            "fail medium isolcpus=2-3 overrides isolcpus=3",
        );
    }

    #[test]
    fn two_lists_leave_a_cpu() {
        let all = "cmdline + nohz_full=0-1";
        let of = |release: &str| format!("/proc/sys/kernel/osrelease: {release}\n{all}");
        check(&KNOB, &of("6.12.9"), "pass none");
        check(
            &KNOB,
            &of("7.3.4"),
            "fail medium nohz_full=0-1 with isolcpus=2-3 leaves no CPU, and is refused",
        );
        check(&KNOB, &of("7.3.4").replace("0-1", "1"), "pass none");
        // Empty sockets cannot be used for housekeeping.
        let more = "/sys/devices/system/cpu/possible: 0-7";
        check(
            &KNOB,
            &format!("{}\n{more}", of("7.3.4")),
            "fail medium nohz_full=0-1 with isolcpus=2-3 leaves no CPU, and is refused",
        );
    }

    #[test]
    fn what_is_not_understood_is_no_pass() {
        check(&KNOB, "cmdline + isolcpus=2-x", "unknown");
        check(&KNOB, "/sys/devices/system/cpu/possible refused", "unknown");
        check(
            &KNOB,
            "/sys/devices/system/cpu/possible refused\ncmdline + nohz=off\ncmdline + nohz=on",
            "fail medium nohz=on overrides off",
        );
        let long = "x".repeat(500);
        check(
            &KNOB,
            &format!("cmdline + nohz={long}\ncmdline + nohz=on"),
            &format!("fail medium nohz=on overrides {}...", "x".repeat(40)),
        );
    }
}
