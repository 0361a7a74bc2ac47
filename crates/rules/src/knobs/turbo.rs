//! Turbo: clocks that the processor cannot sustain.

use super::per_cpu::PerCpuSetting;
use super::sources::{ABI, INTEL_PSTATE};
use crate::change::{AdviceReason, Change, Persistence};
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use facts::line::{parse_i64, parse_word};
use model::slice::SliceKind;

const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";
const BOOST_OF: &str = "/sys/devices/system/cpu/cpu#/cpufreq/boost";
const DRIVER: &str = "/sys/devices/system/cpu/cpu#/cpufreq/scaling_driver";

pub static KNOB: Knob = Knob {
    id: "turbo",
    title: "turbo clocks",
    description: "Frequencies above the sustained one (Turbo Boost, Core Performance Boost). The processor \
                  grants and withdraws them depending on power, heat, and the number of active cores; the \
                  performance governor does not change that.",
    rationale: "the frequency depends on the activity of other cores and the temperature, and so does the \
                time for the same work",
    detection: "The switch of intel_pstate, or the general one of the other frequency drivers and its value \
                for each audited CPU. A switch in the firmware is visible only with intel_pstate.",
    side_effects: "The fastest case gets slower, on some processors by much. Settings that were tuned with \
                   turbo on have to be measured again.",
    wanted: "off, if each cycle must take the same time",
    fix: Remedy::default,
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    disputed: "some users prefer the speed and accept the variation: `onbeat compare` two runs of an hour \
               under the real load, one with turbo and one without, and look at the worst case, not the \
               median",
    persistence: Persistence::Runtime,
    sources: &[
        Source { title: "kernel: intel_pstate, turbo P-states support", url: INTEL_PSTATE },
        Source { title: "kernel: sysfs ABI, /sys/devices/system/cpu/cpufreq/boost", url: ABI },
    ],
    cures: &[SliceKind::Frequency],
    after: &["cpufreq-governor", "cpufreq-limit", "other-governors"],
    reads: &[NO_TURBO, BOOST, BOOST_OF, DRIVER],
    judge,
    examples: Examples {
        fires: "/sys/devices/system/cpu/intel_pstate/no_turbo: 0",
        silent: "/sys/devices/system/cpu/intel_pstate/no_turbo: 1",
        unknown: "/sys/devices/system/cpu/intel_pstate/no_turbo refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    // The profile needs speed in the median rather than in the worst case.
    let speed = machine.has_profile(Profile::BusyPoll) || machine.has_profile(Profile::Audio);
    let severity = if speed { Severity::Info } else { Severity::Medium };
    let on = |switch: &str, path: &str, value: u8| {
        Ok(Judgement::fail(format!("on ({switch})")).severity(severity).fix(
            Remedy::from(Change::write(path, value))
                .persist(Change::advice(AdviceReason::Machine, "switch turbo off in the firmware")),
        ))
    };
    match machine.number_if_present(BOOST)? {
        Some(0) => return Ok(Judgement::pass("off (boost 0)")),
        Some(_) => {
            let each = PerCpuSetting::of(machine, BOOST_OF, parse_i64);
            let off = !each.known.is_empty()
                && each.all_known().is_ok()
                && each.that(|&boost| boost != 0).is_empty();
            return if off {
                Ok(Judgement::pass("off on the audited CPUs (boost 0)"))
            } else {
                on("boost 1", BOOST, 0)
            };
        }
        None => {}
    }
    match machine.number_if_present(NO_TURBO)? {
        Some(0) => on("no_turbo 0", NO_TURBO, 1),
        Some(_) => Ok(Judgement::pass("off (no_turbo 1)")),
        None => Err(without(machine)),
    }
}

/// Judgement without a switch.
fn without(machine: &MachineView) -> Judgement {
    let drivers = PerCpuSetting::of(machine, DRIVER, parse_word);
    match (drivers.known.values().next(), machine.is_virtual()) {
        (Some(driver), _) => {
            let driver: String = driver.chars().take(40).collect();
            Judgement::not_applicable(format!("the frequency driver {driver} has no switch for it"))
        }
        (None, Err(untold)) => untold,
        (None, Ok(true)) => Judgement::not_applicable("in a guest, the host sets the CPU frequency"),
        (None, Ok(false)) => Judgement::unknown(
            "no frequency driver handles these CPUs: it is not known whether the firmware allows turbo \
             frequencies",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn either_switch_counts() {
        let boost = |value| {
            format!(
                "/sys/devices/system/cpu/intel_pstate absent\n\
                 /sys/devices/system/cpu/cpufreq/boost: {value}"
            )
        };
        check(&KNOB, "", "pass off (no_turbo 1)");
        check(&KNOB, &boost("0"), "pass off (boost 0)");
        check(&KNOB, &boost("1"), "fail medium on (boost 1)");
        check(&KNOB, &boost("on"), "unknown");
        let each = "/sys/devices/system/cpu/cpu2/cpufreq/boost: 0\n\
                    /sys/devices/system/cpu/cpu3/cpufreq/boost:";
        check(&KNOB, &format!("{}\n{each} 0", boost("1")), "pass off on the audited CPUs (boost 0)");
        check(&KNOB, &format!("{}\n{each} 1", boost("1")), "fail medium on (boost 1)");
    }

    #[test]
    fn what_the_machine_is_for_decides_how_bad_it_is() {
        let on = "/sys/devices/system/cpu/intel_pstate/no_turbo: 0";
        check(&KNOB, &format!("{on}\n--profile busy-poll"), "fail info on (no_turbo 0)");
        check(&KNOB, &format!("{on}\n--profile guest"), "fail medium on (no_turbo 0)");
    }

    #[test]
    fn no_switch_is_no_pass() {
        let none = "/sys/devices/system/cpu/intel_pstate absent\n\
                    /sys/devices/system/cpu/cpu2/cpufreq/scaling_driver: cpufreq-dt";
        check(&KNOB, none, "not-applicable the frequency driver cpufreq-dt has no switch for it");
        let bare = format!(
            "{none}\n/sys/devices/system/cpu/cpu2/cpufreq absent\n\
             /sys/devices/system/cpu/cpu3/cpufreq absent"
        );
        check(&KNOB, &bare, "unknown");
        check(
            &KNOB,
            &format!("{bare}\n/sys/hypervisor/type: xen"),
            "not-applicable in a guest, the host sets the CPU frequency",
        );
    }
}
