//! The preemption model: whether kernel code can be preempted at all.

use super::sources::{PARAMETERS, RT_CONFIG};
use crate::change::{AdviceReason, Change, Persistence};
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use model::slice::SliceKind;
use model::vocabulary::Preempt;

pub static KNOB: Knob = Knob {
    id: "preemption-model",
    title: "preemption model",
    description: "The places where the kernel can be preempted: nearly everywhere (PREEMPT_RT), outside of \
                  locks (full), at the tick for ordinary tasks (lazy), at explicit points (voluntary), or \
                  only on return to user mode (none).",
    rationale: "without PREEMPT_RT a task waits for the kernel's current work: softirqs, spinlock sections \
                and interrupt handlers run to completion, in the worst case for milliseconds",
    detection: "The build string of the kernel, /sys/kernel/realtime, the model selected in debugfs, the \
                command line and the kernel's configuration are combined, with the running kernel's report \
                first; if the remaining sources contradict each other or are insufficient, the model is \
                unknown; the build string alone shows that a kernel is not PREEMPT_RT. PREEMPT_RT is a build \
                option that `preempt=` cannot select.",
    side_effects: "Needs another kernel. PREEMPT_RT costs some throughput, and out-of-tree drivers may not \
                   work with it.",
    wanted: "rt",
    fix: || real_time_kernel(""),
    severity: Severity::Fatal,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Build,
    sets: SWITCH,
    sources: &[
        Source { title: "kernel: real-time kernel configuration, CONFIG_PREEMPT_RT", url: RT_CONFIG },
        Source { title: "kernel: command line, preempt=", url: PARAMETERS },
    ],
    cures: &[
        SliceKind::IrqsOff,
        SliceKind::PreemptOff,
        SliceKind::Softirq,
        SliceKind::Irq,
        SliceKind::LockContention,
    ],
    reads: &[SWITCH],
    facts: &["/proc/sys/kernel/version", "/sys/kernel/realtime", "/proc/cmdline", "/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC Debian 6.12.9-1 (2025-01-10)
                /sys/kernel/realtime absent
                /sys/kernel/debug/sched/preempt: none (voluntary) full lazy
                CONFIG_PREEMPT_RT=n",
        silent: "",
        unknown: "/proc/sys/kernel/version refused
                  /sys/kernel/realtime refused
                  /sys/kernel/debug/sched/preempt refused
                  /boot refused",
    },
    ..Knob::DEFAULT
};

const SWITCH: &str = "/sys/kernel/debug/sched/preempt";

/// Series of mainline with PREEMPT_RT, by architecture (`ARCH_SUPPORTS_RT` in arch/*/Kconfig of
/// 6.12 and 7.3).
const SINCE_6_12: &str = "from 6.12 on";
const SINCE_7_3: &str = "in 7.3, not in 6.12";

/// Mainline kernels that have PREEMPT_RT for an architecture, and the first that is known to.
fn mainline(arch: &str) -> Option<(&'static str, (u32, u32))> {
    match arch {
        "x86_64" | "i386" | "i486" | "i586" | "i686" | "aarch64" | "armv8l" | "riscv64" | "riscv32" => {
            Some((SINCE_6_12, (6, 12)))
        }
        arm if arm.starts_with("arm") => Some((SINCE_7_3, (7, 3))),
        _ => None,
    }
}

/// Another kernel, and where there is one for an architecture.
fn real_time_kernel(arch: &str) -> Remedy {
    let of = match mainline(arch) {
        Some((since, _)) => format!("mainline has it {since}"),
        None => format!("mainline has it for x86, arm64 and riscv {SINCE_6_12}, for 32-bit Arm {SINCE_7_3}"),
    };
    let words = format!(
        "boot a kernel with CONFIG_PREEMPT_RT: {of}, others by the -rt patches, and distributions \
                 package one"
    );
    Remedy::advice(AdviceReason::Kernel, words)
}

/// The option, for a kernel that is being built.
fn real_time_option(machine: &MachineView, arch: &str) -> Remedy {
    let option = Remedy::from(Change::kconfig("PREEMPT_RT", "y"));
    match (mainline(arch), machine.series()) {
        (Some((since, first)), Ok(series)) if series < first => {
            option.note(format!("mainline has it {since}: older kernels need the -rt patches"))
        }
        _ => option,
    }
}

/// Remedy of full preemption: immediately if the kernel switches at run time, by a parameter if it
/// does at boot, else by another kernel.
fn dynamic(machine: &MachineView) -> Remedy {
    let full = Change::cmdline_add("preempt=full");
    let offered = machine.line_if_present(SWITCH).ok().flatten().is_some_and(|line| line.contains("full"));
    let built = machine.kconfig().is_ok_and(|config| config.is_yes("PREEMPT_DYNAMIC"));
    let is_dynamic =
        machine.facts().version.known().is_some_and(|version| version.contains("PREEMPT_DYNAMIC"));
    let real_time = Remedy::advice(AdviceReason::Kernel, "boot a kernel with CONFIG_PREEMPT_RT")
        .with_persistence(Persistence::Build);
    match (offered, built || is_dynamic) {
        (true, _) => Remedy::from(Change::write(SWITCH, "full")).persist(full).or(real_time),
        (false, true) => Remedy::from(full).or(real_time),
        (false, false) => Remedy::from(Change::kconfig("PREEMPT", "y")).or(real_time),
    }
}

