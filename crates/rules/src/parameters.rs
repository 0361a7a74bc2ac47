//! Parameters of the kernel's command line: those that replace each other, those that accumulate,
//! and names and values that the kernel does not accept.
//!
//! Source: Documentation/admin-guide/kernel-parameters.txt, and the handlers of the parameters
//! named here.

use super::words::truncate;
use facts::cmdline::{Cmdline, Param, parse_cmdline, same_name};
use facts::kbool::kint;

/// Parameters that may be given more than once, because each adds to those before it or sets
/// something else.
const ADD_UP: &[&str] = &[
    "acpi",
    "acpi_osi",
    "acpi_sleep",
    "amd_iommu",
    "apic",
    "cgroup_disable",
    "cgroup_enable",
    "clearcpuid",
    "console",
    "crashkernel",
    "dyndbg",
    "earlycon",
    "efi",
    "hibernate",
    "hugepages",
    "hugepagesz",
    "hugetlb_cma",
    "idle",
    "initcall_blacklist",
    "initrd",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "ip",
    "isolcpus",
    "kprobe_event",
    "kvm-intel.vmentry_l1d_flush",
    "libata.force",
    "mce",
    "md",
    "mem",
    "memmap",
    "modprobe.blacklist",
    "modules-load",
    "netconsole",
    "nmi_watchdog",
    "nohz_full",
    "numa",
    "parport",
    "pci",
    "pcie_aspm",
    "pcie_ports",
    "raid",
    "reserve",
    "rootflags",
    "trace_event",
    "trace_instance",
    "tsc",
    "ubi.mtd",
    "video",
];

/// Prefixes of names that belong to init and the programs of the initial RAM disk, which accept
/// lists of them.
const OF_PROGRAMS: &[&str] = &[
    "rd.",
    "rd_",
    "systemd.",
    "luks.",
    "udev.",
    "inst.",
    "ignition.",
    "coreos.",
    "vconsole.",
    "locale.",
    "ostree",
];

/// True if a parameter has one value, so that a second one on the same line replaces the first.
pub fn has_one_value(name: &str) -> bool {
    let adds_up = ADD_UP.iter().any(|other| same_name(other, name)) || name.ends_with(".dyndbg");
    !adds_up && !OF_PROGRAMS.iter().any(|start| name.starts_with(start))
}

/// A parameter as the kernel parses it.
fn param(word: &str) -> Option<Param> {
    parse_cmdline(word).ok()?.params.into_iter().next()
}

/// A parameter as written, with printable characters only and truncated.
fn parameter_text(param: &Param) -> String {
    param
        .value
        .as_ref()
        .map_or(truncate(&param.name), |value| format!("{}={}", truncate(&param.name), truncate(value)))
}

/// True if this word is present and none after it revokes it.
pub fn is_given(cmdline: &Cmdline, word: &str) -> bool {
    let Some(wanted) = param(word) else { return false };
    let mut named = cmdline.params.iter().filter(|one| same_name(&one.name, &wanted.name));
    if has_one_value(&wanted.name) {
        named.next_back().is_some_and(|last| last.value == wanted.value)
    } else {
        named.any(|one| one.value == wanted.value)
    }
}

/// Words in the place of a word: the same parameter with other values.
pub fn other_values(cmdline: &Cmdline, word: &str) -> Vec<String> {
    let Some(wanted) = param(word) else { return Vec::new() };
    // Of these the kernel accepts the first, and refuses the second.
    let first_counts = ["isolcpus", "nohz_full"].iter().any(|name| same_name(name, &wanted.name));
    if !has_one_value(&wanted.name) && !first_counts {
        return Vec::new();
    }
    let named = cmdline.params.iter().filter(|one| same_name(&one.name, &wanted.name));
    named.filter(|one| one.value != wanted.value).map(parameter_text).collect()
}

