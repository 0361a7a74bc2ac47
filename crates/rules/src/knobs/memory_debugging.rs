//! Memory debugging that is active by the kernel's configuration, without a parameter.

use super::sources::{KASAN, KMEMLEAK, PARAMETERS, RT_CONFIG, SLAB};
use super::unsettable;
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use facts::cmdline::{Cmdline, Param, same_name};
use facts::kconfig::{Kconfig, OptionValue};
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "memory-debugging",
    title: "memory debugging",
    description: "Kernel build options that check its memory: sanitizers (KASAN, KCSAN, KMSAN), the leak \
                  detector (DEBUG_KMEMLEAK), object tracking (DEBUG_OBJECTS), and checks of each allocation \
                  (SLUB_DEBUG_ON, DEBUG_PAGEALLOC), address (DEBUG_VIRTUAL) or page (DEBUG_VM, \
                  PAGE_TABLE_CHECK_ENFORCED).",
    rationale: "each access to memory or each allocation does extra work in the kernel, and the \
                checks of the allocators run under their locks",
    detection: "The kernel's configuration, and its command line, which can switch some of them off \
                (kmemleak=off, slab_debug=-, kasan=off, debug_pagealloc=off, page_table_check=off, \
                no_debug_objects). Features that are only switched on there belong to debug-parameters. \
                Whether kmemleak was stopped later cannot be read, and whether the processor has the memory \
                tags (MTE) that KASAN_HW_TAGS needs is not checked.",
    side_effects: "Needs another kernel, or a parameter on the command line. These checks find corruption \
                   early: keep a kernel with them for tests. On arm64, KASAN_HW_TAGS is designed for \
                   production: without it a protection is lost.",
    wanted: "none in effect",
    fix: || {
        Remedy::advice(
            AdviceReason::Kernel,
            "boot a kernel built without them; until then kmemleak=off, slab_debug=- \
             (slub_debug=- on older kernels), debug_pagealloc=off, page_table_check=off or \
             no_debug_objects on its command line",
        )
    },
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Build,
    unsettable: unsettable::BUILT,
    sources: &[
        Source { title: "kernel: real-time kernel configuration, kernel debug options", url: RT_CONFIG },
        Source { title: "kernel: KASAN, command line parameters", url: KASAN },
        Source { title: "kernel: kmemleak", url: KMEMLEAK },
        Source { title: "kernel: the slab allocator, slab_debug", url: SLAB },
        Source { title: "kernel: command line, debug_pagealloc=, no_debug_objects", url: PARAMETERS },
    ],
    cures: &[SliceKind::IrqsOff, SliceKind::LockContention, SliceKind::Unexplained],
    facts: &["/boot/config-RELEASE", "/proc/cmdline"],
    judge,
    examples: Examples {
        fires: "CONFIG_KASAN=y\nCONFIG_KASAN_GENERIC=y",
        silent: "",
        unknown: "/boot refused",
    },
    ..Knob::DEFAULT
};

const HW_TAGS: &str = "KASAN_HW_TAGS";
const PAGE_TABLES: &str = "PAGE_TABLE_CHECK_ENFORCED";
const CHECKS: &[&str] = &["DEBUG_VIRTUAL", "DEBUG_VM"];

/// True if a word on the command line disables it.
type SwitchedOff = fn(&Cmdline, &MachineView) -> bool;

fn judge(machine: &MachineView) -> Judged {
    let config = machine.kconfig()?;
    let built = ["KASAN_GENERIC", "KASAN_SW_TAGS", "KCSAN", "KMSAN"];
    let mut always: Vec<&str> = built.into_iter().filter(|name| config.is_yes(name)).collect();
    // Before 5.0 it had one mode, without an option for it.
    if config.is_yes("KASAN") && machine.series().is_ok_and(|series| series < (5, 0)) {
        always.insert(0, "KASAN");
    }
    let mut legs: Vec<Judged> = Vec::new();
    if !always.is_empty() {
        let without = Remedy::of(always.iter().map(|option| Change::kconfig(option, "n")));
        legs.push(Ok(Judgement::fail(always.join(", ")).severity(Severity::High).fix(without)));
    }
    for (name, off) in switchable(config) {
        legs.push(machine.cmdline_or_built_in().map(|cmdline| {
            let severity = match name {
                // Hardware checks tags in hardware.
                HW_TAGS => Severity::Low,
                PAGE_TABLES => Severity::Medium,
                _ => Severity::High,
            };
            if off(cmdline, machine) {
                return Judgement::pass(format!("{name} off"));
            }
            let word = Remedy::from(Change::cmdline_add(word_against(machine, name)));
            Judgement::fail(name).severity(severity).fix(word.or(Change::kconfig(name, "n")))
        }));
    }
    // Checks at single places of the memory management (lib/Kconfig.debug, mm/Kconfig.debug).
    for name in CHECKS.iter().filter(|name| config.is_yes(name)) {
        let without = Change::kconfig(name, "n");
        legs.push(Ok(Judgement::fail(*name).severity(Severity::Medium).fix(without)));
    }
    // Option of the SLAB allocator, up to 6.7.
    if config.is_yes("DEBUG_SLAB") {
        let without = Change::kconfig("DEBUG_SLAB", "n");
        legs.push(Ok(Judgement::fail("DEBUG_SLAB").severity(Severity::High).fix(without)));
    }
    if legs.is_empty() {
        return Ok(Judgement::pass("none"));
    }
    Judgement::all(legs)
}

