//! Lazy callbacks of RCU: held back to save power, then run in one batch.

use super::sources::{PARAMETERS, RCU_OPTIONS};
use super::unsettable;
use crate::change::{Change, Persistence};
use crate::isolation::isolated_cpus;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::releases::outside_release;
use crate::remedy::Remedy;
use crate::view::MachineView;
use facts::Fact;
use facts::cmdline::{Param, same_name};
use facts::cpu_lists::parse_kernel_list;
use facts::kbool::kbool;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "rcu-lazy",
    title: "lazy RCU callbacks",
    description: "With RCU_LAZY the callbacks of CPUs in rcu_nocbs= are delayed by up to 10 seconds, unless \
                  memory is short, so that idle CPUs are woken less often.",
    rationale: "memory is freed later, in one longer run of the rcuo threads",
    detection: "The parameter of rcutree if the kernel has one (from 6.9 on), or else the command line and \
                the configuration; and whether any CPU offloads its callbacks, because other callbacks are \
                never lazy.",
    side_effects: "More wake-ups, and so more power, on machines that are mostly idle.",
    wanted: "off",
    fix: || Change::cmdline_add("rcutree.enable_rcu_lazy=0").into(),
    severity: Severity::Info,
    evidence: EvidenceKind::Source,
    disputed: "the batches run on the CPUs of the rcuo threads, rarely on the audited CPUs: `onbeat measure` \
               with and without it, and `onbeat compare` the two",
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[
        Source { title: "kernel: command line, rcutree.enable_rcu_lazy=", url: PARAMETERS },
        Source { title: "kernel: kernel/rcu/Kconfig, RCU_LAZY", url: RCU_OPTIONS },
    ],
    cures: &[SliceKind::Thread],
    reads: &[PARAMETER],
    facts: &["/boot/config-RELEASE", "/proc/cmdline", "/sys/devices/system/cpu/nohz_full"],
    judge,
    examples: Examples {
        fires: "CONFIG_RCU_LAZY=y
                /sys/module/rcutree/parameters/enable_rcu_lazy: Y
                cmdline + rcu_nocbs=2-3",
        silent: "/sys/module/rcutree/parameters/enable_rcu_lazy: N",
        unknown: "/sys/module/rcutree/parameters/enable_rcu_lazy refused",
    },
    ..Knob::DEFAULT
};

pub const PARAMETER: &str = "/sys/module/rcutree/parameters/enable_rcu_lazy";

/// Callbacks that are offloaded at the next boot are not to be put off; for rules that read
/// [`PARAMETER`].
pub fn prompt_callbacks(machine: &MachineView, remedy: Remedy) -> Remedy {
    let lazy =
        matches!(machine.line_if_present(PARAMETER), Ok(Some(value)) if kbool(&value, None) == Some(true));
    if lazy { remedy.and(Change::cmdline_add("rcutree.enable_rcu_lazy=0")) } else { remedy }
}

/// The list that counts, `""` of the word without one; none without the word. The last counts, and
/// without a list it empties the mask; before 5.17 only the word with a list is one
/// (`rcu_nocb_setup()`).
pub fn callback_list<'a>(machine: &MachineView<'a>) -> Result<Option<&'a str>, Judgement> {
    let bare_counts = machine.series().is_ok_and(|series| series >= (5, 17));
    let given = machine.cmdline()?.params.iter().rev();
    let mut given = given.filter(|param| same_name(&param.name, "rcu_nocbs"));
    let last = given.find(|param| bare_counts || param.value.is_some());
    Ok(last.map(|param| param.value.as_deref().unwrap_or_default()))
}

/// The word that offloads the audited CPUs, and those that it offloads already and that are set
/// apart.
pub fn offloading_word(machine: &MachineView) -> Change {
    let given = callback_list(machine).ok().flatten();
    let last = machine.facts().online.known().and_then(|online| online.iter().last()).unwrap_or_default();
    let given = given.and_then(|list| parse_kernel_list(list, last).ok()).unwrap_or_default();
    let apart = isolated_cpus(machine.survey).unwrap_or_default();
    Change::cmdline_add(format!("rcu_nocbs={}", machine.cpus().or(&given.and(&apart))))
}

const WORD: &str = "rcutree.enable_rcu_lazy";

/// True from 6.9 on, and where the parameter shows.
fn has_parameter(machine: &MachineView) -> Result<bool, Judgement> {
    Ok(machine.line_if_present(PARAMETER)?.is_some() || outside_release(WORD, || machine.series())?.is_none())
}

/// The value on the command line, where the kernel has the parameter.
fn value_at_boot(machine: &MachineView) -> Result<Option<bool>, Judgement> {
    // Without a value it is on (`param_set_bool()`).
    let given = machine.cmdline()?.params.iter().filter(|param| same_name(&param.name, WORD));
    let of = |param: &Param| param.value.as_deref().map_or(Some(true), |value| machine.truth(value));
    let word = given.filter_map(of).next_back();
    Ok(match word {
        Some(_) if !has_parameter(machine)? => None,
        word => word,
    })
}

