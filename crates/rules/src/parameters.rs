//! Parameters of the kernel's command line: which replace each other, and which accumulate.
//!
//! Source: Documentation/admin-guide/kernel-parameters.txt, and the handlers of the parameters
//! named here.

use super::words::truncate;
use facts::cmdline::{Cmdline, Param, parse_cmdline, same_name};

/// Parameters that may be given more than once, because each adds to those before it or sets
/// another thing.
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

/// Names with these prefixes belong to the programs of the initial RAM disk and to init, which take
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

/// Whether a parameter has one value, and a second one on the same line takes the place of the
/// first.
pub fn has_one_value(name: &str) -> bool {
    let adds_up = ADD_UP.iter().any(|other| same_name(other, name)) || name.ends_with(".dyndbg");
    !adds_up && !OF_PROGRAMS.iter().any(|start| name.starts_with(start))
}

/// A parameter as the kernel parses it.
fn param(word: &str) -> Option<Param> {
    parse_cmdline(word).ok()?.params.into_iter().next()
}

/// A parameter as it is written, made harmless and not too long.
fn shown(param: &Param) -> String {
    param
        .value
        .as_ref()
        .map_or(truncate(&param.name), |value| format!("{}={}", truncate(&param.name), truncate(value)))
}

/// Whether this word is there and nothing after it takes it back.
pub fn is_given(cmdline: &Cmdline, word: &str) -> bool {
    let Some(wanted) = param(word) else { return false };
    let mut named = cmdline.params.iter().filter(|one| same_name(&one.name, &wanted.name));
    if has_one_value(&wanted.name) {
        named.next_back().is_some_and(|last| last.value == wanted.value)
    } else {
        named.any(|one| one.value == wanted.value)
    }
}

/// What is given in the place that a word is to have: the same parameter with other values.
pub fn other_values(cmdline: &Cmdline, word: &str) -> Vec<String> {
    let Some(wanted) = param(word) else { return Vec::new() };
    // Of these the kernel takes the first, and refuses the second.
    let first_counts = ["isolcpus", "nohz_full"].iter().any(|name| same_name(name, &wanted.name));
    if !has_one_value(&wanted.name) && !first_counts {
        return Vec::new();
    }
    let named = cmdline.params.iter().filter(|one| same_name(&one.name, &wanted.name));
    named.filter(|one| one.value != wanted.value).map(shown).collect()
}

/// The spelling on that line of a parameter, or a parameter and its value; itself where there is
/// none.
pub fn as_written(cmdline: &Cmdline, word: &str) -> Vec<String> {
    let Some(meant) = param(word) else { return vec![word.to_owned()] };
    let found: Vec<String> = cmdline.params.iter().filter(|one| is(one, &meant)).map(shown).collect();
    if found.is_empty() { vec![word.to_owned()] } else { found }
}

/// Whether a parameter, or a parameter with this value, is there.
pub fn is_present(cmdline: &Cmdline, word: &str) -> bool {
    param(word).is_some_and(|meant| cmdline.params.iter().any(|one| is(one, &meant)))
}

fn is(one: &Param, meant: &Param) -> bool {
    same_name(&one.name, &meant.name) && (meant.value.is_none() || one.value == meant.value)
}

/// A command line with a word on it, in the place of other values of the same parameter.
pub fn with_word(line: &str, word: &str) -> String {
    let mut words = kept_words(line, |one| {
        let one = parse_cmdline(one).unwrap_or_default();
        other_values(&one, word).is_empty() && !is_given(&one, word)
    });
    words.push(word.to_owned());
    words.join(" ")
}

/// A command line without a parameter, or without a parameter of this value.
pub fn without_word(line: &str, word: &str) -> String {
    let Some(meant) = param(word) else { return line.to_owned() };
    kept_words(line, |one| param(one).is_none_or(|one| !is(&one, &meant))).join(" ")
}

/// The words of a line that are kept; what follows `--` is init's, and these lines have none.
fn kept_words(line: &str, keep: impl Fn(&str) -> bool) -> Vec<String> {
    words(line).filter(|word| keep(word)).map(str::to_owned).collect()
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line.trim();
    std::iter::from_fn(move || {
        let mut quoted = false;
        let end = rest.find(|c: char| {
            quoted ^= c == '"';
            c.is_ascii_whitespace() && !quoted
        });
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.trim_start();
        (!word.is_empty()).then_some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_takes_the_place_of_another_value() {
        let check =
            |line: &str, word: &str, expected: &str| assert_eq!(with_word(line, word), expected, "{line}");
        check("quiet psi=1", "psi=0", "quiet psi=0");
        check("psi=1 quiet psi=0", "psi=0", "quiet psi=0");
        check("console=tty0", "console=ttyS0", "console=tty0 console=ttyS0");
        check("isolcpus=3 a=\"b c\"", "isolcpus=domain,2-3", "a=\"b c\" isolcpus=domain,2-3");
        check("tsc=reliable", "tsc=nowatchdog", "tsc=reliable tsc=nowatchdog");
        assert_eq!(without_word("quiet idle=poll idle=halt", "idle=poll"), "quiet idle=halt");
        assert_eq!(without_word("debug quiet debug", "debug"), "quiet");
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