/// Word that disables it; kernels with the name slab_debug also know slub_debug.
fn word_against(machine: &MachineView, name: &str) -> &'static str {
    match name {
        HW_TAGS => "kasan=off",
        "DEBUG_KMEMLEAK" => "kmemleak=off",
        "SLUB_DEBUG_ON" if machine.may_know("slab_debug") => "slab_debug=-",
        "SLUB_DEBUG_ON" => "slub_debug=-",
        "DEBUG_PAGEALLOC" => "debug_pagealloc=off",
        PAGE_TABLES => "page_table_check=off",
        _ => "no_debug_objects",
    }
}

/// Word that has to take the place of a parameter, as the kernel's build enables the same without
/// one.
pub fn word_instead(machine: &MachineView, parameter: &str) -> Option<&'static str> {
    let mut words =
        switchable(machine.kconfig().ok()?).into_iter().map(|(name, _)| word_against(machine, name));
    let name = |word: &str| word.split('=').next().is_some_and(|name| same_name(name, parameter));
    let is_slab = matches!(parameter, "slab_debug" | "slub_debug");
    words.find(|word| name(word) || is_slab && word.ends_with("=-"))
}

/// True if the last valid boolean value of a parameter disables it.
fn is_switched_off(line: &Cmdline, name: &str, machine: &MachineView) -> bool {
    line.in_effect(name, |value| machine.truth(value)).is_some_and(|(_, is_on)| !is_on)
}

