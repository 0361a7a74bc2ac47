//! Mitigations of processor vulnerabilities: a report, and no advice to switch them off.

use super::sources::{HW_VULN, PARAMETERS};
use super::unsettable;
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::parameters::SPECTRE_V2;
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::truncate_words;
use facts::Fact;
use facts::cmdline::Cmdline;
use facts::kconfig::OptionValue;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "mitigations",
    title: "mitigations of processor vulnerabilities",
    description: "On vulnerable processors the kernel does extra work at each kernel entry, exit and task \
                  switch, to prevent data leaks. mitigations=off, and parameters for single vulnerabilities, \
                  disable this work and the protection. Many real-time recipes contain them.",
    rationale: "the time saved at each kernel entry has a price: any program, guest or browser script may \
                read foreign memory",
    detection: "Parameters of this architecture that disable mitigations fully or partly, and a kernel built \
                without them (CPU_MITIGATIONS, or the option of a single one). Which of them this processor \
                needs, and the cost of each, is not judged; /sys/devices/system/cpu/vulnerabilities shows \
                what is active.",
    side_effects: "With mitigations each system call, interrupt and task switch takes longer; the amount \
                   depends on the processor, its microcode and how often the program enters the kernel.",
    wanted: "the kernel's default",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "remove these parameters from the kernel's command line, or boot a kernel built with \
             CPU_MITIGATIONS, unless only trusted code can ever run on this machine",
        )
    },
    severity: Severity::Info,
    evidence: EvidenceKind::Documented,
    disputed: "whether it is worth it depends on the processor and the program: `onbeat compare` of runs \
               with and without shows the gain; the protection is lost in any case",
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[
        Source { title: "kernel: hardware vulnerabilities", url: HW_VULN },
        Source { title: "kernel: command line, mitigations=", url: PARAMETERS },
    ],
    cures: &[SliceKind::ReturnToUser, SliceKind::Switch],
    facts: &["/proc/cmdline", "/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "cmdline + mitigations=off",
        silent: "cmdline - mitigations=off",
        unknown: "/proc/cmdline refused",
    },
    ..Knob::DEFAULT
};