fn judge(machine: &MachineView) -> Judged {
    let parse = |text: &str| kbool(text.trim(), None).ok_or_else(|| "expected Y or N".to_owned());
    let lazy = match machine.parsed(PARAMETER, parse)? {
        Some(lazy) => lazy,
        // kernel/rcu/Kconfig of 6.1 has no such option.
        None if machine.series().is_ok_and(|series| series <= (6, 1)) => {
            return Err(Judgement::not_applicable("RCU_LAZY came after 6.1"));
        }
        // Older kernels have it without the parameter.
        None if machine.kconfig()?.is_yes("RCU_LAZY") => {
            let default = || Ok(!machine.kconfig()?.is_yes("RCU_LAZY_DEFAULT_OFF"));
            value_at_boot(machine)?.map_or_else(default, Ok)?
        }
        None => return Err(Judgement::not_applicable("the kernel has no RCU_LAZY")),
    };
    if !lazy {
        return Ok(Judgement::pass("off"));
    }
    let has_full_ticks = if machine.facts().nohz_full == Fact::NotRunning {
        machine.cmdline()?.values("nohz_full").next().is_some()
    } else {
        machine.nohz_full()?.is_some_and(|cpus| !cpus.is_empty())
    };
    let is_offloaded = has_full_ticks || callback_list(machine)?.is_some_and(|list| !list.is_empty());
    if is_offloaded || machine.kconfig()?.is_yes("RCU_NOCB_CPU_DEFAULT_ALL") {
        let without = Change::kconfig("RCU_LAZY", "n");
        let judged = Judgement::fail("on");
        return Ok(if has_parameter(machine)? { judged } else { judged.fix(without) });
    }
    Ok(Judgement::pass("on, but no CPU offloads its callbacks"))
}

#[cfg(test)]
mod tests {
    use super::{KNOB, PARAMETER};
    use crate::fixture::{Machine, check};

    const ON: &str = "/sys/module/rcutree/parameters/enable_rcu_lazy: Y";

    #[test]
    fn only_offloaded_callbacks_are_lazy() {
        check(&KNOB, "", "pass off");
        let old = format!("/proc/sys/kernel/osrelease: 6.1.9\n/boot refused\n{PARAMETER} absent");
        check(&KNOB, &old, "not-applicable RCU_LAZY came after 6.1");
        check(&KNOB, ON, "fail info on");
        let none = "pass on, but no CPU offloads its callbacks";
        check(&KNOB, &format!("{ON}\ncmdline - rcu_nocbs=2-3"), none);
        // Without a list its mask is empty (kernel/rcu/tree_nocb.h).
        check(&KNOB, &format!("{ON}\ncmdline - rcu_nocbs=2-3\ncmdline + rcu_nocbs"), none);
        check(&KNOB, &format!("{ON}\ncmdline - rcu_nocbs=2-3\n/boot refused"), "unknown");
        check(&KNOB, &format!("{ON}\n/boot refused"), "fail info on");
    }

    #[test]
    fn without_the_parameter_the_configuration_decides() {
        let absent = "/sys/module/rcutree/parameters/enable_rcu_lazy absent\nCONFIG_RCU_LAZY";
        check(&KNOB, &format!("{absent}=n"), "not-applicable the kernel has no RCU_LAZY");
        check(&KNOB, &format!("{absent}=y\nCONFIG_RCU_LAZY_DEFAULT_OFF=n"), "fail info on");
        check(&KNOB, &format!("{absent}=y\nCONFIG_RCU_LAZY_DEFAULT_OFF=y"), "pass off");
        check(&KNOB, &format!("{absent}=y\n/boot refused"), "unknown");
        let word = format!("{absent}=y\nCONFIG_RCU_LAZY_DEFAULT_OFF=y\ncmdline + rcutree.enable_rcu_lazy=1");
        check(&KNOB, &word, "fail info on");
        let of = |release: &str, off: &str| {
            format!(
                "{PARAMETER} absent\n/proc/sys/kernel/osrelease: {release}\n/boot/config-{release}:\n\
                 | # Automatically generated file; DO NOT EDIT.\n\
                 | # Linux/x86 {release} Kernel Configuration\n| CONFIG_RCU_LAZY=y\n\
                 | # Kernel hacking\n{off}"
            )
        };
        let off = "| CONFIG_RCU_LAZY_DEFAULT_OFF=y\ncmdline + rcutree.enable_rcu_lazy=1";
        check(&KNOB, &of("6.8.12", off), "pass off");
        check(&KNOB, &of("6.9.1", off), "fail info on");
        let refused = "cmdline + rcutree.enable_rcu_lazy=0\ncmdline + rcutree.enable_rcu_lazy=x";
        check(&KNOB, &of("6.9.1", refused), "pass off");
        let mut machine = Machine::base();
        machine.edit(&of("6.8.12", ""));
        assert!(machine.finding(&KNOB).fix.contains("without CONFIG_RCU_LAZY"));
        check(&KNOB, "/sys/module/rcutree/parameters/enable_rcu_lazy: ?", "unknown");
    }
}
