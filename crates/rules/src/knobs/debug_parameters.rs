//! Debugging parameters that were left on the kernel's command line.

use super::memory_debugging::word_instead;
use super::sources::{PARAMETERS, RT_CONFIG, SLAB};
use super::unsettable;
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use facts::cmdline::{Cmdline, Param, same_name};
use facts::kconfig::Kconfig;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "debug-parameters",
    title: "debugging parameters on the command line",
    description: "Kernel parameters that enable checks or tracing for debugging: slab_debug=, page_poison=, \
                  debug_pagealloc=, page_owner=, page_table_check=, kmemleak=on, debug_objects, ftrace=, \
                  trace_event=, kprobe_event=, trace_instance=, tp_printk, stacktrace, dyndbg=, \
                  initcall_debug; on 7.x check_pages=, iommu.debug_pagealloc= and mempool_debug.",
    rationale: "allocations are filled and checked (with slab_debug= under a lock with interrupts off), and \
                each traced function and event does more work, after every boot",
    detection: "The kernel's command line, without parameters of features that the kernel was not built \
                with. Whether the feature is still active is not checked here: see tracing-left-on for \
                tracing. init_on_alloc= and init_on_free= are protections and not counted.",
    side_effects: "The next bug of that kind is found later. page_poison=1 and slab_debug=P also keep freed \
                   data from being read: for that purpose init_on_free=1 is cheaper.",
    wanted: "none of them is given",
    fix: || Remedy::advice(AdviceReason::Choice, "remove them from the kernel's command line"),
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[
        Source { title: "kernel: command line, each of the parameters", url: PARAMETERS },
        Source {
            title: "kernel: real-time kernel configuration, CONFIG_TRACING and kernel debug \
                    options",
            url: RT_CONFIG,
        },
        Source { title: "kernel: the slab allocator, slab_debug", url: SLAB },
    ],
    cures: &[SliceKind::IrqsOff, SliceKind::LockContention, SliceKind::Unexplained],
    facts: &["/proc/cmdline", "/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "cmdline + slub_debug=FZP\nCONFIG_SLUB_DEBUG=y",
        silent: "",
        unknown: "/proc/cmdline refused",
    },
    ..Knob::DEFAULT
};

/// Reads a value: true if it enables something; none if the kernel refuses it, which leaves the
/// value before it in effect.
type Reader = fn(Option<&str>, &MachineView) -> Option<bool>;

/// A parameter, the option without which the kernel ignores it, and the reader of its values.
type Known = (&'static str, &'static str, Reader);

const PRESENT: Reader = |_, _| Some(true);
const TRUE: Reader = |value, machine| value.and_then(|value| machine.truth(value));
/// Reader for a parameter that needs a value.
const FILLED: Reader = |value, _| value.map(|value| !value.is_empty());

/// Reader for a `core_param` of type bool: without a value it is on (`param_set_bool()`).
const FLAG: Reader = |value, machine| value.map_or(Some(true), |value| machine.truth(value));

/// Reader for slabs: flags enable checks, for all or for those named, and none of them means all
/// flags (`parse_slub_debug_flags()` of mm/slub.c).
const OF_SLABS: Reader = |value, _| {
    let checks = |block: &str| {
        let flags = block.split(',').next().unwrap_or_default();
        // The last `-` clears those before it.
        let flags = flags.rsplit('-').next().unwrap_or_default();
        block.starts_with(',') || flags.contains(|c: char| "fzputa".contains(c.to_ascii_lowercase()))
    };
    Some(value.is_none_or(|value| value.is_empty() || value.split(';').any(checks)))
};

const KMEMLEAK: &str = "kmemleak";
const DYNAMIC: &str = "dyndbg";