/// A parameter of a single mitigation, the values that disable it or disable it for some attacks,
/// and the others that the kernel accepts; none stands for any.
type Single = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Parameters of single mitigations with a value (kernel-parameters.txt, and
/// arch/x86/kernel/cpu/bugs.c for the words that it accepts).
const VALUES: &[Single] = &[
    ("gather_data_sampling", &["off"], &["force"]),
    ("indirect_target_selection", &["off", "vmexit"], &["on", "force", "stuff"]),
    ("kvm_intel.vmentry_l1d_flush", &["never"], &["auto", "cond", "always"]),
    ("l1tf", &["off"], &["flush", "flush,nosmt", "flush,nowarn", "full", "full,force"]),
    ("mds", &["off"], FULL),
    ("mmio_stale_data", &["off"], FULL),
    ("pti", &["off"], &["on", "auto"]),
    ("reg_file_data_sampling", &["off"], &["on"]),
    (RETBLEED, &["off"], &["auto", "unret", "ibpb", "stuff"]),
    ("spec_rstack_overflow", &["off", "microcode", "ibpb-vmexit"], &["safe-ret", "ibpb"]),
    ("spec_store_bypass_disable", &["off"], &["auto", "on", "prctl", "seccomp"]),
    ("spectre_bhi", &["off", "vmexit"], &["on"]),
    ("spectre_v2", &["off"], SPECTRE_V2),
    ("spectre_v2_user", &["off"], &["auto", "on", "prctl", "prctl,ibpb", "seccomp", "seccomp,ibpb"]),
    ("srbds", &["off"], &[]),
    ("ssbd", &["force-off"], &["force-on", "kernel"]),
    ("stf_barrier", &["off"], &[]),
    ("tsa", &["off", "user", "vm"], &["on"]),
    ("tsx_async_abort", &["off"], FULL),
    ("vmscape", &["off"], &["ibpb", "force"]),
];

const FULL: &[&str] = &["full", "full,nosmt"];
/// The one whose value is a list, of which the last word that selects a mitigation counts.
const RETBLEED: &str = "retbleed";

/// Parameters that x86 searched for the last time they are given, and took for `auto` if it did not
/// know that value, up to the release before (`cmdline_find_option()`).
const LAST_ALONE: &[(&str, (u32, u32))] = &[
    ("pti", (6, 11)),
    ("spec_store_bypass_disable", (6, 17)),
    ("spectre_v2", (6, 17)),
    ("spectre_v2_user", (6, 17)),
];

/// Parameters whose presence disables a mitigation; a value is ignored.
const WORDS: &[&str] = &[
    "no_entry_flush",
    "no_rfi_flush",
    "no_stf_barrier",
    "no_uaccess_flush",
    "nopti",
    "nospec",
    "nospec_store_bypass_disable",
    "nospectre_bhb",
    "nospectre_v1",
    "nospectre_v2",
];

/// Parameters with a boolean value.
const SWITCHES: &[&str] = &["kpti", "kvm.nx_huge_pages", "nobp"];

/// Parameters that exist not only on x86, with prefixes of the names of their architectures
/// (arch/arm64/kernel/{cpufeature,proton-pack}.c, arch/powerpc/kernel/security.c,
/// arch/s390/kernel/nospec-branch.c); all others are x86's.
const NOT_OF_X86_ALONE: &[(&str, &[&str])] = &[
    ("kpti", ARM64),
    ("no_entry_flush", POWER),
    ("no_rfi_flush", POWER),
    ("no_stf_barrier", POWER),
    ("no_uaccess_flush", POWER),
    ("nobp", S390),
    ("nopti", &[X86, "ppc"]),
    ("nospec", S390),
    ("nospec_store_bypass_disable", &[X86, "ppc"]),
    ("nospectre_bhb", ARM64),
    ("nospectre_v1", &[X86, "ppc"]),
    ("nospectre_v2", &[X86, "aarch64", "armv8", "ppc", "s390"]),
    ("spec_store_bypass_disable", &[X86, "ppc"]),
    ("spectre_v2", &[X86, "s390"]),
    ("ssbd", ARM64),
    ("stf_barrier", POWER),
];

pub const X86: &str = "x86";
const POWER: &[&str] = &["ppc"];
const S390: &[&str] = &["s390"];
/// Prefixes of the names of arm64; the second is the one that 32-bit programs see.
pub const ARM64: &[&str] = &["aarch64", "armv8"];

/// Prefixes of the names of the architectures that have a parameter of single mitigations; none for
/// another parameter.
pub fn takers(parameter: &str) -> Option<&'static [&'static str]> {
    let named = VALUES.iter().map(|(name, ..)| *name).chain(WORDS.iter().chain(SWITCHES).copied());
    named.into_iter().any(|name| name == parameter).then(|| takers_of(parameter))
}

fn takers_of(parameter: &str) -> &'static [&'static str] {
    NOT_OF_X86_ALONE.iter().find(|(name, _)| *name == parameter).map_or(&[X86][..], |(_, takers)| takers)
}

/// Architecture, with one name for all of x86; none if it is not known.
pub fn architecture<'a>(machine: &MachineView<'a>) -> Option<&'a str> {
    let name = machine.facts().machine.known()?;
    Some(if machine.require_x86().is_ok() { X86 } else { name })
}

/// True if the kernel of this architecture has the parameter, or the architecture is not known.
fn is_of(architecture: Option<&str>, parameter: &str) -> bool {
    architecture.is_none_or(|name| takers_of(parameter).iter().any(|taker| name.starts_with(taker)))
}

