//! Kernels that know a parameter, by their architecture, their build and their log.

use super::mitigations::{ARM64, X86, architecture, takers};
use crate::judgement::Judgement;
use crate::parameters::idle_value;
use crate::view::MachineView;
use facts::choice::parse_choice;
use facts::kconfig::Kconfig;
use facts::uname::{Flag, preemption_flag};
use model::vocabulary::Preempt;

/// Setting of transparent huge pages.
pub const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Preemption models that can be chosen.
pub const MODELS: &str = "/sys/kernel/debug/sched/preempt";

/// True if the kernel's log names a word among the unknown ones; none if the log does not list
/// them.
pub fn named_by_log(machine: &MachineView, name: &str) -> Option<bool> {
    machine.survey.unknown_words.known().map(|words| words.iter().any(|word| word == name))
}

/// Parameters of x86 only, in the kernel or in drivers that are built for it only.
const OF_X86: &[&str] = &[
    "amd_pstate",
    "hpet",
    "i915.enable_dc",
    "intel_idle.max_cstate",
    "intel_pstate",
    "mce",
    "nolapic_timer",
    "nox2apic",
    "tlbi",
    "tsc",
];

/// Reason why a parameter belongs to another architecture; none if it may belong to this one.
pub fn of_another(machine: &MachineView, name: &str) -> Option<String> {
    let takers = match name {
        name if OF_X86.contains(&name) => &[X86][..],
        name if name.starts_with("arm64.") || name == "irqchip.gicv3_pseudo_nmi" => ARM64,
        name => takers(name)?,
    };
    let here = architecture(machine)?;
    // The log lists no word with a dot.
    let is_taken = takers.iter().any(|taker| here.starts_with(taker))
        || (!name.contains('.') && named_by_log(machine, name) == Some(false));
    // The name that 32-bit programs see is another name of the same architecture.
    let names: Vec<&str> = takers.iter().copied().filter(|name| *name != "armv8").collect();
    (!is_taken).then(|| format!("of {} alone", names.join(" and ")))
}

/// Reason why this kernel was built without a parameter; none if it may have it.
pub fn not_built(machine: &MachineView, name: &str) -> Option<String> {
    let is_rt = machine.facts().preempt == Preempt::Rt;
    let lacks = |option| machine.kconfig().is_ok_and(|config| !config.is_yes(option));
    let words = match name {
        // A kernel with the settings also has the parameter.
        "transparent_hugepage" if matches!(machine.line_if_present(HUGE_PAGES), Ok(Some(_))) => return None,
        // mm/Kconfig
        "transparent_hugepage" if is_rt => "PREEMPT_RT kernels have no transparent huge pages",
        "transparent_hugepage" if lacks("TRANSPARENT_HUGEPAGE") => "built without TRANSPARENT_HUGEPAGE",
        // kernel/rcu/update.c
        "rcupdate.rcu_normal_after_boot" if is_rt && lacks("NO_HZ_FULL") => {
            "a PREEMPT_RT kernel without NO_HZ_FULL does this by default"
        }
        _ => return None,
    };
    Some(words.to_owned())
}

/// True for x86.
pub fn is_x86(machine: &MachineView) -> Result<bool, Judgement> {
    let arch = machine.known(&machine.facts().machine, "/proc/sys/kernel/arch")?;
    Ok(matches!(arch.as_str(), "x86_64" | "i386" | "i486" | "i586" | "i686"))
}

/// True for other architectures than x86.
pub fn is_not_x86(machine: &MachineView) -> Result<bool, Judgement> {
    is_x86(machine).map(|x86| !x86)
}

/// True if idle= has no nop, wfi and yield: on all but arm64 from 7.3 on (arch/arm64/kernel/idle.c,
/// `setup_idle()`; 7.2 has none).
pub fn lacks_idle(machine: &MachineView) -> Result<bool, Judgement> {
    let arch = machine.known(&machine.facts().machine, "/proc/sys/kernel/arch")?;
    Ok(!ARM64.iter().any(|name| arch.starts_with(name)) || machine.series()? < (7, 3))
}

/// Parameters that accept only a boolean value (`kstrtobool()`).
const BOOLEANS: [&str; 3] = ["highres", "nohz", "psi"];

/// True for a value of such a parameter that this release refuses.
pub fn is_no_truth(machine: &MachineView, name: &str, value: &str) -> Result<bool, Judgement> {
    if !BOOLEANS.contains(&name) || value.is_empty() {
        return Ok(false);
    }
    machine.series()?;
    Ok(machine.truth(value).is_none())
}

/// False for a value that this kernel refuses, which leaves the one before it in effect.
pub fn takes(machine: &MachineView, name: &str, value: &str) -> bool {
    idle_value(name, value).is_none() && is_no_truth(machine, name, value) != Ok(true)
}

/// True for architectures that have the lazy model, and with 7.0 lost two others for it.
fn has_lazy(machine: &MachineView) -> Result<bool, Judgement> {
    let arch = machine.known(&machine.facts().machine, "/proc/sys/kernel/arch")?;
    Ok(is_x86(machine)? || matches!(arch.as_str(), "aarch64" | "riscv64"))
}

/// The reason for which the kernel refuses the model; none where it takes it, or may.
pub fn refused_model(machine: &MachineView, model: &str) -> Result<Option<String>, Judgement> {
    if let Some(offered) = machine.parsed(MODELS, parse_choice).ok().flatten().map(|choice| choice.offered) {
        let offer = || format!("this kernel offers only {}", offered.join(" and "));
        return Ok((!offered.iter().any(|word| word == model)).then(offer));
    }
    let is_stopped = machine.survey.is_stopped;
    let flag = if is_stopped {
        built_flag(machine.kconfig()?)
    } else {
        preemption_flag(machine.known(&machine.facts().version, "/proc/sys/kernel/version")?)
    };
    let series = machine.series()?;
    Ok(match (flag, model) {
        (_, model) if !matches!(model, "none" | "voluntary" | "full" | "lazy") => {
            Some("no model of this name can be selected at boot".to_owned())
        }
        // From 5.12 to 5.17 the build string does not show it.
        (Flag::Plain | Flag::Preempt, _) if is_stopped || !((5, 12)..(5, 18)).contains(&series) => {
            Some("this kernel has only one model: it is built without PREEMPT_DYNAMIC".to_owned())
        }
        // The build string does not show whether it is dynamic as well.
        (Flag::Rt, "full" | "lazy") if !machine.kconfig()?.is_yes("PREEMPT_DYNAMIC") => {
            Some("this kernel is built without PREEMPT_DYNAMIC".to_owned())
        }
        (Flag::Rt, "none" | "voluntary") => {
            Some("a PREEMPT_RT kernel offers full and lazy at most".to_owned())
        }
        (_, "lazy") if series < (6, 13) => Some("it came with 6.13".to_owned()),
        (Flag::Dynamic, "none" | "voluntary") if series >= (7, 0) && has_lazy(machine)? => {
            Some("removed in 7.0 on kernels with lazy: full and lazy remain".to_owned())
        }
        _ => None,
    })
}

/// The build string's flag of a kernel that is not running.
fn built_flag(config: &Kconfig) -> Flag {
    match ["PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT"].map(|option| config.is_yes(option)) {
        [true, ..] => Flag::Rt,
        [_, true, _] => Flag::Dynamic,
        [.., true] => Flag::Preempt,
        _ => Flag::Plain,
    }
}
