//! Mitigations of processor vulnerabilities: a report, and no advice to switch them off.

use super::sources::{HW_VULN, PARAMETERS};
use crate::facts::kbool::kbool;
use crate::facts::kconfig::Setting;
use crate::rules::case::Case;
use crate::rules::change::Because;
use crate::rules::judgement::{Judged, Judgement, Severity};
use crate::rules::remedy::Remedy;
use crate::rules::words::few;
use crate::rules::{Evidence, Examples, Knob, Lasts, Slice, Source};

pub static KNOB: Knob = Knob {
    id: "mitigations",
    title: "mitigations of processor vulnerabilities",
    what: "Against processors that leak data the kernel does more at each entry, exit and switch of tasks. mitigations=off, and words for \
           single vulnerabilities, leave that out, and with it the protection. Real-time recipes copy them from each other.",
    why: "what is saved at each entry into the kernel is bought with memory that any program, guest or script of a browser may read",
    tell: "Words on the command line that switch mitigations off, and a kernel built without them (CPU_MITIGATIONS). Which of them this processor needs, and what each costs here, is not \
           judged; /sys/devices/system/cpu/vulnerabilities says what is in force.",
    cost: "With mitigations each system call, interrupt and switch takes longer; by how much depends on the processor, its microcode \
           and how often the program enters the kernel.",
    wanted: "left to the kernel",
    fix: || {
        Remedy::advice(
            Because::Choice,
            "take these words off the kernel's command line, or boot a kernel built with CPU_MITIGATIONS, unless no code that is not trusted can ever run on this machine",
        )
    },
    severity: Severity::Info,
    evidence: Evidence::Documented,
    contested: "whether it is worth it depends on the processor and the program: `onbeat compare` of runs with and without tells what \
                is gained; what is lost is the protection",
    lasts: Lasts::Boot,
    sources: &[
        Source { title: "kernel: hardware vulnerabilities", url: HW_VULN },
        Source { title: "kernel: command line, mitigations=", url: PARAMETERS },
    ],
    cures: &[Slice::ReturnToUser, Slice::Switch],
    after: &[],
    conflicts: &[],
    reads: &[],
    facts: &["/proc/cmdline", "/boot/config-RELEASE"],
    programs: &[],
    judge,
    examples: Examples {
        fires: "cmdline + mitigations=off",
        silent: "cmdline - mitigations=off",
        unknown: "/proc/cmdline refused",
    },
};

/// Words that switch single mitigations off, with `off` as their value or with none.
const SINGLE: &[&str] = &[
    "gather_data_sampling",
    "indirect_target_selection",
    "l1tf",
    "mds",
    "mmio_stale_data",
    "nopti",
    "nospec_store_bypass_disable",
    "nospectre_bhb",
    "nospectre_v1",
    "nospectre_v2",
    "pti",
    "reg_file_data_sampling",
    "retbleed",
    "spec_rstack_overflow",
    "spec_store_bypass_disable",
    "spectre_bhi",
    "spectre_v2",
    "spectre_v2_user",
    "srbds",
    "tsa",
    "tsx_async_abort",
    "vmscape",
];

/// Parameters of modules that switch one off, with the values that do.
const MODULES: &[(&str, &[&str])] = &[
    ("kvm.nx_huge_pages", &["off", "0", "n", "N", "never"]),
    ("kvm.mitigate_smt_rsb", &["0", "n", "N"]),
    ("kvm_intel.vmentry_l1d_flush", &["never"]),
];

fn judge(case: &Case) -> Judged {
    let cmdline = case.cmdline()?;
    let mut off = Vec::new();
    // From 6.17 on single attack vectors are left out by `no_` words behind the first (attack_vector_controls.rst).
    let words = cmdline.value("mitigations").unwrap_or_default().split([',', ';']);
    off.extend(
        words
            .filter(|word| *word == "off" || word.starts_with("no_"))
            .map(|word| format!("mitigations={word}")),
    );
    for name in SINGLE {
        match cmdline.value(name) {
            Some("off") => off.push(format!("{name}=off")),
            None if name.starts_with("no") && cmdline.has(name) => off.push((*name).to_owned()),
            _ => {}
        }
    }
    // arm64 has words of its own.
    if cmdline.value("kpti").and_then(kbool) == Some(false) {
        off.push("kpti=off".to_owned());
    }
    if cmdline.value("ssbd") == Some("force-off") {
        off.push("ssbd=force-off".to_owned());
    }
    // KVM's own: huge pages that a guest may execute (arch/x86/kvm/mmu/mmu.c), and no flush of the L1 data cache on entry.
    for (name, values) in MODULES {
        let value = cmdline.value(name).filter(|value| values.contains(value));
        off.extend(value.map(|value| format!("{name}={value}")));
    }
    // The second is the name before 6.9.
    let built_without =
        |name| case.facts().kconfig.known().is_some_and(|config| config.get(name) == Setting::No);
    if ["CPU_MITIGATIONS", "SPECULATION_MITIGATIONS"].into_iter().any(built_without) {
        off.push("built without".to_owned());
    }
    Ok(match off.is_empty() {
        true => Judgement::pass("left to the kernel"),
        false => Judgement::fail(few(&off)),
    })
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::rules::fixture::check;

    #[test]
    fn what_is_switched_off_is_named() {
        check(&KNOB, "", "pass left to the kernel");
        check(&KNOB, "cmdline + mitigations=auto,nosmt", "pass left to the kernel");
        check(&KNOB, "cmdline + mitigations=off\ncmdline + mitigations=auto", "pass left to the kernel");
        check(
            &KNOB,
            "cmdline + mitigations=off\ncmdline + nopti\ncmdline + mds=off",
            "fail info mitigations=off, mds=off, nopti",
        );
        check(&KNOB, "cmdline + spectre_v2=on\ncmdline + kpti=1", "pass left to the kernel");
        check(&KNOB, "cmdline + kpti=0\ncmdline + ssbd=force-off", "fail info kpti=off, ssbd=force-off");
        check(
            &KNOB,
            "cmdline + mitigations=auto,no_user_kernel,no_guest_host",
            "fail info mitigations=no_user_kernel, mitigations=no_guest_host",
        );
        check(&KNOB, "cmdline + mitigations=auto;no_user_user", "fail info mitigations=no_user_user");
        check(&KNOB, "cmdline + kvm.nx_huge_pages=off", "fail info kvm.nx_huge_pages=off");
        check(&KNOB, "cmdline + kvm.nx_huge_pages=auto", "pass left to the kernel");
        check(&KNOB, "CONFIG_CPU_MITIGATIONS=n", "fail info built without");
        check(&KNOB, "/boot refused", "pass left to the kernel");
    }
}