/// Removes these words from the command line, or rebuilds a kernel that was built without them.
fn left_to_the_kernel(off: &[String], cmdline: &Cmdline, is_built_in: bool) -> Remedy {
    let mut changes: Vec<Change> = Vec::new();
    for word in off {
        let change = match (word.strip_prefix("built without "), word.split_once('=')) {
            (Some(option), _) => Change::kconfig(option, "y"),
            (None, _) if is_built_in => {
                Change::advice(AdviceReason::Kernel, format!("remove {word} from CONFIG_CMDLINE"))
            }
            // A single entry of a list is handled with the list.
            (None, Some((name, value)))
                if name == "mitigations" || !cmdline.values(name).any(|all| all == value) =>
            {
                Change::cmdline_remove(name)
            }
            _ => Change::cmdline_remove(word.as_str()),
        };
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    Remedy::of(changes).note("unless only trusted code can ever run on this machine")
}

fn judge(machine: &MachineView) -> Judged {
    let cmdline = machine.cmdline_or_built_in()?;
    let architecture = architecture(machine);
    let mut off = by_vector(machine, cmdline);
    for single in VALUES.iter().filter(|(name, ..)| is_of(architecture, name)) {
        off.extend(switched_off(machine, architecture, cmdline, single));
    }
    let words = WORDS.iter().filter(|name| is_of(architecture, name) && cmdline.has(name));
    off.extend(words.map(|name| (*name).to_owned()));
    for name in SWITCHES.iter().filter(|name| is_of(architecture, name)) {
        // KVM accepts three more words (set_nx_huge_pages() of arch/x86/kvm/mmu/mmu.c); the first
        // begins like a no.
        let read = |value: &str| match value {
            "never" => Some(true),
            "force" | "auto" => Some(false),
            _ => machine.truth(value).map(|is_on| !is_on),
        };
        let is_off = cmdline.in_effect(name, read).filter(|(_, is_off)| *is_off);
        off.extend(is_off.map(|(value, _)| format!("{name}={value}")));
    }
    off.extend(built_without(machine).into_iter().map(|option| format!("built without {option}")));
    if off.is_empty() {
        // Mitigations are left to the kernel only if its build is known.
        machine.kconfig()?;
        // The boot loader of a stopped kernel may add words.
        machine.cmdline()?;
        Ok(Judgement::pass("the kernel's default"))
    } else {
        let is_built_in = machine.facts().cmdline == Fact::NotRunning;
        Ok(Judgement::fail(truncate_words(&off)).fix(left_to_the_kernel(&off, cmdline, is_built_in)))
    }
}

/// The word that switches a single mitigation off.
fn switched_off(
    machine: &MachineView,
    architecture: Option<&str>,
    cmdline: &Cmdline,
    single: &Single,
) -> Option<String> {
    let (name, off, on) = single;
    // Elsewhere than on x86 the beginning of a value is compared.
    let is_x86 = architecture.is_none_or(|name| name == X86) && *name != "ssbd";
    let is = |value: &str, word: &&&str| if is_x86 { value == **word } else { value.starts_with(**word) };
    let is_searched = LAST_ALONE.iter().any(|(known, until)| {
        is_x86 && known == name && machine.series().is_ok_and(|series| series < *until)
    });
    let read = |value| {
        let found = off.iter().find(|word| is(value, word));
        let is_taken =
            found.is_some() || on.is_empty() || is_searched || on.iter().any(|word| is(value, &word));
        is_taken.then_some(found)
    };
    let found = match *name {
        RETBLEED => {
            let words = cmdline.values(name).rev().flat_map(|value| value.rsplit(','));
            words.filter_map(read).next()?
        }
        _ => cmdline.in_effect(name, read)?.1,
    };
    found.map(|word| format!("{name}={word}"))
}

/// True if a vector that one `mitigations=` excluded stays excluded by a later one
/// (mitigations_parse_cmdline() in kernel/cpu.c, from 6.17 on, on x86).
pub fn keeps_vectors(machine: &MachineView) -> bool {
    architecture(machine).is_none_or(|name| name == X86)
        && !machine.series().is_ok_and(|series| series < (6, 17))
}

/// `mitigations=off`, and the attack vectors that `no_` words exclude
/// (attack_vector_controls.rst).
fn by_vector(machine: &MachineView, cmdline: &Cmdline) -> Vec<String> {
    let words: Vec<&str> = if keeps_vectors(machine) {
        cmdline.values("mitigations").flat_map(excluded).collect()
    } else {
        let is_old = machine.series().is_ok_and(|series| series < (6, 17));
        let is = |value: &str, word: &str| if is_old { value == word } else { value.starts_with(word) };
        let read = |value: &str| GLOBAL.iter().any(|word| is(value, word)).then_some(is(value, "off"));
        let last = cmdline.in_effect("mitigations", read).filter(|(_, is_off)| *is_off);
        last.map(|_| "off").into_iter().collect()
    };
    words.into_iter().map(|word| format!("mitigations={word}")).collect()
}

const GLOBAL: [&str; 3] = ["off", "auto,nosmt", "auto"];
const VECTORS: [&str; 5] =
    ["no_user_kernel", "no_user_user", "no_guest_host", "no_guest_guest", "no_cross_thread"];

/// Mitigations that a value excludes: all if it begins with `off`, and vectors behind a comma, up
/// to the first unknown one.
fn excluded(value: &str) -> Vec<&str> {
    let all = GLOBAL.into_iter().find(|word| value.starts_with(word)).unwrap_or_default();
    let list = value[all.len()..].strip_prefix(',').into_iter().flat_map(|list| list.split(','));
    let vectors = list.take_while(|word| VECTORS.contains(word));
    (all == "off").then_some("off").into_iter().chain(vectors).collect()
}

/// Options whose absence disables all mitigations, and those of single ones that are on by default.
fn built_without(machine: &MachineView) -> Vec<String> {
    // The second is the name before 6.9.
    const ALL: [&str; 2] = ["CPU_MITIGATIONS", "SPECULATION_MITIGATIONS"];
    let Some(config) = machine.facts().kconfig.known() else { return Vec::new() };
    let is_off = |name: &&str| config.get(name) == OptionValue::No;
    if let Some(all) = ALL.iter().find(|name| is_off(name)) {
        return vec![(*all).to_owned()];
    }
    OPTIONS.iter().filter(|name| is_off(name)).map(|name| (*name).to_owned()).collect()
}

/// Options of single mitigations with "default y" (arch/x86/Kconfig, arch/arm64/Kconfig), by their
/// present names and those before 6.9.
const OPTIONS: &[&str] = &[
    "CPU_IBPB_ENTRY",
    "CPU_IBRS_ENTRY",
    "CPU_SRSO",
    "CPU_UNRET_ENTRY",
    "MITIGATE_SPECTRE_BRANCH_HISTORY",
    "MITIGATION_GDS",
    "MITIGATION_IBPB_ENTRY",
    "MITIGATION_IBRS_ENTRY",
    "MITIGATION_ITS",
    "MITIGATION_L1TF",
    "MITIGATION_MDS",
    "MITIGATION_MMIO_STALE_DATA",
    "MITIGATION_PAGE_TABLE_ISOLATION",
    "MITIGATION_RETBLEED",
    "MITIGATION_RETHUNK",
    "MITIGATION_RETPOLINE",
    "MITIGATION_RFDS",
    "MITIGATION_SPECTRE_BHI",
    "MITIGATION_SPECTRE_V1",
    "MITIGATION_SPECTRE_V2",
    "MITIGATION_SRBDS",
    "MITIGATION_SRSO",
    "MITIGATION_SSB",
    "MITIGATION_TAA",
    "MITIGATION_TSA",
    "MITIGATION_UNRET_ENTRY",
    "MITIGATION_VMSCAPE",
    "PAGE_TABLE_ISOLATION",
    "RETHUNK",
    "RETPOLINE",
    "UNMAP_KERNEL_AT_EL0",
];

#[cfg(test)]
mod tests {
    use super::{KNOB, OPTIONS, SWITCHES, VALUES, WORDS};
    use crate::fixture::{Machine, check};
    use crate::judgement::AuditVerdict;

    /// Every parameter of kernel-parameters.txt (6.18) that disables a mitigation, with its
    /// architectures: those that `mitigations=off` covers, those of the pages of hw-vuln, and the
    /// architectures' own.
    const DOCUMENTED: &[(&str, &str)] = &[
        ("x86_64 aarch64 ppc64le s390x", "mitigations=off"),
        ("x86_64 aarch64 ppc64le s390x", "nospectre_v2"),
        ("x86_64 ppc64le", "nopti nospec_store_bypass_disable nospectre_v1 spec_store_bypass_disable=off"),
        ("x86_64 s390x", "spectre_v2=off"),
        ("aarch64", "kpti=0 kpti=off nospectre_bhb ssbd=force-off"),
        ("ppc64le", "no_entry_flush no_rfi_flush no_stf_barrier no_uaccess_flush stf_barrier=off"),
        ("s390x", "nobp=0 nospec"),
        (
            "x86_64",
            "gather_data_sampling=off indirect_target_selection=off indirect_target_selection=vmexit \
             kvm.nx_huge_pages=off kvm.nx_huge_pages=never kvm-intel.vmentry_l1d_flush=never l1tf=off \
             mds=off mmio_stale_data=off pti=off reg_file_data_sampling=off retbleed=off \
             retbleed=off,nosmt retbleed=nosmt,off spec_rstack_overflow=off \
             spec_rstack_overflow=microcode spec_rstack_overflow=ibpb-vmexit spectre_bhi=off \
             spectre_bhi=vmexit spectre_v2_user=off srbds=off tsa=off tsa=user tsa=vm \
             tsx_async_abort=off vmscape=off",
        ),
    ];

    /// Values of the same parameters that keep it enabled.
    const IN_FORCE: &str = "mitigations=auto mitigations=auto,nosmt gather_data_sampling=force \
                        indirect_target_selection=on indirect_target_selection=force kpti=1 \
                        kvm.nx_huge_pages=auto kvm.nx_huge_pages=force kvm.mitigate_smt_rsb=1 \
                        kvm.mitigate_smt_rsb=0 kvm-intel.vmentry_l1d_flush=cond l1tf=full \
                        l1tf=flush,nosmt l1tf=flush,nowarn mds=full mds=full,nosmt \
                        mmio_stale_data=full,nosmt nobp=1 pti=on pti=auto \
                        reg_file_data_sampling=on retbleed=auto retbleed=auto,nosmt \
                        retbleed=unret,nosmt spec_rstack_overflow=safe-ret \
                        spec_rstack_overflow=ibpb spec_store_bypass_disable=prctl spectre_bhi=on \
                        spectre_v2=on spectre_v2=eibrs,lfence spectre_v2_user=prctl ssbd=kernel \
                        srbds=on tsa=on tsx_async_abort=full,nosmt vmscape=ibpb vmscape=force";

    /// A kernel with attack vectors.
    const LATER: &str = "/proc/sys/kernel/osrelease: 6.17.1
        /proc/sys/kernel/version: #1 SMP PREEMPT_RT
        /boot/config-6.17.1:
        | # Automatically generated file; DO NOT EDIT.
        | # Linux/x86 6.17.1 Kernel Configuration
        | CONFIG_PREEMPT_RT=y
        | CONFIG_CPU_MITIGATIONS=y
        | # Kernel hacking";

    const ARCHITECTURES: [&str; 4] = ["x86_64", "aarch64", "ppc64le", "s390x"];

    /// Verdict and value that an architecture's kernel has with these words.
    fn after(architecture: &str, words: &str) -> (AuditVerdict, String) {
        let mut machine = Machine::base();
        machine.edit(&format!("/proc/sys/kernel/arch: {architecture}"));
        words.split(' ').for_each(|word| machine.edit(&format!("cmdline + {word}")));
        let found = machine.finding(&KNOB);
        (found.verdict, found.value)
    }

    #[test]
    fn every_documented_word_is_seen() {
        let mut words: Vec<&str> = Vec::new();
        for (takers, documented) in DOCUMENTED {
            for word in documented.split_whitespace() {
                words.push(word);
                let name = word.split('=').next().unwrap_or_default().replace('-', "_");
                for architecture in ARCHITECTURES {
                    let (verdict, value) = after(architecture, word);
                    let applies = takers.split(' ').any(|taker| taker == architecture);
                    let fails = verdict == AuditVerdict::Fail && value.replace('-', "_").starts_with(&name);
                    assert_eq!(fails, applies, "{word} on {architecture}: {value}");
                    // As if it were absent, if the last one counts.
                    let again = after(architecture, &format!("{word} quiet {word}"));
                    assert_eq!(again.0 == AuditVerdict::Fail, applies, "{word} on {architecture}");
                }
            }
        }
        for word in IN_FORCE.split_whitespace() {
            for architecture in ARCHITECTURES {
                let passed = (AuditVerdict::Pass, "the kernel's default".to_owned());
                assert_eq!(after(architecture, word), passed, "{word} on {architecture}");
            }
        }
        // Every line of the tables is tried.
        let names = VALUES
            .iter()
            .map(|(name, ..)| *name)
            .chain(WORDS.iter().copied())
            .chain(SWITCHES.iter().copied());
        for name in names {
            let tried =
                |word: &&str| word.split('=').next().is_some_and(|tried| tried.replace('-', "_") == name);
            assert!(words.iter().any(tried), "{name}");
        }
        println!("{} words that leave a mitigation out, all seen", words.len());
    }

    #[test]
    fn every_option_is_seen() {
        for option in OPTIONS.iter().chain(&["CPU_MITIGATIONS", "SPECULATION_MITIGATIONS"]) {
            check(&KNOB, &format!("CONFIG_{option}=n"), "fail info");
        }
        check(&KNOB, "/boot refused", "unknown");
        check(&KNOB, "/boot refused\ncmdline + nopti", "fail info nopti");
    }

    #[test]
    fn what_is_switched_off_is_named() {
        check(&KNOB, "", "pass the kernel's default");
        check(&KNOB, "cmdline + mitigations=off\ncmdline + mitigations=auto", "pass the kernel's default");
        check(&KNOB, "cmdline + retbleed=off\ncmdline + retbleed=auto", "pass the kernel's default");
        check(&KNOB, "cmdline + retbleed=off\ncmdline + retbleed=nosmt", "fail info retbleed=off");
        check(
            &KNOB,
            "cmdline + mitigations=off\ncmdline + nopti\ncmdline + mds=off",
            "fail info mitigations=off, mds=off, nopti",
        );
        // What the kernel refuses leaves the value before it.
        let refused = |word: &str, then: &str| {
            let arm = if matches!(word, "kpti=0" | "ssbd=force-off") { "aarch64" } else { "x86_64" };
            format!("/proc/sys/kernel/arch: {arm}\ncmdline + {word}\ncmdline + {then}")
        };
        for (word, then) in [
            ("kpti=0", "kpti=x"),
            ("mds=off", "mds=foo"),
            ("pti=off", "pti=foo"),
            ("retbleed=off", "retbleed=foo"),
            ("ssbd=force-off", "ssbd=x"),
        ] {
            check(&KNOB, &refused(word, then), &format!("fail info {word}"));
        }
        check(&KNOB, &refused("ssbd=force-off", "ssbd=kernel"), "pass the kernel's default");
        check(&KNOB, &refused("srbds=off", "srbds=x"), "pass the kernel's default");
        check(&KNOB, "/proc/sys/kernel/arch: aarch64\ncmdline + ssbd=force-offx", "fail info ssbd=force-off");
        let spectre = refused("spectre_v2=off", "spectre_v2=foo");
        check(&KNOB, &spectre, "pass the kernel's default");
        check(&KNOB, &format!("{spectre}\n{LATER}"), "fail info spectre_v2=off");
        let arm = "/proc/sys/kernel/arch: aarch64\ncmdline + kpti=0\ncmdline + ssbd=force-off";
        check(&KNOB, arm, "fail info ssbd=force-off, kpti=0");
    }

    #[test]
    fn words_of_other_architectures_do_nothing() {
        let on = |architecture: &str, word: &str| {
            format!("/proc/sys/kernel/arch: {architecture}\ncmdline + {word}")
        };
        for word in
            ["no_stf_barrier", "no_rfi_flush", "nospectre_bhb", "kpti=off", "nospec", "ssbd=force-off"]
        {
            check(&KNOB, &on("x86_64", word), "pass the kernel's default");
        }
        for word in ["mds=off", "nopti", "spectre_v2=off", "l1tf=off", "retbleed=off", "nospectre_v1"] {
            check(&KNOB, &on("aarch64", word), "pass the kernel's default");
            check(&KNOB, &on("i686", word), &format!("fail info {word}"));
        }
        check(&KNOB, &on("aarch64", "nospectre_v2"), "fail info nospectre_v2");
        check(&KNOB, &on("aarch64", "mitigations=off"), "fail info mitigations=off");
        check(&KNOB, &on("ppc64le", "no_stf_barrier"), "fail info no_stf_barrier");
        let vectors = |words: &str| format!("{}\n{LATER}", on("aarch64", words));
        check(&KNOB, &vectors("mitigations=auto,no_user_kernel"), "pass the kernel's default");
        check(&KNOB, &vectors("mitigations=off\ncmdline + mitigations=auto"), "pass the kernel's default");
        check(&KNOB, &vectors("mitigations=auto\ncmdline + mitigations=off,x"), "fail info mitigations=off");
    }

    #[test]
    fn from_6_17_on_a_vector_stays_out() {
        let twice = "cmdline + mitigations=off\ncmdline + mitigations=auto";
        check(&KNOB, &format!("{twice}\n{LATER}"), "fail info mitigations=off");
        for (value, off) in [
            ("auto,no_user_kernel,no_guest_host", "mitigations=no_user_kernel, mitigations=no_guest_host"),
            ("auto,no_user_user", "mitigations=no_user_user"),
            ("auto,nosmt,no_guest_guest", "mitigations=no_guest_guest"),
            (",no_cross_thread", "mitigations=no_cross_thread"),
        ] {
            check(&KNOB, &format!("cmdline + mitigations={value}\n{LATER}"), &format!("fail info {off}"));
            // An older kernel refuses the value as a whole.
            check(&KNOB, &format!("cmdline + mitigations={value}"), "pass the kernel's default");
            let after_off = format!("cmdline + mitigations=off\ncmdline + mitigations={value}");
            check(&KNOB, &after_off, "fail info mitigations=off");
        }
        let of = |value: &str| format!("cmdline + mitigations={value}\n{LATER}");
        check(&KNOB, &of("offline"), "fail info mitigations=off");
        check(&KNOB, "cmdline + mitigations=offline", "pass the kernel's default");
        // A comma is in front of them, and the first unknown one ends them.
        check(&KNOB, &of("no_user_kernel"), "pass the kernel's default");
        check(&KNOB, &of("auto,foo,no_user_kernel"), "pass the kernel's default");
        // Only commas separate.
        check(
            &KNOB,
            &format!("cmdline + mitigations=auto;no_user_user\n{LATER}"),
            "pass the kernel's \
                                                                                    default",
        );
    }
}
