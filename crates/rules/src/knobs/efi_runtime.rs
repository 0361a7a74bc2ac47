//! EFI runtime services: calls into the firmware that nothing else on the CPU can interrupt.

use super::sources::{PARAMETERS, RT_CONFIG, RT_HARDWARE};
use super::unsettable;
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words;
use crate::words::cpu_list;
use facts::cmdline::Cmdline;
use facts::kconfig::OptionValue;
use facts::line::{parse_line, parse_mask};
use model::slice::SliceKind;
use model::vocabulary::Preempt;

pub static KNOB: Knob = Knob {
    id: "efi-runtime",
    title: "EFI runtime services",
    description: "On a machine that booted with EFI the kernel calls the firmware for EFI variables, the \
                  real-time clock and resets. PREEMPT_RT kernels disable this by default \
                  (EFI_DISABLE_RUNTIME, since that option exists); efi=runtime and efi=noruntime override \
                  the default.",
    rationale: "while the firmware runs, its CPU may take no interrupts and run no other task, and some \
                firmware stops the other CPUs as well",
    detection: "Whether /sys/firmware/efi is there, the kernel's configuration, and efi= and noefi on its \
                command line. On newer kernels the workqueue efi_runtime can be confined to some CPUs: that \
                passes if it excludes the audited CPUs. Whether the firmware stops all CPUs is not detected: \
                run `onbeat measure` while variables are read.",
    side_effects: "Without runtime services efibootmgr, bootctl, fwupd and other programs cannot \
                   change boot entries or variables, and a machine that can only be reset through \
                   EFI needs another way.",
    wanted: "off, or kept on other CPUs",
    fix: || Change::cmdline_add("efi=noruntime").into(),
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[
        Source {
            title: "kernel: real-time kernel configuration, CONFIG_EFI_DISABLE_RUNTIME",
            url: RT_CONFIG,
        },
        Source { title: "kernel: considering hardware, EFI", url: RT_HARDWARE },
        Source { title: "kernel: command line, efi=", url: PARAMETERS },
    ],
    cures: &[SliceKind::IrqsOff, SliceKind::Unexplained],
    reads: &[FIRMWARE, PLATFORM, CPUMASK],
    facts: &[
        "/proc/cmdline",
        "/boot/config-RELEASE",
        "/proc/sys/kernel/version",
        "/sys/devices/system/cpu/online",
    ],
    judge,
    examples: Examples {
        fires: "/sys/firmware/efi/fw_platform_size: 64
                cmdline + efi=runtime",
        silent: "/sys/firmware/efi/fw_platform_size: 64
                 cmdline + efi=noruntime",
        unknown: "/sys/firmware/efi/fw_platform_size: 64
                  /proc/cmdline refused",
    },
    ..Knob::DEFAULT
};

/// File of each machine that was started by EFI: 32 or 64.
const PLATFORM: &str = "/sys/firmware/efi/fw_platform_size";
/// Directory that container managers cover with an empty one.
const FIRMWARE: &str = "/sys/firmware/";
const CPUMASK: &str = "/sys/devices/virtual/workqueue/efi_runtime/cpumask";

fn judge(machine: &MachineView) -> Judged {
    // A stopped kernel is judged for a machine that EFI starts, unless its line shows another.
    if machine.survey.is_stopped {
        if machine.facts().cmdline.known().is_some_and(|cmdline| cmdline.is_without_efi) {
            return Err(Judgement::not_applicable("the firmware of a Raspberry Pi boots without EFI"));
        }
        if !machine.kconfig()?.is_yes("EFI") {
            return Err(Judgement::not_applicable("the kernel has no EFI"));
        }
        return switched_off(machine);
    }
    // Its absence counts only if the rest of sysfs is visible.
    machine.known(&machine.facts().online, "/sys/devices/system/cpu/online")?;
    if machine.line_if_present(PLATFORM)?.is_none() {
        if machine.parsed(FIRMWARE, |names| Ok(names.is_empty())) == Ok(Some(true)) {
            return Err(Judgement::unknown("/sys/firmware is hidden: run onbeat outside of the container"));
        }
        return Err(Judgement::not_applicable(
            "this machine did not boot with EFI: /sys/firmware/efi does not exist",
        ));
    }
    Judgement::any([switched_off(machine), confined(machine)])
}

