//! Ticks that occur on all CPUs at the same time.

use super::sources::PARAMETERS;
use super::unsettable;
use crate::change::Change;
use crate::change::Persistence;
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::view::MachineView;
use facts::Fact;
use facts::kbool::leading_int;
use facts::kconfig::OptionValue;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "skew-tick",
    title: "simultaneous ticks",
    description: "By default the tick occurs on all CPUs at the same time, so that sleeping CPUs wake up \
                  together. With skew_tick=1 each CPU has a different offset.",
    rationale: "the ticks of all CPUs take the same locks at the same time and wait for each other, longer \
                with more CPUs",
    detection: "skew_tick= on the command line, which also shows built-in parameters.",
    side_effects: "More power: CPUs and shared units wake up one after the other, and are idle for a shorter \
                   time.",
    wanted: "skew_tick=1",
    fix: || Change::cmdline_add("skew_tick=1").into(),
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    disputed: "with few CPUs there is little to gain: `onbeat compare` runs with and without it",
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[Source { title: "kernel: command line, skew_tick=", url: PARAMETERS }],
    cures: &[SliceKind::TimerIrq, SliceKind::LockContention],
    facts: &["/boot/config-RELEASE", "/proc/cmdline", "/sys/devices/system/cpu/online"],
    judge,
    examples: Examples {
        fires: "cmdline - skew_tick=1",
        silent: "cmdline + skew_tick=1",
        unknown: "/proc/cmdline refused",
    },
    ..Knob::DEFAULT
};

/// Number of CPUs from which on simultaneous ticks are a finding of low severity; the kernel's
/// document mentions larger systems.
const MANY: usize = 16;

fn judge(machine: &MachineView) -> Judged {
    let online = match &machine.facts().online {
        // The CPUs of a kernel that is not running are not known.
        Fact::NotRunning => None,
        online => Some(machine.known(online, "/sys/devices/system/cpu/online")?.len()),
    };
    let is_single = machine.facts().kconfig.known().map(|config| config.get("SMP")) == Some(OptionValue::No);
    if online.map_or(is_single, |count| count == 1) {
        return Err(Judgement::not_applicable("there is one CPU"));
    }
    if machine.has_profile(Profile::Audio) {
        return Err(Judgement::not_applicable("it does not matter for periods of milliseconds"));
    }
    let value = machine.cmdline_or_built_in()?.values("skew_tick").filter_map(leading_int).next_back();
    if value.is_some_and(|number| number != 0) {
        return Ok(Judgement::pass("skew_tick=1"));
    }
    // The boot loader's words are not known, and may include it.
    machine.cmdline()?;
    let severity = if online.is_none_or(|count| count < MANY) { Severity::Info } else { Severity::Low };
    let value = if value.is_some() { "skew_tick=0" } else { "not given" };
    let cpus = online.map(|count| format!(", {count} CPUs")).unwrap_or_default();
    Ok(Judgement::fail(format!("{value}{cpus}")).severity(severity))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn severity_grows_with_the_number_of_cpus() {
        let online = |list: &str| format!("cmdline - skew_tick=1\n/sys/devices/system/cpu/online: {list}");
        check(&KNOB, "", "pass skew_tick=1");
        check(&KNOB, &online("0-3"), "fail info not given, 4 CPUs");
        check(&KNOB, &online("0-31"), "fail low not given, 32 CPUs");
        check(&KNOB, "cmdline + skew_tick=0", "fail info skew_tick=0, 4 CPUs");
        for off in ["on", "1\ncmdline + skew_tick=on"] {
            let edits = format!("cmdline - skew_tick=1\ncmdline + skew_tick={off}");
            check(&KNOB, &edits, "fail info skew_tick=0, 4 CPUs");
        }
        for on in ["0x1", "1,5", "1\ncmdline + skew_tick="] {
            check(&KNOB, &format!("cmdline - skew_tick=1\ncmdline + skew_tick={on}"), "pass skew_tick=1");
        }
        check(&KNOB, &online("0"), "not-applicable there is one CPU");
        check(&KNOB, "/sys/devices/system/cpu/online refused\n--cpus 0", "unknown");
        check(&KNOB, "--profile audio", "not-applicable it does not matter for periods of milliseconds");
    }
}
