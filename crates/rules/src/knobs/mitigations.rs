//! Mitigations of processor vulnerabilities: a report, and no advice to switch them off.

use super::sources::{HW_VULN, PARAMETERS};
use super::unsettable;
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
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
    description: "Against processors that leak data the kernel does more at each entry, exit and \
                  switch of tasks. mitigations=off, and words for single vulnerabilities, leave \
                  that out, and with it the protection. Real-time recipes copy them from each \
                  other.",
    rationale: "what is saved at each entry into the kernel is bought with memory that any \
                program, guest or script of a browser may read",
    detection: "Words on the command line that switch mitigations off or leave them out of some \
                ways in, of those that this architecture takes, and a kernel built without them \
                (CPU_MITIGATIONS, or the option of a single one). Which of them this processor \
                needs, and what each costs here, is not judged; \
                /sys/devices/system/cpu/vulnerabilities says what is in force.",
    side_effects: "With mitigations each system call, interrupt and switch takes longer; by how \
                   much depends on the processor, its microcode and how often the program enters \
                   the kernel.",
    wanted: "left to the kernel",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "take these words off the kernel's command line, or boot a kernel built with \
             CPU_MITIGATIONS, unless no code that is not trusted can ever run on this machine",
        )
    },
    severity: Severity::Info,
    evidence: EvidenceKind::Documented,
    disputed: "whether it is worth it depends on the processor and the program: `onbeat compare` \
               of runs with and without tells what is gained; what is lost is the protection",
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

/// Parameters of single mitigations with a value: the values that disable the mitigation, or
/// disable it for some attacks (kernel-parameters.txt, and arch/x86/kernel/cpu/bugs.c for the words
/// that it accepts).
const VALUES: &[(&str, &[&str])] = &[
    ("gather_data_sampling", &["off"]),
    ("indirect_target_selection", &["off", "vmexit"]),
    ("kvm_intel.vmentry_l1d_flush", &["never"]),
    ("l1tf", &["off"]),
    ("mds", &["off"]),
    ("mmio_stale_data", &["off"]),
    ("pti", &["off"]),
    ("reg_file_data_sampling", &["off"]),
    ("retbleed", &["off"]),
    ("spec_rstack_overflow", &["off", "microcode", "ibpb-vmexit"]),
    ("spec_store_bypass_disable", &["off"]),
    ("spectre_bhi", &["off", "vmexit"]),
    ("spectre_v2", &["off"]),
    ("spectre_v2_user", &["off"]),
    ("srbds", &["off"]),
    ("ssbd", &["force-off"]),
    ("stf_barrier", &["off"]),
    ("tsa", &["off", "user", "vm"]),
    ("tsx_async_abort", &["off"]),
    ("vmscape", &["off"]),
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

/// Words that set something in addition, without disabling the mitigation.
const BESIDES: &[&str] = &["nosmt", "nowarn", "force"];

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
    let named = VALUES.iter().map(|(name, _)| *name).chain(WORDS.iter().chain(SWITCHES).copied());
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
                Change::advice(AdviceReason::Kernel, format!("take {word} out of CONFIG_CMDLINE"))
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
    Remedy::of(changes).note("unless no code that is not trusted can ever run on this machine")
}

fn judge(machine: &MachineView) -> Judged {
    let cmdline = machine.cmdline_or_built_in()?;
    let architecture = architecture(machine);
    let mut off = by_vector(machine, architecture, cmdline);
    for (name, values) in VALUES.iter().filter(|(name, _)| is_of(architecture, name)) {
        // A list of words, of which the last that selects a mitigation counts; likewise if the
        // parameter is repeated.
        let mut words = cmdline.values(name).flat_map(|value| value.split(','));
        let last = words.rfind(|word| !BESIDES.contains(word));
        off.extend(last.filter(|word| values.contains(word)).map(|word| format!("{name}={word}")));
    }
    let words = WORDS.iter().filter(|name| is_of(architecture, name) && cmdline.has(name));
    off.extend(words.map(|name| (*name).to_owned()));
    for name in SWITCHES.iter().filter(|name| is_of(architecture, name)) {
        let value = cmdline.value(name);
        // KVM accepts two more words, never and force (arch/x86/kvm/mmu/mmu.c); the first begins
        // like a no.
        let is_off = |value: &&str| machine.truth(value) == Some(false) && *value != "force";
        off.extend(value.filter(is_off).map(|value| format!("{name}={value}")));
    }
    off.extend(built_without(machine).into_iter().map(|option| format!("built without {option}")));
    match off.is_empty() {
        // Mitigations are left to the kernel only if its build is known.
        true => {
            machine.kconfig()?;
            // The boot loader of a stopped kernel may add words.
            machine.cmdline()?;
            Ok(Judgement::pass("left to the kernel"))
        }
        false => {
            let is_built_in = machine.facts().cmdline == Fact::NotRunning;
            Ok(Judgement::fail(truncate_words(&off)).fix(left_to_the_kernel(&off, cmdline, is_built_in)))
        }
    }
}