const KNOWN: &[Known] = &[
    ("slab_debug", "SLUB_DEBUG", OF_SLABS),
    ("slub_debug", "SLUB_DEBUG", OF_SLABS),
    ("page_poison", "PAGE_POISONING", TRUE),
    ("debug_pagealloc", "DEBUG_PAGEALLOC", TRUE),
    ("page_owner", "PAGE_OWNER", TRUE),
    ("page_table_check", "PAGE_TABLE_CHECK", TRUE),
    (KMEMLEAK, "DEBUG_KMEMLEAK", |value, _| (value == Some("on")).then_some(true)),
    ("debug_objects", "DEBUG_OBJECTS", PRESENT),
    ("ftrace", "FTRACE", |value, machine| value.map(|value| is_tracer(machine, value))),
    ("trace_event", "EVENT_TRACING", FILLED),
    ("kprobe_event", "KPROBE_EVENTS", FILLED),
    ("trace_instance", "TRACING", FILLED),
    // Nothing resets it (set_tracepoint_printk() in kernel/trace/trace.c).
    ("tp_printk", "TRACING", |value, _| (!matches!(value, Some("0" | "off"))).then_some(true)),
    ("stacktrace", "STACK_TRACER", PRESENT),
    ("stacktrace_filter", "STACK_TRACER", PRESENT),
    (DYNAMIC, "DYNAMIC_DEBUG_CORE", FILLED),
    ("check_pages", "", TRUE),
    ("iommu.debug_pagealloc", "IOMMU_DEBUG_PAGEALLOC", TRUE),
    ("mempool_debug", "", PRESENT),
    (INITCALL_DEBUG, "", FLAG),
];

/// Tracers, and the options without which the kernel has none of that name (kernel/trace/Kconfig).
const TRACERS: &[(&str, &str)] = &[
    ("blk", "BLK_DEV_IO_TRACE"),
    ("branch", "BRANCH_TRACER"),
    ("function", "FUNCTION_TRACER"),
    ("function_graph", "FUNCTION_GRAPH_TRACER"),
    ("hwlat", "HWLAT_TRACER"),
    ("irqsoff", "IRQSOFF_TRACER"),
    ("mmiotrace", "MMIOTRACE"),
    ("osnoise", "OSNOISE_TRACER"),
    ("preemptoff", "PREEMPT_TRACER"),
    ("timerlat", "TIMERLAT_TRACER"),
    ("wakeup", "SCHED_TRACER"),
    ("wakeup_dl", "SCHED_TRACER"),
    ("wakeup_rt", "SCHED_TRACER"),
];

/// True unless it is none, or this kernel was built without it: the name then waits for a tracer
/// that never registers (`register_tracer()` of kernel/trace/trace.c).
fn is_tracer(machine: &MachineView, name: &str) -> bool {
    let option = TRACERS.iter().find(|(known, _)| *known == name).map(|(_, option)| option);
    let lacks = |option: &&str| machine.kconfig().is_ok_and(|config| !config.is_yes(option));
    !matches!(name, "" | "nop") && !option.is_some_and(lacks)
}

/// Parameter with costs only during boot, and when modules are loaded.
const INITCALL_DEBUG: &str = "initcall_debug";

const SHOWN: usize = 5;

fn judge(machine: &MachineView) -> Judged {
    let config = machine.kconfig().ok();
    let mut found = left(machine, machine.cmdline()?, config);
    found.retain(|param| machine.may_know(&param.name));
    if found.is_empty() {
        return Ok(Judgement::pass("none in effect"));
    }
    let mut names: Vec<String> = found.iter().take(SHOWN).map(|param| excerpt(param)).collect();
    if found.len() > SHOWN {
        names.push(format!("and {} more", found.len() - SHOWN));
    }
    let boots_only = found.iter().all(|param| param.name == INITCALL_DEBUG);
    let severity = if boots_only { Severity::Info } else { Severity::Medium };
    // Without the word, what the kernel was built to do by itself would act again.
    let off = Remedy::of(found.iter().map(|param| match word_instead(machine, &param.name) {
        Some(word) => Change::cmdline_add(word),
        None => Change::cmdline_remove(&param.name),
    }));
    Ok(Judgement::fail(names.join(", ")).severity(severity).fix(off))
}