/// The unknown judgement for unreadable sources, or for their contradiction.
fn untold(machine: &MachineView) -> Judgement {
    // For a stopped kernel only the configuration can show it.
    if machine.survey.is_stopped {
        return machine
            .kconfig()
            .err()
            .unwrap_or_else(|| Judgement::unknown("the configuration names no model"));
    }
    let read = machine
        .known(&machine.facts().version, "/proc/sys/kernel/version")
        .and_then(|_| machine.line_if_present(SWITCH))
        .and_then(|_| machine.kconfig());
    read.err().unwrap_or_else(|| {
        Judgement::unknown(
            "the build string, /sys/kernel/realtime, debug/sched/preempt, the command line and the \
             configuration contradict each other, or do not show it",
        )
    })
}

fn judge(machine: &MachineView) -> Judged {
    let model = machine.facts().preempt;
    // The build string alone excludes PREEMPT_RT; the exact model matters for audio.
    let value = match (model, machine.facts().realtime) {
        (Preempt::Unknown, Some(false)) if !machine.has_profile(Profile::Audio) => "not PREEMPT_RT",
        (Preempt::Unknown, _) => return Err(untold(machine)),
        _ => model.name(),
    };
    // Full preemption suffices for periods of milliseconds, and for a CPU that hardly enters the
    // kernel.
    let (audio, polls) = (machine.has_profile(Profile::Audio), machine.has_profile(Profile::BusyPoll));
    match model {
        Preempt::Rt => Ok(Judgement::pass(value)),
        Preempt::Full if audio => Ok(Judgement::pass(value).wanted("full or rt")),
        _ if audio => {
            Ok(Judgement::fail(value).wanted("full or rt").severity(Severity::High).fix(dynamic(machine)))
        }
        _ => {
            let severity = if polls { Severity::High } else { Severity::Fatal };
            let judged = Judgement::fail(value).severity(severity);
            let arch = machine.facts().machine.known().map_or("", String::as_str);
            // A configuration alone: the kernel is still being built.
            let built = machine.survey.is_stopped && machine.kconfig().is_ok();
            Ok(judged.fix(if built { real_time_option(machine, arch) } else { real_time_kernel(arch) }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    const VOLUNTARY: &str = "/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC\n\
                             /sys/kernel/debug/sched/preempt: none (voluntary) full";
    const FULL: &str = "/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC\n\
                        /sys/kernel/debug/sched/preempt: none voluntary (full)";

    #[test]
    fn a_file_in_boot_alone_is_no_evidence() {
        let version = "/proc/sys/kernel/version";
        for gone in ["refused", "absent"] {
            check(&KNOB, &format!("{version} {gone}"), "unknown");
            let voluntary = "/sys/kernel/debug/sched/preempt: none (voluntary) full";
            check(&KNOB, &format!("{version} {gone}\n{voluntary}"), "fail fatal voluntary");
        }
    }

    /// A container: no debugfs, no configuration, only the build string.
    #[test]
    fn the_build_string_excludes_preempt_rt() {
        for flag in ["PREEMPT_DYNAMIC", "", "PREEMPT_LAZY"] {
            let edits = format!(
                "/proc/sys/kernel/version: #63-Ubuntu SMP {flag} Tue\n/sys/kernel/realtime absent\n\
                 /sys/kernel/debug absent\n/boot absent"
            );
            check(&KNOB, &edits, "fail fatal not PREEMPT_RT");
            check(&KNOB, &format!("{edits}\n--profile busy-poll"), "fail high not PREEMPT_RT");
            check(&KNOB, &format!("{edits}\n--profile audio"), "unknown");
            check(&KNOB, &edits.replace("realtime absent", "realtime: 1"), "unknown");
        }
    }

    #[test]
    fn mainline_has_it_by_architecture() {
        let fix = |arch: &str| {
            let mut machine = Machine::base();
            machine.edit(&format!("{VOLUNTARY}\n/proc/sys/kernel/arch: {arch}"));
            machine.finding(&KNOB).fix
        };
        for (arch, words) in [
            ("x86_64", "mainline has it from 6.12 on,"),
            ("aarch64", "mainline has it from 6.12 on,"),
            ("armv7l", "mainline has it in 7.3, not in 6.12,"),
            ("ppc64le", "for x86, arm64 and riscv from 6.12 on, for 32-bit Arm"),
        ] {
            assert!(fix(arch).contains(words), "{arch}: {}", fix(arch));
        }
    }

    #[test]
    fn what_could_not_be_read_is_named() {
        let mut machine = Machine::base();
        machine.edit("/proc/sys/kernel/version refused");
        let why = machine.finding(&KNOB).reason;
        assert!(why.contains("/proc/sys/kernel/version may not be read (EACCES"), "{why}");
        assert!(!why.contains("as root"), "{why}");
    }

    #[test]
    fn what_it_is_for_decides() {
        check(&KNOB, "", "pass rt");
        check(&KNOB, FULL, "fail fatal full");
        check(&KNOB, &format!("{FULL}\n--profile audio"), "pass full");
        check(&KNOB, &format!("{VOLUNTARY}\n--profile audio"), "fail high voluntary");
        check(&KNOB, &format!("{VOLUNTARY}\n--profile busy-poll"), "fail high voluntary");
    }
}
