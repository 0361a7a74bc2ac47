//! Instrumentation of the kernel for the coverage of tests.

use super::sources::{GCOV, KCOV, RT_CONFIG};
use super::unsettable;
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use facts::kconfig::Kconfig;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "coverage-instrumentation",
    title: "coverage instrumentation",
    description: "GCOV_KERNEL counts how often each branch of the kernel was taken, KCOV records which \
                  branches a system call took, for tests and fuzzing, and PROFILE_ALL_BRANCHES and \
                  PROFILE_ANNOTATED_BRANCHES count conditions. They add code to every part of the kernel \
                  that is built with them.",
    rationale: "counting code runs at every branch of the kernel, also in interrupt handlers",
    detection: "The kernel's configuration. Which parts of the kernel GCOV_KERNEL covers without \
                GCOV_PROFILE_ALL cannot be read.",
    side_effects: "Needs another kernel; keep one with them for the tests that count coverage.",
    wanted: "not built in",
    fix: || Remedy::of(["GCOV_KERNEL", "KCOV"].map(|option| Change::kconfig(option, "n"))),
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Build,
    unsettable: unsettable::BUILT,
    sources: &[
        Source { title: "kernel: real-time kernel configuration, kernel debug options", url: RT_CONFIG },
        Source { title: "kernel: using gcov with the Linux kernel", url: GCOV },
        Source { title: "kernel: KCOV, code coverage for fuzzing", url: KCOV },
    ],
    cures: &[SliceKind::IrqsOff, SliceKind::Irq, SliceKind::Unexplained],
    facts: &["/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "CONFIG_GCOV_KERNEL=y\nCONFIG_GCOV_PROFILE_ALL=y",
        silent: "",
        unknown: "/boot refused",
    },
    ..Knob::DEFAULT
};

/// Options that count each `if` of the kernel, and each that is annotated as likely or not
/// (kernel/trace/Kconfig).
const BRANCHES: [&str; 2] = ["PROFILE_ALL_BRANCHES", "PROFILE_ANNOTATED_BRANCHES"];

/// Remedy: a kernel without those that are built in.
fn without(config: &Kconfig) -> Remedy {
    let all = ["GCOV_PROFILE_ALL", "KCOV_INSTRUMENT_ALL", "GCOV_KERNEL", "KCOV"];
    let on = all.into_iter().chain(BRANCHES).filter(|option| config.is_yes(option));
    Remedy::of(on.map(|option| Change::kconfig(option, "n")))
}

fn judge(machine: &MachineView) -> Judged {
    let config = machine.kconfig()?;
    let on = |name: &&str| config.is_yes(name);
    let all = ["GCOV_PROFILE_ALL", "KCOV_INSTRUMENT_ALL"];
    let whole: Vec<&str> = all.into_iter().chain(BRANCHES).filter(on).collect();
    if !whole.is_empty() {
        return Ok(Judgement::fail(whole.join(", ")).fix(without(config)));
    }
    // Only some files are built with them, or none.
    let some: Vec<&str> = ["GCOV_KERNEL", "KCOV"].into_iter().filter(on).collect();
    if !some.is_empty() {
        return Ok(Judgement::fail(some.join(", ")).severity(Severity::Medium).fix(without(config)));
    }
    Ok(Judgement::pass("none"))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn a_kernel_that_is_covered_in_part_is_less_bad() {
        check(&KNOB, "", "pass none");
        check(&KNOB, "CONFIG_KCOV=y", "fail medium KCOV");
        check(&KNOB, "CONFIG_KCOV=y\nCONFIG_KCOV_INSTRUMENT_ALL=y", "fail high KCOV_INSTRUMENT_ALL");
        check(&KNOB, "CONFIG_GCOV_KERNEL=y", "fail medium GCOV_KERNEL");
        for option in super::BRANCHES {
            check(&KNOB, &format!("CONFIG_{option}=y"), &format!("fail high {option}"));
        }
    }
}
