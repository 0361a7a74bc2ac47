//! CPUs that cannot be isolated.

use facts::survey::Survey;
use model::error::{Failure, Result};
use model::units::{Cpu, CpuSet};

/// Refuses CPUs that the rest of the machine needs, and parts of cores.
///
/// # Errors
/// Usage, with an alternative; not supported if the CPUs cannot be read.
pub fn require_separable(survey: &Survey, cpus: &CpuSet) -> Result<()> {
    let facts = &survey.facts;
    let Some(online) = facts.online.known() else {
        return Err(Failure::not_supported(
            "cannot read the online CPUs from /sys/devices/system/cpu/online: mount /sys",
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
            "CPU {off} is offline: omit it, or echo 1 >/sys/devices/system/cpu/cpu{first}/online first"
        )));
    }
    if online.without(cpus).is_empty() {
        return Err(Failure::usage(format!(
            "no CPU would be left for everything else: omit at least one of {online}"
        )));
    }
    require_whole_cores(survey, cpus)?;
    require_timekeeper(survey, cpus)
}

fn last(online: &CpuSet) -> String {
    online.iter().last().map_or_else(String::new, |cpu| cpu.to_string())
}

/// Two CPUs of one core take time from each other.
fn require_whole_cores(survey: &Survey, cpus: &CpuSet) -> Result<()> {
    let cores = survey.facts.siblings.known().map_or(&[][..], Vec::as_slice);
    let half = cores.iter().find(|core| {
        let inside = core.and(cpus);
        !inside.is_empty() && inside.len() < core.len()
    });
    half.map_or(Ok(()), |core| {
        Err(Failure::usage(format!(
            "CPU {} shares its core with CPU {}: name both or neither",
            core.and(cpus),
            core.without(cpus)
        )))
    })
}

/// With `nohz_full=` one of the other CPUs keeps the time for all, usually the first one
/// (Documentation/timers/no_hz.rst).
fn require_timekeeper(survey: &Survey, cpus: &CpuSet) -> Result<()> {
    let tickless = survey.facts.nohz_full.known().filter(|list| !list.is_empty());
    match tickless {
        Some(tickless) if cpus.contains(Cpu(0)) && !tickless.contains(Cpu(0)) => {
            Err(Failure::usage(format!("CPU 0 keeps the time for the CPUs of nohz_full={tickless}: omit it")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::require_separable;
    use model::error::Exit;
    use model::units::CpuSet;
    use rules::fixture::Machine;

    /// Refusal of these CPUs on a machine with four CPUs after some edits; `""` if they can be
    /// isolated.
    fn refusal_text(edits: &str, cpus: &str) -> String {
        let mut machine = Machine::base();
        machine.edit(edits);
        let refused = require_separable(&machine.read(), &CpuSet::parse(cpus).unwrap());
        refused.err().map_or_else(String::new, |failure| {
            assert_eq!(failure.exit, Exit::Usage);
            failure.message
        })
    }

    #[test]
    fn cpus_that_cannot_be_set_apart_are_refused_with_others() {
        assert_eq!(refusal_text("", "2-3"), "");
        assert_eq!(refusal_text("", ""), "no CPU is named: choose among 0-3, like 3");
        assert!(refusal_text("", "0-3").contains("omit at least one of 0-3"));
        assert!(refusal_text("", "3-4").starts_with("CPU 4 does not exist here: choose among 0-3"));
        let off = "/sys/devices/system/cpu/online: 0-2\n/sys/devices/system/cpu/present: 0-3";
        assert!(refusal_text(off, "2-3").contains("echo 1 >/sys/devices/system/cpu/cpu3/online"));
    }

    #[test]
    fn half_a_core_is_refused() {
        let siblings = (0..4).map(|cpu| {
            let core = if cpu % 2 == 0 { "0,2" } else { "1,3" };
            ["core_cpus_list", "thread_siblings_list"]
                .map(|file| format!("/sys/devices/system/cpu/cpu{cpu}/topology/{file}: {core}\n"))
                .concat()
        });
        let edits: String = siblings.collect();
        assert_eq!(refusal_text(&edits, "1,3"), "");
        assert!(
            refusal_text(&edits, "2-3").contains("CPU 2 shares its core with CPU 0: name both or neither")
        );
    }

    #[test]
    fn the_timekeeper_stays() {
        let tickless = "/sys/devices/system/cpu/nohz_full: 2-3";
        assert!(refusal_text(tickless, "0").contains("CPU 0 keeps the time for the CPUs of nohz_full=2-3"));
        assert_eq!(refusal_text(tickless, "2-3"), "");
        assert_eq!(refusal_text("/sys/devices/system/cpu/nohz_full:", "0"), "");
    }
}