/// Options that are active unless a word on the command line disables them.
fn switchable(config: &Kconfig) -> Vec<(&'static str, SwitchedOff)> {
    let candidates: [(&'static str, bool, SwitchedOff); 6] = [
        (HW_TAGS, config.is_yes(HW_TAGS), |line, _| line.value("kasan") == Some("off")),
        (
            "DEBUG_KMEMLEAK",
            config.is_yes("DEBUG_KMEMLEAK") && !config.is_yes("DEBUG_KMEMLEAK_DEFAULT_OFF"),
            |line, _| line.values("kmemleak").any(|value| value == "off"),
        ),
        ("SLUB_DEBUG_ON", config.is_yes("SLUB_DEBUG_ON"), |line, machine| {
            let named = |param: &&Param| {
                ["slab_debug", "slub_debug"].iter().any(|name| same_name(name, &param.name))
                    && machine.may_know(&param.name)
            };
            let value = line.params.iter().rev().find(named).and_then(|param| param.value.as_deref());
            value.is_some_and(|value| value == "-")
        }),
        ("DEBUG_PAGEALLOC", config.is_yes("DEBUG_PAGEALLOC_ENABLE_DEFAULT"), |line, machine| {
            is_switched_off(line, "debug_pagealloc", machine)
        }),
        (PAGE_TABLES, config.is_yes(PAGE_TABLES), |line, machine| {
            is_switched_off(line, "page_table_check", machine)
        }),
        (
            "DEBUG_OBJECTS",
            config.get("DEBUG_OBJECTS_ENABLE_DEFAULT") == OptionValue::Value("1"),
            |line, _| line.has("no_debug_objects"),
        ),
    ];
    candidates.into_iter().filter(|(_, acts, _)| *acts).map(|(name, _, off)| (name, off)).collect()
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    const KMEMLEAK: &str = "CONFIG_DEBUG_KMEMLEAK=y";

    #[test]
    fn what_acts_is_named_and_what_is_off_is_not() {
        check(&KNOB, "", "pass none");
        check(&KNOB, "CONFIG_DEBUG_SLAB=y", "fail high DEBUG_SLAB");
        let old = "/proc/sys/kernel/osrelease: 4.19.200\n/boot/config-4.19.200:\n\
                   | # Automatically generated file; DO NOT EDIT.\n\
                   | # Linux/x86 4.19.200 Kernel Configuration\n| CONFIG_KASAN=y\n| # Kernel hacking";
        check(&KNOB, old, "fail high KASAN");
        let slab = "CONFIG_SLUB_DEBUG_ON=y\ncmdline + slab_debug=-";
        check(&KNOB, slab, "pass SLUB_DEBUG_ON off");
        let old = old.replace("KASAN", "SLUB_DEBUG_ON") + "\ncmdline + slab_debug=-";
        check(&KNOB, &old, "fail high SLUB_DEBUG_ON");
        check(
            &KNOB,
            "CONFIG_KASAN=y\nCONFIG_KASAN_GENERIC=y\nCONFIG_KCSAN=y",
            "fail high KASAN_GENERIC, KCSAN",
        );
        check(&KNOB, "CONFIG_DEBUG_PAGEALLOC=y\nCONFIG_PAGE_POISONING=y\nCONFIG_SLUB_DEBUG=y", "pass none");
        check(&KNOB, "CONFIG_DEBUG_PAGEALLOC_ENABLE_DEFAULT=y", "fail high DEBUG_PAGEALLOC");
        check(&KNOB, "CONFIG_KASAN_HW_TAGS=y", "fail low KASAN_HW_TAGS");
        check(&KNOB, "CONFIG_KASAN_HW_TAGS=y\nCONFIG_KCSAN=y", "fail high KCSAN; KASAN_HW_TAGS");
        check(&KNOB, "CONFIG_KASAN_HW_TAGS=y\ncmdline + kasan=off", "pass KASAN_HW_TAGS off");
        check(
            &KNOB,
            "CONFIG_DEBUG_PAGEALLOC_ENABLE_DEFAULT=y\ncmdline + debug_pagealloc=0",
            "pass DEBUG_PAGEALLOC off",
        );
        check(&KNOB, KMEMLEAK, "fail high DEBUG_KMEMLEAK");
        check(&KNOB, &format!("{KMEMLEAK}\nCONFIG_DEBUG_KMEMLEAK_DEFAULT_OFF=y"), "pass none");
        check(&KNOB, &format!("{KMEMLEAK}\ncmdline + kmemleak=off"), "pass DEBUG_KMEMLEAK off");
        check(&KNOB, "CONFIG_SLUB_DEBUG_ON=y\ncmdline + slub_debug=-", "pass SLUB_DEBUG_ON off");
        check(&KNOB, "CONFIG_SLUB_DEBUG_ON=y\ncmdline + slab_debug=FZ", "fail high SLUB_DEBUG_ON");
        check(&KNOB, "CONFIG_SLUB_DEBUG_ON=y\ncmdline + slab_debug=-", "pass SLUB_DEBUG_ON off");
        check(&KNOB, "CONFIG_DEBUG_OBJECTS=y\nCONFIG_DEBUG_OBJECTS_ENABLE_DEFAULT=0", "pass none");
        check(
            &KNOB,
            "CONFIG_DEBUG_OBJECTS_ENABLE_DEFAULT=1\ncmdline + no_debug_objects",
            "pass DEBUG_OBJECTS off",
        );
    }

    #[test]
    fn checks_of_addresses_and_pages_count() {
        for option in super::CHECKS {
            check(&KNOB, &format!("CONFIG_{option}=y"), &format!("fail medium {option}"));
        }
        check(&KNOB, "CONFIG_DEBUG_VM=y\nCONFIG_KCSAN=y", "fail high KCSAN; DEBUG_VM");
        check(&KNOB, "CONFIG_PAGE_TABLE_CHECK=y", "pass none");
        let tables = "CONFIG_PAGE_TABLE_CHECK_ENFORCED=y";
        check(&KNOB, tables, "fail medium PAGE_TABLE_CHECK_ENFORCED");
        let off = format!("{tables}\ncmdline + page_table_check=off");
        check(&KNOB, &off, "pass PAGE_TABLE_CHECK_ENFORCED off");
        check(&KNOB, &format!("{off}\ncmdline + page_table_check=1"), "fail medium");
    }

    #[test]
    fn the_word_before_6_9_is_slub_debug() {
        let mut machine = Machine::base();
        machine.edit("CONFIG_SLUB_DEBUG_ON=y");
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.starts_with("add slab_debug=- to"), "{fix}");
        let old = "/proc/sys/kernel/osrelease: 6.1.100
            /proc/sys/kernel/version: #1 SMP PREEMPT_RT
            /boot/config-6.1.100:
            | # Automatically generated file; DO NOT EDIT.
            | # Linux/x86 6.1.100 Kernel Configuration
            | CONFIG_PREEMPT_RT=y
            | CONFIG_SLUB_DEBUG_ON=y
            | # Kernel hacking";
        check(&KNOB, &format!("{old}\ncmdline + slab_debug=-"), "fail high SLUB_DEBUG_ON");
        check(&KNOB, &format!("{old}\ncmdline + slub-debug=-"), "pass SLUB_DEBUG_ON off");
    }

    #[test]
    fn a_command_line_that_cannot_be_read_decides_only_what_it_could_switch() {
        check(&KNOB, "/proc/cmdline refused", "pass none");
        check(&KNOB, &format!("{KMEMLEAK}\n/proc/cmdline refused"), "unknown");
        check(&KNOB, &format!("{KMEMLEAK}\nCONFIG_KCSAN=y\n/proc/cmdline refused"), "fail high KCSAN");
    }
}
