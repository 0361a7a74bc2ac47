//! Audited CPUs that are still part of load balancing, and the parameter that takes them out of it
//! at boot.
//!
//! Several rules ask for `isolcpus=`; its value is put together here alone, so that no two of them
//! contradict each other.

use crate::change::{AdviceReason, Change, Persistence};
use crate::intent::Profile;
use crate::isolation::{isolated_by_cgroup, readable};
use crate::judgement::Judgement;
use crate::remedy::Remedy;
use crate::unknown::unknown_from;
use crate::view::MachineView;
use crate::words::{cpu_list, truncate};
use facts::Fact;
use facts::cpu_lists::{Isolcpus, parse_isolcpus};
use facts::kconfig::OptionValue;
use facts::sched::FairServer;
use model::units::{Cpu, CpuSet};

/// Audited CPUs over which load is balanced; unknown if that could be any of them.
pub fn balanced_cpus(machine: &MachineView) -> Result<CpuSet, Judgement> {
    const BOOT: &str = "/sys/devices/system/cpu/isolated";
    let survey = machine.survey;
    let boot = match survey.facts.isolated.known() {
        Some(isolated) => isolated.clone(),
        None => isolated_by_line(machine).unwrap_or_default(),
    };
    let grouped = isolated_by_cgroup(survey);
    let exposed = machine.cpus().without(&boot.or(&grouped));
    if exposed.is_empty() {
        return Ok(exposed);
    }
    machine.known(&survey.facts.isolated, BOOT)?;
    match &survey.groups {
        Fact::Absent => {}
        Fact::Known(groups) => readable(groups)?,
        other => return Err(unknown_from("/sys/fs/cgroup", other)),
    }
    Ok(exposed)
}

/// CPUs that the command line of a stopped kernel takes out of load balancing.
fn isolated_by_line(machine: &MachineView) -> Option<CpuSet> {
    let cmdline = machine.facts().cmdline.known().filter(|_| machine.survey.is_stopped)?;
    let lacks = machine.kconfig().ok()?.get("CPU_ISOLATION") == OptionValue::No;
    let value = cmdline.values("isolcpus").next().filter(|_| !lacks)?;
    let list = isolcpus_of_any_machine(value)?;
    (list.domain && !is_void(machine, &list)).then_some(list.cpus)
}

/// CPUs that `isolcpus=` names with flags, but without `domain`, and that nothing else isolates.
pub struct FlagsAlone {
    pub cpus: CpuSet,
    /// The parameter as it is.
    pub found: String,
    pub remedy: Remedy,
}

impl FlagsAlone {
    /// The finding in words.
    pub fn words(&self) -> String {
        format!("{} lacks the flag domain: load is balanced over {}", self.found, cpu_list(&self.cpus))
    }
}

/// CPUs in `isolcpus=` over which load is balanced, as no such list has the flag `domain`, the
/// default only without flags (`housekeeping_isolcpus_setup()` of kernel/sched/isolation.c). None
/// for a list that depends on the machine's number of CPUs, or if groups could not be read.
pub fn flags_alone(machine: &MachineView) -> Option<FlagsAlone> {
    let (facts, groups) = (machine.facts(), &machine.survey.groups);
    let is_read = match groups {
        Fact::Absent => true,
        Fact::Known(groups) => readable(groups).is_ok(),
        _ => false,
    };
    let lists: Vec<(&str, Isolcpus)> = facts
        .cmdline
        .known()
        .filter(|_| is_read && !machine.survey.is_stopped)?
        .values("isolcpus")
        .filter_map(|value| Some((value, isolcpus_of_any_machine(value)?)))
        .collect();
    if lists.iter().any(|(_, list)| list.domain || is_void(machine, list)) {
        return None;
    }
    let (value, list) = lists.first()?;
    let isolated = facts.isolated.known()?.or(&isolated_by_cgroup(machine.survey));
    let cpus = list.cpus.and(facts.online.known()?).without(&isolated);
    let remedy = Remedy::advice(
        AdviceReason::Choice,
        format!(
            "boot with isolcpus=domain,{}, or isolate the CPUs at run time with `onbeat isolate create {cpus}`",
            truncate(value)
        ),
    )
    .with_persistence(Persistence::Boot);
    let found = format!("isolcpus={}", truncate(value));
    (!cpus.is_empty()).then_some(FlagsAlone { cpus, found, remedy })
}

/// Value that is the same on every machine: one with `N` depends on the number of CPUs.
fn isolcpus_of_any_machine(value: &str) -> Option<Isolcpus> {
    let [one, other] = [Cpu(0), Cpu(1 << 12)].map(|last| parse_isolcpus(value, last).ok());
    one.filter(|one| Some(one) == other.as_ref())
}