/// Parameters that enable something, each once with the value that counts, in the table's order.
fn left<'a>(machine: &MachineView, cmdline: &'a Cmdline, config: Option<&Kconfig>) -> Vec<&'a Param> {
    let acts = |(name, option, on): &Known| {
        // That of a module is one of its parameters.
        let is_of_module = |param: &Param| *name == DYNAMIC && param.name.ends_with(".dyndbg");
        let is_named = |param: &&Param| same_name(&param.name, name) || is_of_module(param);
        let mut given = cmdline.params.iter().rev().filter(is_named);
        let (last, acts) = given.find_map(|param| Some((param, on(param.value.as_deref(), machine)?)))?;
        let ignored = config.is_some_and(|config| !option.is_empty() && !config.is_yes(option));
        // Permanently (kmemleak_disable() in mm/kmemleak.c).
        let disabled = *name == KMEMLEAK && cmdline.values(name).any(|value| value == "off");
        (acts && !ignored && !disabled).then_some(last)
    };
    KNOWN.iter().filter_map(acts).collect()
}

/// A parameter as on the command line, truncated.
fn excerpt(param: &Param) -> String {
    let value: String = param.value.iter().flat_map(|value| value.chars()).map(plain).take(28).collect();
    let dots = if param.value.as_ref().is_some_and(|value| value.chars().count() > 28) { "..." } else { "" };
    let equals = if param.value.is_some() { "=" } else { "" };
    format!("{}{equals}{value}{dots}", param.name)
}

