//! Audited CPUs that are still part of load balancing, and the parameter that takes them out of it
//! at boot.

use crate::change::Change;
use crate::isolation::{isolated_by_cgroup, readable};
use crate::judgement::Judgement;
use crate::remedy::Remedy;
use crate::unknown::unknown_from;
use crate::view::MachineView;
use facts::Fact;
use facts::kconfig::OptionValue;
use model::units::CpuSet;

/// Audited CPUs over which load is balanced; unknown if that could be any of them.
pub fn balanced_cpus(machine: &MachineView) -> Result<CpuSet, Judgement> {
    const BOOT: &str = "/sys/devices/system/cpu/isolated";
    let survey = machine.survey;
    let boot = survey.facts.isolated.known().cloned().unwrap_or_default();
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

/// True if the audited CPUs are known to be out of load balancing.
pub fn is_off(machine: &MachineView) -> bool {
    balanced_cpus(machine).is_ok_and(|cpus| cpus.is_empty())
}

/// Isolates the audited CPUs at boot, and corrects an `irqaffinity=` that includes any of them.
pub fn isolate_at_boot(machine: &MachineView) -> Remedy {
    let word = Change::cmdline_add(isolcpus(machine));
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

/// The parameter that isolates the audited CPUs and those that are isolated already, with the flags
/// in use.
fn isolcpus(machine: &MachineView) -> String {
    let facts = machine.facts();
    let given = facts.cmdline.known().and_then(|cmdline| cmdline.values("isolcpus").next());
    let ticks = given.is_some_and(|value| value.split(',').any(|flag| flag == "nohz"));
    let isolated = facts.isolated.known().filter(|_| given.is_some()).cloned().unwrap_or_default();
    let mut flags = if ticks { vec!["nohz"] } else { Vec::new() };
    // Before 5.6 an unknown flag invalidates the whole parameter.
    if !machine.series().is_ok_and(|series| series < (5, 6)) {
        flags.push("managed_irq");
    }
    flags.push("domain");
    format!("isolcpus={},{}", flags.join(","), machine.cpus().or(&isolated))
}