/// True before 5.6 for a value with a flag that such a kernel does not know: it voids the
/// parameter.
fn is_void(machine: &MachineView, list: &Isolcpus) -> bool {
    let is_old = machine.series().is_ok_and(|series| series < (5, 6));
    is_old && (list.managed_irq || list.skipped.is_some())
}

/// True if the audited CPUs are known to be out of load balancing.
pub fn is_off(machine: &MachineView) -> bool {
    balanced_cpus(machine).is_ok_and(|cpus| cpus.is_empty())
}

/// Isolates the audited CPUs at boot, and corrects an `irqaffinity=` that includes any of them.
pub fn isolate_at_boot(machine: &MachineView) -> Remedy {
    if let Some(released) = released_first(machine) {
        return released;
    }
    let word = Change::cmdline_add(isolcpus(machine, true));
    // A kernel without the option does not know the parameter.
    let config = machine.facts().kconfig.known();
    let boot = if config.is_some_and(|config| config.get("CPU_ISOLATION") == OptionValue::No) {
        Remedy::of([Change::kconfig("CPU_ISOLATION", "y"), word])
    } else {
        Remedy::from(word)
    };
    let asked = machine.facts().cmdline.known().and_then(|cmdline| cmdline.value("irqaffinity"));
    let crosses = asked
        .and_then(|list| CpuSet::parse(list).ok())
        .is_some_and(|list| !list.and(machine.cpus()).is_empty());
    match machine.housekeeping_cpus() {
        Ok(rest) if crosses => boot.and(Change::cmdline_add(format!("irqaffinity={rest}"))),
        _ => boot,
    }
}

/// True for kernels that accept any runtime of the fair server on any CPU: observed on 7.2 and 7.3.
pub fn takes_all_servers(machine: &MachineView) -> bool {
    machine.series().is_ok_and(|series| series >= (7, 2))
}

/// Takes CPUs back into load balancing whose fair server is on: before 7.2 it is switched off
/// first, and a partition isolates them then. None if there are none of them.
pub fn released_first(machine: &MachineView) -> Option<Remedy> {
    let facts = machine.facts();
    let isolated = facts.isolated.known()?;
    let is_on = |server: &FairServer| {
        let ours = isolated.contains(server.cpu) && machine.cpus().contains(server.cpu);
        ours && server.runtime_ns > 0
    };
    if takes_all_servers(machine) || !facts.fair_servers.known()?.iter().any(is_on) {
        return None;
    }
    let cpus = isolated_with_ours(machine);
    let given = facts.cmdline.known().and_then(|cmdline| cmdline.values("isolcpus").next());
    let first = match given {
        Some(given) => format!("replace isolcpus={} by {} on", truncate(given), isolcpus(machine, false)),
        None => "remove isolcpus= from".to_owned(),
    };
    let words = format!(
        "{first} the kernel's command line; then `onbeat isolate create {cpus} --yes` sets both in their \
         order"
    );
    Some(Remedy::advice(AdviceReason::NotNow, words).with_persistence(Persistence::Boot))
}

/// The audited CPUs and those that are isolated already, unless no other is left.
fn isolated_with_ours(machine: &MachineView) -> CpuSet {
    let (facts, cpus) = (machine.facts(), machine.cpus());
    let both = facts.isolated.known().map_or(cpus.clone(), |isolated| cpus.or(isolated));
    let is_left = facts.online.known().is_none_or(|online| !online.without(&both).is_empty());
    if is_left { both } else { cpus.clone() }
}

/// The parameter that isolates these CPUs, from load balancing or from managed interrupts alone,
/// with the flags in use that no rule wants gone: the one value that all rules ask for.
pub fn isolcpus(machine: &MachineView, from_balancing: bool) -> String {
    let given = machine.facts().cmdline.known().and_then(|cmdline| cmdline.values("isolcpus").next());
    let ticks = given.is_some_and(|value| value.split(',').any(|flag| flag == "nohz"));
    let mut flags = if ticks && !wants_ticks(machine) { vec!["nohz"] } else { Vec::new() };
    // Before 5.6 an unknown flag invalidates the whole parameter.
    if !machine.series().is_ok_and(|series| series < (5, 6)) {
        flags.push("managed_irq");
    }
    if from_balancing {
        flags.push("domain");
    }
    let cpus = if given.is_some() { isolated_with_ours(machine) } else { machine.cpus().clone() };
    format!("isolcpus={},{cpus}", flags.join(","))
}

/// True if `nohz-full` wants the tick back on the audited CPUs.
fn wants_ticks(machine: &MachineView) -> bool {
    let is_judged = [Profile::ControlLoop, Profile::Audio].into_iter().any(|one| machine.has_profile(one));
    let listed = machine.facts().nohz_full.known();
    is_judged && listed.is_some_and(|listed| !listed.and(machine.cpus()).is_empty())
}