/// `mitigations=off`, and the attack vectors that `no_` words exclude (from 6.17 on,
/// attack_vector_controls.rst, on x86).
fn by_vector(machine: &MachineView, architecture: Option<&str>, cmdline: &Cmdline) -> Vec<String> {
    // From 6.17 on an excluded vector stays excluded by a later `mitigations=`
    // (mitigations_parse_cmdline() in kernel/cpu.c); before, the last one counts.
    let values = cmdline.values("mitigations");
    let off: Vec<&str> = match machine.series() {
        Ok(series) if series < (6, 17) => {
            // An unknown value is refused as a whole, and the one before it stays in effect.
            let mut values = values;
            let known = values.rfind(|value| matches!(*value, "off" | "auto" | "auto,nosmt"));
            known.filter(|value| *value == "off").into_iter().collect()
        }
        // Without ARCH_HAS_CPU_ATTACK_VECTORS only the word before the vectors is read.
        _ if architecture.is_some_and(|name| name != X86) => {
            let mut values = values;
            let known = values.rfind(|value| value.starts_with("off") || value.starts_with("auto"));
            known.filter(|value| value.starts_with("off")).map(|_| "off").into_iter().collect()
        }
        _ => values
            .flat_map(|value| value.split(','))
            .filter(|word| *word == "off" || word.starts_with("no_") && !word.contains(';'))
            .collect(),
    };
    off.into_iter().map(|word| format!("mitigations={word}")).collect()
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
                    let taken = takers.split(' ').any(|taker| taker == architecture);
                    let fails = verdict == AuditVerdict::Fail && value.replace('-', "_").starts_with(&name);
                    assert_eq!(fails, taken, "{word} on {architecture}: {value}");
                    // As if it were absent, if the last one counts.
                    let again = after(architecture, &format!("{word} quiet {word}"));
                    assert_eq!(again.0 == AuditVerdict::Fail, taken, "{word} on {architecture}");
                }
            }
        }
        for word in IN_FORCE.split_whitespace() {
            for architecture in ARCHITECTURES {
                let passed = (AuditVerdict::Pass, "left to the kernel".to_owned());
                assert_eq!(after(architecture, word), passed, "{word} on {architecture}");
            }
        }
        // Every line of the tables is tried.
        let names =
            VALUES.iter().map(|(name, _)| *name).chain(WORDS.iter().copied()).chain(SWITCHES.iter().copied());
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
        check(&KNOB, "", "pass left to the kernel");
        check(&KNOB, "cmdline + mitigations=off\ncmdline + mitigations=auto", "pass left to the kernel");
        check(&KNOB, "cmdline + retbleed=off\ncmdline + retbleed=auto", "pass left to the kernel");
        check(&KNOB, "cmdline + retbleed=off\ncmdline + retbleed=nosmt", "fail info retbleed=off");
        check(
            &KNOB,
            "cmdline + mitigations=off\ncmdline + nopti\ncmdline + mds=off",
            "fail info mitigations=off, mds=off, nopti",
        );
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
            check(&KNOB, &on("x86_64", word), "pass left to the kernel");
        }
        for word in ["mds=off", "nopti", "spectre_v2=off", "l1tf=off", "retbleed=off", "nospectre_v1"] {
            check(&KNOB, &on("aarch64", word), "pass left to the kernel");
            check(&KNOB, &on("i686", word), &format!("fail info {word}"));
        }
        check(&KNOB, &on("aarch64", "nospectre_v2"), "fail info nospectre_v2");
        check(&KNOB, &on("aarch64", "mitigations=off"), "fail info mitigations=off");
        check(&KNOB, &on("ppc64le", "no_stf_barrier"), "fail info no_stf_barrier");
        let vectors = |words: &str| format!("{}\n{LATER}", on("aarch64", words));
        check(&KNOB, &vectors("mitigations=auto,no_user_kernel"), "pass left to the kernel");
        check(&KNOB, &vectors("mitigations=off\ncmdline + mitigations=auto"), "pass left to the kernel");
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
            check(&KNOB, &format!("cmdline + mitigations={value}"), "pass left to the kernel");
            let after_off = format!("cmdline + mitigations=off\ncmdline + mitigations={value}");
            check(&KNOB, &after_off, "fail info mitigations=off");
        }
        // Only commas separate.
        check(&KNOB, &format!("cmdline + mitigations=auto;no_user_user\n{LATER}"), "pass left to the kernel");
    }
}
