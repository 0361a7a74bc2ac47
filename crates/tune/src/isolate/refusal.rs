//! CPUs that cannot be set apart.

use facts::survey::Survey;
use model::error::{Failure, Result};
use model::units::{Cpu, CpuSet};

/// Refuses CPUs without which the rest of the machine does not run, or that are no whole cores.
///
/// # Errors
/// Usage, with what to give instead; not supported where it cannot be read which CPUs there are.
pub fn require_separable(survey: &Survey, cpus: &CpuSet) -> Result<()> {
    let facts = &survey.facts;
    let Some(online) = facts.online.known() else {
        return Err(Failure::not_supported(
            "which CPUs are online cannot be read from /sys/devices/system/cpu/online: mount /sys",
        ));
    };
    if cpus.is_empty() {
        return Err(Failure::usage(format!("no CPU is named: choose among {online}, like {}", last(online))));
    }
    let present = facts.present.known().unwrap_or(online);
    let missing = cpus.without(present);
    if !missing.is_empty() {
        return Err(Failure::usage(format!("CPU {missing} does not exist here: choose among {online}")));
    }
    let off = cpus.without(online);
    if let Some(first) = off.iter().next() {
        return Err(Failure::usage(format!(
            "CPU {off} is offline: leave it out, or echo 1 >/sys/devices/system/cpu/cpu{first}/online first"
        )));
    }
    if online.without(cpus).is_empty() {
        return Err(Failure::usage(format!(
            "no CPU would be left for everything else: leave out at least one of {online}"
        )));
    }
    require_whole_cores(survey, cpus)?;
    require_timekeeper(survey, cpus)
}

fn last(online: &CpuSet) -> String {
    online.iter().last().map_or_else(String::new, |cpu| cpu.to_string())
}

/// Of two CPUs that share a core, each takes time from the other.
fn require_whole_cores(survey: &Survey, cpus: &CpuSet) -> Result<()> {
    let cores = survey.facts.siblings.known().map_or(&[][..], Vec::as_slice);
    let half = cores.iter().find(|core| {
        let inside = core.and(cpus);
        !inside.is_empty() && inside.len() < core.len()
    });
    half.map_or(Ok(()), |core| {
        Err(Failure::usage(format!(
            "CPU {} shares its core with CPU {}: take both or neither",
            core.and(cpus),
            core.without(cpus)
        )))
    })
}

/// With `nohz_full=` one of the other CPUs keeps the time for all, as a rule the first
/// (Documentation/timers/no_hz.rst).
fn require_timekeeper(survey: &Survey, cpus: &CpuSet) -> Result<()> {
    let tickless = survey.facts.nohz_full.known().filter(|list| !list.is_empty());
    match tickless {
        Some(tickless) if cpus.contains(Cpu(0)) && !tickless.contains(Cpu(0)) => Err(Failure::usage(
            format!("CPU 0 keeps the time for those of nohz_full={tickless}: leave it out"),
        )),
        _ => Ok(()),
    }
}