fn plain(c: char) -> char {
    if c.is_control() { '?' } else { c }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    #[test]
    fn those_that_act_are_named() {
        check(&KNOB, "", "pass none in effect");
        check(
            &KNOB,
            "cmdline + ftrace=function\ncmdline + trace_event=sched",
            "fail medium ftrace=function, trace_event=sched",
        );
        let without = "cmdline + ftrace=function\nCONFIG_FUNCTION_TRACER=n";
        check(&KNOB, without, "pass none in effect");
        let instance = "cmdline + trace_instance=foo";
        check(&KNOB, instance, "fail medium trace_instance=foo");
        let old = format!("{instance}\n/proc/sys/kernel/osrelease: 6.1.9");
        check(&KNOB, &old, "pass none in effect");
        let module = "cmdline + xhci_hcd.dyndbg=+p\nCONFIG_DYNAMIC_DEBUG_CORE=y";
        check(&KNOB, module, "fail medium xhci_hcd.dyndbg=+p");
        check(&KNOB, &module.replace("=+p", "="), "pass none in effect");
        check(&KNOB, "cmdline + initcall_debug", "fail info initcall_debug");
        check(&KNOB, "cmdline + initcall_debug=x", "pass none in effect");
        for off in ["0", "off", "N", "0\ncmdline + initcall_debug=x"] {
            let edits = format!("cmdline + initcall_debug\ncmdline + initcall_debug={off}");
            check(&KNOB, &edits, "pass none in effect");
        }
        check(
            &KNOB,
            "cmdline + page_poison=1\ncmdline + page_poison=x\nCONFIG_PAGE_POISONING=y",
            "fail medium page_poison=1",
        );
        check(&KNOB, "cmdline + slab_debug\nCONFIG_SLUB_DEBUG=y", "fail medium slab_debug");
        let tables = "cmdline + page_table_check=on\nCONFIG_PAGE_TABLE_CHECK";
        check(&KNOB, &format!("{tables}=y"), "fail medium page_table_check=on");
        check(&KNOB, &format!("{tables}=n"), "pass none in effect");
        check(&KNOB, "cmdline + slab_debug=-\nCONFIG_SLUB_DEBUG=y", "pass none in effect");
        check(
            &KNOB,
            "cmdline + page_poison=on\ncmdline + page_poison=0\nCONFIG_PAGE_POISONING=y",
            "pass none in effect",
        );
        check(
            &KNOB,
            "cmdline + ftrace=nop\ncmdline + ftrace_dump_on_oops\ncmdline + init_on_free=1",
            "pass none in effect",
        );
        check(&KNOB, "cmdline + --\ncmdline + ftrace=function", "pass none in effect");
        check(&KNOB, "cmdline + tp_printk\ncmdline + tp_printk=0", "fail medium tp_printk");
        check(&KNOB, "cmdline + tp_printk=off\ncmdline + ftrace", "pass none in effect");
        check(&KNOB, "cmdline + ftrace=function\ncmdline + ftrace", "fail medium ftrace=function");
        check(&KNOB, "cmdline + trace_event=sched\ncmdline + trace_event", "fail medium trace_event=sched");
    }

    #[test]
    fn words_for_slabs_are_read_by_their_flags() {
        for (value, acts) in [
            ("-,kmalloc-64", false),
            ("O", false),
            ("FZ-", false),
            ("-;O,kmalloc-64", false),
            ("FZ,kmalloc-64", true),
            (",kmalloc-64", true),
            ("-;fz,kmalloc-64", true),
            ("-P", true),
        ] {
            let fails = format!("fail medium slab_debug={value}");
            let expected = if acts { &fails } else { "pass none in effect" };
            check(&KNOB, &format!("cmdline + slab_debug={value}\nCONFIG_SLUB_DEBUG=y"), expected);
        }
    }

    #[test]
    fn the_remedy_leaves_nothing_to_the_build() {
        let fix = |edits: &str| {
            let mut machine = Machine::base();
            machine.edit(&format!("CONFIG_SLUB_DEBUG=y\ncmdline + slab_debug=FZ\n{edits}"));
            machine.finding(&KNOB).fix
        };
        assert_eq!(fix(""), "remove slab_debug=FZ from the kernel's command line");
        let instead = fix("CONFIG_SLUB_DEBUG_ON=y");
        assert_eq!(instead, "replace slab_debug=FZ by slab_debug=- on the kernel's command line");
    }

    #[test]
    fn what_the_kernel_cannot_do_it_ignores() {
        check(&KNOB, "cmdline + kmemleak=on", "pass none in effect");
        let of =
            |series: &str, word: &str| format!("/proc/sys/kernel/osrelease: {series}.1\ncmdline + {word}");
        check(&KNOB, &of("7.3", "check_pages=1"), "fail medium check_pages=1");
        check(&KNOB, &of("6.12", "check_pages=1"), "pass none in effect");
        check(&KNOB, &of("7.2", "mempool_debug"), "pass none in effect");
        check(&KNOB, &of("6.8", "slab_debug=FZ\nCONFIG_SLUB_DEBUG=y"), "pass none in effect");
        check(&KNOB, &of("7.3", "mempool_debug"), "fail medium mempool_debug");
        check(&KNOB, "cmdline + kmemleak=on\nCONFIG_DEBUG_KMEMLEAK=y", "fail medium kmemleak=on");
        check(&KNOB, "cmdline + kmemleak=on\n/boot refused", "fail medium kmemleak=on");
        let off = "cmdline + kmemleak=off\ncmdline + kmemleak=on\nCONFIG_DEBUG_KMEMLEAK=y";
        check(&KNOB, off, "pass none in effect");
    }

    #[test]
    fn long_values_are_shortened_and_many_counted() {
        let long = format!("cmdline + trace_event={}", "sched:sched_switch,".repeat(40));
        check(&KNOB, &long, "fail medium trace_event=sched:sched_switch,sched:sch...");
        let words = [
            "slab_debug",
            "page_poison=1",
            "page_owner=on",
            "ftrace=function",
            "tp_printk",
            "stacktrace",
            "dyndbg=+p",
        ];
        let many: String = words.map(|word| format!("cmdline + {word}\n")).concat() + "/boot refused";
        check(
            &KNOB,
            &many,
            "fail medium slab_debug, page_poison=1, page_owner=on, ftrace=function, tp_printk, \
             and 2 more",
        );
    }
}