/// A parameter, or a parameter and its value, as spelled on that line; the word itself if it is not
/// there.
pub fn as_written(cmdline: &Cmdline, word: &str) -> Vec<String> {
    let Some(meant) = param(word) else { return vec![word.to_owned()] };
    let found: Vec<String> =
        cmdline.params.iter().filter(|one| is(one, &meant)).map(parameter_text).collect();
    if found.is_empty() { vec![word.to_owned()] } else { found }
}

/// True if a parameter, or a parameter with this value, is present.
pub fn is_present(cmdline: &Cmdline, word: &str) -> bool {
    param(word).is_some_and(|meant| cmdline.params.iter().any(|one| is(one, &meant)))
}

fn is(one: &Param, meant: &Param) -> bool {
    same_name(&one.name, &meant.name) && (meant.value.is_none() || one.value == meant.value)
}

/// Parameters of modules whose last part is unique in the kernel.
const OF_MODULES: &[&str] = &[
    "cpufreq.default_governor",
    "haltpoll.guest_halt_poll_ns",
    "intel_idle.max_cstate",
    "intel_idle.states_off",
    "kvm.halt_poll_ns",
    "printk.devkmsg",
    "processor.max_cstate",
    "rcupdate.rcu_expedited",
    "rcupdate.rcu_normal",
    "rcupdate.rcu_normal_after_boot",
    "rcutree.enable_rcu_lazy",
    "rcutree.kthread_prio",
    "rcutree.use_softirq",
    "workqueue.default_affinity_scope",
    "workqueue.power_efficient",
    "workqueue.unbound_cpus",
];

/// Parameters that belong to no module, but are given one in recipes.
const OF_NO_MODULE: &[&str] =
    &["irqaffinity", "isolcpus", "nohz_full", "rcu_nocb_poll", "rcu_nocbs", "skew_tick", "threadirqs"];

/// Values that a parameter accepts, and the test by which a text counts as one of them.
struct Values {
    name: &'static str,
    words: &'static [&'static str],
    takes: fn(text: &str, word: &str) -> bool,
}

