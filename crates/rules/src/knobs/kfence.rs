//! KFENCE: a detector of memory errors that samples allocations.

use super::sources::KFENCE;
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_absent;
use crate::view::MachineView;
use facts::kconfig::OptionValue;
use facts::line::parse_u64;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "kfence",
    title: "KFENCE",
    description: "In each sample interval, 100 ms by default, KFENCE places one kernel allocation between \
                  guard pages, to find use-after-free and out-of-bounds errors. It is designed for \
                  production use.",
    rationale: "in each interval a work item wakes a worker and the next allocation takes the slow path; \
                with KFENCE_STATIC_KEYS kernel code is patched twice per interval, which interrupts every \
                CPU",
    detection: "The sample interval (0 if off), and whether the kernel's configuration uses static keys. \
                Only root can read the interval.",
    side_effects: "Memory errors of drivers in the field are no longer found: for a product this reduces \
                   safety and security. Without static keys, try a longer interval first.",
    wanted: "off, or its cost was measured",
    fix: || Remedy::from(Change::write(INTERVAL, 0)).persist(Change::cmdline_add("kfence.sample_interval=0")),
    severity: Severity::Low,
    evidence: EvidenceKind::Source,
    disputed: "the kernel's documentation recommends it for production: without static keys, `onbeat \
               measure` with and without it, and `onbeat compare` the two",
    persistence: Persistence::Runtime,
    sets: INTERVAL,
    sources: &[Source { title: "kernel: KFENCE, implementation details", url: KFENCE }],
    cures: &[SliceKind::Workqueue, SliceKind::Ipi],
    reads: &[INTERVAL],
    facts: &["/boot/config-RELEASE", "/proc/cmdline"],
    judge,
    examples: Examples {
        fires: "CONFIG_KFENCE=y\n/sys/module/kfence/parameters/sample_interval: 100",
        silent: "CONFIG_KFENCE=y\n/sys/module/kfence/parameters/sample_interval: 0",
        unknown: "CONFIG_KFENCE=y\n/sys/module/kfence/parameters/sample_interval refused",
    },
    ..Knob::DEFAULT
};

const INTERVAL: &str = "/sys/module/kfence/parameters/sample_interval";

fn judge(machine: &MachineView) -> Judged {
    let is_stopped = machine.survey.is_stopped;
    let interval = if is_stopped { at_boot(machine)? } else { machine.parsed(INTERVAL, parse_u64)? };
    let Some(interval) = interval else {
        if machine.shows_by_absence() {
            return Err(Judgement::not_applicable("the kernel has no KFENCE: its parameter does not exist"));
        }
        if machine.kconfig()?.is_yes("KFENCE") {
            return Err(Judgement::unknown(format!("{INTERVAL} is missing, although the kernel has KFENCE")));
        }
        return Err(Judgement::not_applicable("the kernel has no KFENCE"));
    };
    if interval == 0 {
        return Ok(Judgement::pass("off"));
    }
    let patches = machine.kconfig().is_ok_and(|config| config.is_yes("KFENCE_STATIC_KEYS"));
    let judged = if patches {
        Judgement::fail(format!("every {interval} ms, with static keys")).severity(Severity::Medium)
    } else {
        Judgement::fail(format!("every {interval} ms"))
    };
    Ok(if is_stopped { judged.fix(Change::cmdline_add(format!("{WORD}=0"))) } else { judged })
}

const WORD: &str = "kfence.sample_interval";

/// The interval that a kernel starts with; none without the option.
fn at_boot(machine: &MachineView) -> Result<Option<u64>, Judgement> {
    let config = machine.kconfig()?;
    if !config.is_yes("KFENCE") {
        return Ok(None);
    }
    let built = match config.get("KFENCE_SAMPLE_INTERVAL") {
        OptionValue::Value(number) => parse_u64(number).ok(),
        _ => None,
    };
    let given = machine.cmdline_or_built_in()?.in_effect(WORD, |value| parse_u64(value).ok());
    let interval = given.map(|(_, interval)| interval).or(built);
    let interval = interval.ok_or_else(|| unknown_absent("CONFIG_KFENCE_SAMPLE_INTERVAL"))?;
    if interval == 0 {
        // The boot loader may name another.
        machine.cmdline()?;
    }
    Ok(Some(interval))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn static_keys_are_worse() {
        let on = "/sys/module/kfence/parameters/sample_interval: 100";
        check(&KNOB, "", "pass off");
        check(&KNOB, on, "fail low every 100 ms");
        check(
            &KNOB,
            &format!("{on}\nCONFIG_KFENCE_STATIC_KEYS=y"),
            "fail medium every 100 ms, with static keys",
        );
        check(&KNOB, &format!("{on}\n/boot refused"), "fail low every 100 ms");
    }

    #[test]
    fn an_absent_parameter_is_no_pass() {
        let absent = "/sys/module/kfence absent";
        check(&KNOB, &format!("{absent}\nCONFIG_KFENCE=n"), "not-applicable the kernel has no KFENCE");
        check(&KNOB, &format!("{absent}\nCONFIG_KFENCE=y"), "unknown");
        check(
            &KNOB,
            &format!("{absent}\n/boot refused"),
            "not-applicable the kernel has no KFENCE: its parameter does not exist",
        );
        check(&KNOB, "/sys/module/kfence/parameters/sample_interval: -1", "unknown");
    }
}
