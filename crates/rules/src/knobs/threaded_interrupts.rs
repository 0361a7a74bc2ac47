//! Interrupt handlers in threads, on kernels that are not PREEMPT_RT.

use super::sources::{PARAMETERS, RT_DIFFERENCES};
use super::unsettable;
use crate::change::{AdviceReason, Change, Persistence};
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "threaded-interrupts",
    title: "threaded interrupts",
    description: "With threadirqs the handlers of nearly all interrupts run in separate threads, FIFO 50 by \
                  default, which a task of higher priority can preempt. PREEMPT_RT always does this.",
    rationale: "every task of the CPU waits until a handler without a thread ends, and for the softirqs that \
                it raised",
    detection: "The preemption model, threadirqs on the kernel's command line, and IRQ_FORCED_THREADING in \
                its configuration, without which the parameter is ignored. Handlers marked IRQF_NO_THREAD \
                and per-CPU handlers are not threaded.",
    side_effects: "A task switch for each interrupt, and some throughput. Drivers that are rarely used this \
                   way may show bugs.",
    wanted: "threadirqs, or a PREEMPT_RT kernel",
    fix: || Change::cmdline_add("threadirqs").into(),
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[
        Source { title: "kernel: command line, threadirqs", url: PARAMETERS },
        Source { title: "kernel: how realtime kernels differ, interrupt handling", url: RT_DIFFERENCES },
    ],
    cures: &[SliceKind::Irq, SliceKind::Softirq],
    facts: &["/proc/sys/kernel/version", "/proc/cmdline", "/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC Debian 6.12.9-1 (2025-01-10)
                /sys/kernel/realtime absent
                /sys/kernel/debug/sched/preempt: none voluntary (full) lazy
                CONFIG_PREEMPT_RT=n",
        silent: "",
        unknown: "/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC Debian 6.12.9-1 (2025-01-10)
                  /sys/kernel/realtime absent
                  /sys/kernel/debug/sched/preempt: none voluntary (full) lazy
                  CONFIG_PREEMPT_RT=n
                  /proc/cmdline refused",
    },
    ..Knob::DEFAULT
};

/// Remedy if the parameter has no effect.
fn real_time() -> Remedy {
    Remedy::advice(
        AdviceReason::Kernel,
        "boot a kernel with CONFIG_PREEMPT_RT: the architecture's kernel does not offer forced \
         threading",
    )
    .with_persistence(Persistence::Build)
}

/// True if the parameter has an effect: x86, Arm and RISC-V select the option (`arch/*/Kconfig`),
/// elsewhere the configuration decides.
fn is_offered(machine: &MachineView) -> Result<bool, Judgement> {
    let architecture = machine.facts().machine.known().map_or("", String::as_str);
    let selects = matches!(
        architecture,
        "x86_64" | "i386" | "i486" | "i586" | "i686" | "aarch64" | "armv7l" | "riscv32" | "riscv64"
    );
    match machine.kconfig() {
        Err(_) if selects => Ok(true),
        config => Ok(config?.is_yes("IRQ_FORCED_THREADING")),
    }
}

fn judge(machine: &MachineView) -> Judged {
    match machine.facts().realtime {
        Some(true) => return Ok(Judgement::pass("forced by PREEMPT_RT")),
        None => return Err(Judgement::unknown("the preemption model is not known")),
        Some(false) => {}
    }
    if !machine.cmdline()?.has("threadirqs") {
        // A polling task has no interrupts on its CPU if everything else is set well.
        let severity = if machine.has_profile(Profile::BusyPoll) { Severity::Low } else { Severity::High };
        let judged = Judgement::fail("no threadirqs").severity(severity);
        let lacks = machine.kconfig().is_ok_and(|config| !config.is_yes("IRQ_FORCED_THREADING"));
        return Ok(if lacks { judged.fix(real_time()) } else { judged });
    }
    if is_offered(machine)? {
        return Ok(Judgement::pass("threadirqs"));
    }
    Ok(Judgement::fail("threadirqs is ignored: the kernel has no IRQ_FORCED_THREADING").fix(real_time()))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const FULL: &str = "/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC\n\
                        /sys/kernel/debug/sched/preempt: none voluntary (full)\n\
                        CONFIG_PREEMPT_RT=n";

    #[test]
    fn preempt_rt_needs_no_parameter() {
        check(&KNOB, "", "pass forced by PREEMPT_RT");
        check(&KNOB, FULL, "fail high no threadirqs");
        check(&KNOB, &format!("{FULL}\n--profile busy-poll"), "fail low no threadirqs");
        check(&KNOB, &format!("{FULL}\ncmdline + threadirqs"), "pass threadirqs");
        check(&KNOB, &format!("{FULL}\ncmdline + threadirqs\nCONFIG_IRQ_FORCED_THREADING=n"), "fail high");
        check(&KNOB, &format!("{FULL}\ncmdline + threadirqs\n/boot refused"), "pass threadirqs");
        let riscv = "/proc/sys/kernel/arch: riscv64";
        check(&KNOB, &format!("{FULL}\ncmdline + threadirqs\n/boot refused\n{riscv}"), "pass threadirqs");
        let elsewhere = "/proc/sys/kernel/arch: alpha";
        check(&KNOB, &format!("{FULL}\ncmdline + threadirqs\n/boot refused\n{elsewhere}"), "unknown");
    }

    #[test]
    fn the_build_string_is_enough() {
        let container = "/proc/sys/kernel/version: #63-Ubuntu SMP PREEMPT_DYNAMIC Tue\n\
                         /sys/kernel/realtime absent\n/sys/kernel/debug absent\n/boot absent";
        check(&KNOB, container, "fail high no threadirqs");
        check(&KNOB, &format!("{container}\ncmdline + threadirqs"), "pass threadirqs");
    }

    #[test]
    fn an_unknown_model_is_no_pass() {
        let edits = "/proc/sys/kernel/version refused\n/sys/kernel/debug/sched/preempt refused\n\
                     /boot refused";
        check(&KNOB, edits, "unknown");
    }
}