fn switched_off(machine: &MachineView) -> Judged {
    let mut chosen = None;
    let cmdline = machine.cmdline_or_built_in()?;
    for param in &cmdline.params {
        match (param.name.as_str(), param.value.as_deref()) {
            ("noefi", _) => chosen = Some(("noefi", false)),
            // In one list the kernel looks for noruntime first, and for runtime after it.
            ("efi", Some(list)) if list.split(',').any(|word| word == "runtime") => {
                chosen = Some(("efi=runtime", true));
            }
            ("efi", Some(list)) if list.split(',').any(|word| word == "noruntime") => {
                chosen = Some(("efi=noruntime", false));
            }
            _ => {}
        }
    }
    let (value, on) = match chosen {
        Some(chosen) => chosen,
        None => match machine.kconfig()?.get("EFI_DISABLE_RUNTIME") {
            OptionValue::Yes => ("EFI_DISABLE_RUNTIME", false),
            // Before the option existed (5.19), all PREEMPT_RT kernels left it off.
            OptionValue::Absent if machine.facts().preempt == Preempt::Rt => ("off with PREEMPT_RT", false),
            _ => ("on by default", true),
        },
    };
    let asked = if value == "efi=runtime" { asked_for(cmdline) } else { Vec::new() };
    let off = Remedy::from(Change::cmdline_add("efi=noruntime"));
    Ok(Judgement::fail_if(on, value)
        .fix(asked.into_iter().map(Change::cmdline_remove).fold(off, Remedy::and)))
}

/// The parameters that enable the runtime services.
fn asked_for(cmdline: &Cmdline) -> Vec<String> {
    let lists = cmdline.values("efi").filter(|list| list.split(',').any(|word| word == "runtime"));
    lists.map(|list| format!("efi={list}")).collect()
}

/// Passes if the calls are confined to CPUs that are not audited.
fn confined(machine: &MachineView) -> Judged {
    let Some(mask) = machine.parsed(CPUMASK, |text| parse_mask(&parse_line(text)?))? else {
        return Err(Judgement::not_applicable("this kernel has no workqueue of that name to confine"));
    };
    let ours = mask.and(machine.cpus());
    let judged = Judgement::fail_if(!ours.is_empty(), format!("efi_runtime on {}", cpu_list(&mask)));
    match machine.require_isolation() {
        Ok(()) => Ok(judged.fix(Change::write(CPUMASK, words::cpu_mask(&machine.housekeeping_cpus()?)))),
        Err(_) => Ok(judged),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const EFI: &str = "/sys/firmware/efi/fw_platform_size: 64";

    #[test]
    fn the_last_word_on_the_command_line_or_else_the_build_decides() {
        check(&KNOB, "", "not-applicable");
        check(&KNOB, EFI, "pass EFI_DISABLE_RUNTIME");
        check(&KNOB, &format!("{EFI}\nCONFIG_EFI_DISABLE_RUNTIME=n"), "fail medium on by default");
        let bare = |more: &str| {
            format!(
                "{EFI}\n/boot/config-6.12.9-rt-amd64:\n| # Automatically generated\n| \
                 CONFIG_EFI=y\n| # Kernel hacking\n{more}"
            )
        };
        check(&KNOB, &bare("CONFIG_PREEMPT_RT=y"), "pass off with PREEMPT_RT");
        check(
            &KNOB,
            &bare("/proc/sys/kernel/version: #1 SMP PREEMPT\n/sys/kernel/debug/sched/preempt absent"),
            "fail medium on by default",
        );
        check(&KNOB, "/sys/firmware/:", "unknown");
        check(&KNOB, &format!("{EFI}\nCONFIG_EFI_DISABLE_RUNTIME=n\ncmdline + noefi"), "pass noefi");
        check(&KNOB, &format!("{EFI}\ncmdline + efi=debug,runtime"), "fail medium efi=runtime");
        check(&KNOB, &format!("{EFI}\ncmdline + efi=runtime\ncmdline + efi=noruntime"), "pass efi=noruntime");
        check(&KNOB, &format!("{EFI}\ncmdline + efi=noruntime\n/boot refused"), "pass efi=noruntime");
        check(&KNOB, &format!("{EFI}\n/boot refused"), "unknown");
        check(&KNOB, "/sys/firmware/efi/fw_platform_size refused", "unknown");
    }

    #[test]
    fn calls_may_be_kept_on_other_cpus() {
        let mask = |mask| {
            format!(
                "{EFI}\ncmdline + efi=runtime\n\
                 /sys/devices/virtual/workqueue/efi_runtime/cpumask: {mask}"
            )
        };
        check(&KNOB, &mask("00000000,00000003"), "pass efi_runtime on CPUs 0-1");
        check(&KNOB, &mask("f"), "fail medium efi=runtime; efi_runtime on CPUs 0-3");
        check(&KNOB, &mask("x"), "unknown");
        check(
            &KNOB,
            &format!("{}\n--cpus 0-3", mask("3")),
            "fail medium efi=runtime; efi_runtime on CPUs 0-1",
        );
    }
}