const fn values(name: &'static str, words: &'static [&'static str]) -> Values {
    Values { name, words, takes: |text, word| text == word }
}

/// Values of spectre_v2= but for off.
pub const SPECTRE_V2: &[&str] = &[
    "on",
    "auto",
    "ibrs",
    "eibrs",
    "eibrs,lfence",
    "eibrs,retpoline",
    "retpoline",
    "retpoline,amd",
    "retpoline,generic",
    "retpoline,lfence",
];

/// Parameters with a fixed choice of words; any other word is ignored.
const CHOICES: &[Values] = &[
    // A part of a word counts as the word (`get_mode_idx_from_str()`).
    Values {
        takes: |text, word| word.starts_with(text),
        ..values("amd_pstate", &["disable", "passive", "active", "guided", "undefined"])
    },
    values(
        "intel_pstate",
        &[
            "disable",
            "active",
            "passive",
            "force",
            "no_hwp",
            "hwp_only",
            "per_cpu_perf_limits",
            "support_acpi_ppc",
            "no_cas",
        ],
    ),
    values("isolcpus", &["domain", "managed_irq", "nohz"]),
    values("idle", &["poll", "halt", "nomwait", "nop", "wfi", "yield"]),
    // Classes of attacks may follow, since 6.17.
    Values {
        takes: |text, word| text == word || text.strip_prefix(word).is_some_and(|rest| rest.starts_with(',')),
        ..values("mitigations", &["off", "auto", "auto,nosmt"])
    },
    // Only the first letters of each part count (`hardlockup_panic_setup()`).
    Values {
        takes: |text, word| text.split(',').any(|part| part.starts_with(word)),
        ..values("nmi_watchdog", &["0", "1", "panic", "nopanic", "r"])
    },
    values("numa_balancing", &["enable", "disable"]),
    values("pcie_aspm", &["off", "force"]),
    Values {
        takes: |text, word| text.starts_with(word),
        ..values("printk.devkmsg", &["on", "off", "ratelimit"])
    },
    Values {
        takes: |text, word| kint(text).is_some() && kint(text) == kint(word),
        ..values("rt_group_sched", &["0", "1"])
    },
    // arch/x86/kernel/cpu/bugs.c
    values("spec_store_bypass_disable", &["auto", "on", "off", "prctl", "seccomp"]),
    Values { takes: |text, word| text == word || text == "off", ..values("spectre_v2", SPECTRE_V2) },
    values("transparent_hugepage", &["always", "madvise", "never"]),
    values("tsc", &["reliable", "nowatchdog", "noirqtime", "unstable", "recalibrate", "watchdog"]),
];

/// Correct spelling of a parameter that lacks its module's name, or has that of another.
pub fn spelling(name: &str) -> Option<String> {
    let (module, leaf) = name.rsplit_once('.').map_or((None, name), |(module, leaf)| (Some(module), leaf));
    let is_leaf = |known: &&&str| known.rsplit_once('.').is_some_and(|(_, last)| last == leaf);
    let mut meant: Vec<&str> = OF_MODULES.iter().filter(is_leaf).copied().collect();
    if module.is_some() {
        meant.extend(OF_NO_MODULE.iter().filter(|known| **known == leaf));
    }
    (!meant.is_empty() && !meant.contains(&name)).then(|| format!("spelt {}", meant.join(" or ")))
}

/// Reason why a value of this parameter has no effect, and true if it resembles one that has; none
/// if it may have an effect.
pub fn idle_value(name: &str, value: &str) -> Option<(String, bool)> {
    let choice = CHOICES.iter().find(|choice| same_name(choice.name, name))?;
    // Flags before the list; an unknown one is ignored.
    let mut flags = value.split(',').take_while(|part| part.starts_with(|c: char| c.is_ascii_alphabetic()));
    let is_list = choice.name == "isolcpus";
    let value = if is_list { flags.find(|flag| !choice.words.contains(flag))? } else { value };
    if value.is_empty() || choice.words.iter().any(|word| (choice.takes)(value, word)) {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', ','], "");
    let text = plain(value);
    let is_near = |word: &&&str| {
        let word = plain(word);
        let begins = || text.starts_with(&word) || text.len() > 2 && word.starts_with(&text);
        word.len() > 2 && (begins() || one_apart(&text, &word))
    };
    // Of a word and a longer one with the same beginning, the longer one is more specific.
    let near = choice.words.iter().filter(is_near).max_by_key(|word| word.len());
    Some(match near {
        Some(word) => (format!("probably meant to be {}={word}", choice.name), true),
        None => (format!("not a valid value; valid are {}", choice.words.join(", ")), false),
    })
}

/// Parameters whose spelling is checked.
const SPELLING: &[&str] = &[
    "clocksource",
    "cpufreq.default_governor",
    "intel_idle.max_cstate",
    "irqaffinity",
    "isolcpus",
    "mitigations",
    "nmi_watchdog",
    "nohz_full",
    "nosoftlockup",
    "nowatchdog",
    "processor.max_cstate",
    "rcu_nocb_poll",
    "rcu_nocbs",
    "rcupdate.rcu_normal_after_boot",
    "skew_tick",
    "threadirqs",
    "transparent_hugepage",
    "workqueue.unbound_cpus",
];

/// Checked parameter that is one letter away from a name, which is not itself a known one.
pub fn misspelt(name: &str) -> Option<&'static str> {
    let is_odd = name.len() <= 40 && !SPELLING.contains(&name);
    SPELLING.iter().find(|word| is_odd && one_apart(name, word)).copied()
}

/// True if the names differ by one additional, missing or different letter, or by two that are
/// swapped.
fn one_apart(a: &str, b: &str) -> bool {
    let (a, b) = if a.len() <= b.len() { (a.as_bytes(), b.as_bytes()) } else { (b.as_bytes(), a.as_bytes()) };
    if b.len() - a.len() > 1 || a == b {
        return false;
    }
    let start = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[start..], &b[start..]);
    match (a, b) {
        _ if a.len() < b.len() => *a == b[1..],
        ([a1, a2, rest @ ..], [b1, b2, other @ ..]) if a1 == b2 && a2 == b1 => rest == other,
        _ => a[1..] == b[1..],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_that_do_nothing_have_their_spelling() {
        for (name, meant) in [
            ("processor_idle.max_cstate", "spelt intel_idle.max_cstate or processor.max_cstate"),
            ("max_cstate", "spelt intel_idle.max_cstate or processor.max_cstate"),
            ("rcu.kthread_prio", "spelt rcutree.kthread_prio"),
            ("rcutree.rcu_normal", "spelt rcupdate.rcu_normal"),
            ("rcutree.rcu_nocbs", "spelt rcu_nocbs"),
        ] {
            assert_eq!(spelling(name).as_deref(), Some(meant), "{name}");
        }
        for right in OF_MODULES.iter().chain(OF_NO_MODULE).chain(&["i915.mitigations", "quiet"]) {
            assert_eq!(spelling(right), None, "{right}");
        }
        for (name, value, meant) in [
            ("intel_pstate", "disabled", "probably meant to be intel_pstate=disable"),
            ("intel-pstate", "no-hwp", "probably meant to be intel_pstate=no_hwp"),
            ("intel_pstate", "Passive", "probably meant to be intel_pstate=passive"),
            ("amd_pstate", "actve", "probably meant to be amd_pstate=active"),
            ("mitigations", "auto-nosmt", "probably meant to be mitigations=auto,nosmt"),
            ("mitigations", "none", "not a valid value; valid are off, auto, auto,nosmt"),
            ("nmi_watchdog", "off", "not a valid value; valid are 0, 1, panic, nopanic, r"),
            ("nmi_watchdog", "2", "not a valid value; valid are 0, 1, panic, nopanic, r"),
            ("transparent_hugepage", "off", "not a valid value; valid are always, madvise, never"),
            ("isolcpus", "domain,managedirq,2-3", "probably meant to be isolcpus=managed_irq"),
            ("rt_group_sched", "off", "not a valid value; valid are 0, 1"),
            ("tsc", "no-watchdog", "probably meant to be tsc=nowatchdog"),
        ] {
            assert_eq!(idle_value(name, value).map(|(why, _)| why).as_deref(), Some(meant), "{name}={value}");
        }
        for (name, value) in [
            ("amd_pstate", "act"),
            ("mitigations", "auto,no_user_kernel"),
            ("nmi_watchdog", "panic,0"),
            ("intel_pstate", ""),
            ("isolcpus", "nohz,domain,2-3"),
            ("isolcpus", "2-3"),
            ("quiet", "on"),
            ("rt_group_sched", "0x1"),
            ("spectre_v2", "off"),
        ] {
            assert_eq!(idle_value(name, value), None, "{name}={value}");
        }
        for choice in CHOICES {
            choice.words.iter().for_each(|word| assert_eq!(idle_value(choice.name, word), None, "{word}"));
        }
    }

    #[test]
    fn words_are_one_letter_apart() {
        for (a, b) in [("ab", "abc"), ("abc", "xbc"), ("abdc", "abcd"), ("bc", "abc"), ("", "a")] {
            assert!(one_apart(a, b) && one_apart(b, a), "{a} {b}");
        }
        for (a, b) in [("abc", "abc"), ("abc", "xyc"), ("a", "abc"), ("abc", "cab")] {
            assert!(!one_apart(a, b) && !one_apart(b, a), "{a} {b}");
        }
    }

    #[test]
    fn the_spelling_on_the_line_is_named() {
        let line = parse_cmdline("psi=1 rcu-nocbs=1 rcu_nocbs=2 console=tty0").unwrap();
        assert_eq!(other_values(&line, "psi=0"), ["psi=1"]);
        assert_eq!(other_values(&line, "rcu_nocbs=2"), ["rcu-nocbs=1"]);
        assert!(other_values(&line, "console=ttyS0").is_empty() && is_given(&line, "rcu_nocbs=2"));
        assert!(!is_given(&line, "rcu_nocbs=1") && is_given(&line, "console=tty0"));
        assert_eq!(as_written(&line, "rcu_nocbs"), ["rcu-nocbs=1", "rcu_nocbs=2"]);
    }
}
