//! The length of the command line, which the kernel truncates without an error.

use super::sources::PARAMETERS;
use super::unsettable;
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "parameter-length",
    title: "length of the command line",
    description: "The kernel keeps a limited number of bytes of its command line and drops the rest: 2048 on \
                  x86, arm64 and POWER, 1024 on 32-bit Arm (and on riscv64 up to 6.12; 2048 in 7.3), 256 on \
                  some small ones.",
    rationale: "parameters beyond the limit have no effect, without a message; lists of isolated CPUs are \
                often at the end",
    detection: "The length of the line that the kernel kept, compared with the limit of its architecture. \
                Serial numbers and arguments after -- are not counted, so the line may be slightly longer. \
                Parameters of a boot configuration (bootconfig) appear in the line without using its space: \
                with one, a long line cannot be judged. Some boot loaders truncate earlier.",
    side_effects: "None: a shorter form has the same effect.",
    wanted: "well below the limit",
    fix: || Remedy::advice(AdviceReason::Choice,
        "write CPU lists as ranges, remove parameters without effect, or build parameters into the kernel \
         (CONFIG_CMDLINE)"),
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: unsettable::BOOT,
    sources: &[Source { title: "kernel: command line, last paragraph (COMMAND_LINE_SIZE)", url: PARAMETERS }],
    cures: &[SliceKind::Thread, SliceKind::TimerIrq, SliceKind::Irq],
    facts: &["/proc/cmdline", "/proc/sys/kernel/arch", "/proc/sys/kernel/osrelease"],
    judge,
    examples: Examples {
        fires: "/proc/sys/kernel/arch: xtensa
                /proc/cmdline: console=ttyS0,115200 root=/dev/mmcblk0p2 rootwait ro ip=192.168.1.2:192.168.1.1:192.168.1.1:255.255.255.0:board:eth0:off isolcpus=1 irqaffinity=0",
        silent: "/proc/sys/kernel/arch: x86_64",
        unknown: "/proc/cmdline refused",
    },
    ..Knob::DEFAULT
};

/// Free bytes below which the next list may not fit.
const SPARE: usize = 128;

fn judge(machine: &MachineView) -> Judged {
    let cmdline = machine.cmdline()?;
    let length = cmdline.text.len();
    let arch = machine.known(&machine.facts().machine, "/proc/sys/kernel/arch")?;
    let size: usize = match arch.as_str() {
        // arch/riscv/include/uapi/asm/setup.h of 6.1, 6.12, 7.2 and 7.3; between them it is one or
        // the other.
        "riscv64" => match machine.series()? {
            (7, 2..) | (8.., _) => 2048,
            (6, 1 | 12) => 1024,
            series if series > (6, 12) && length + SPARE < 1024 => 1024,
            _ => {
                return Err(Judgement::unknown(
                    "the maximum length of this kernel's command line is not \
                                                known",
                ));
            }
        },
        "x86_64" | "i386" | "i486" | "i586" | "i686" | "aarch64" | "ppc64" | "ppc64le" | "ppc"
        | "sparc64" | "armv8l" => 2048,
        arm if arm.starts_with("armv") => 1024,
        "mips" | "mips64" => 4096,
        "alpha" | "arc" | "m68k" | "microblaze" | "xtensa" => 256,
        _ => {
            return Err(Judgement::unknown("on this architecture the maximum length depends on the kernel"));
        }
    };
    let value = format!("{length} of {size} bytes");
    // The last byte is the end of the string.
    let spare = size.saturating_sub(length + 1);
    if spare < SPARE && cmdline.has("bootconfig") {
        return Err(Judgement::unknown(
            "the part of the line that comes from the boot configuration is not known",
        ));
    }
    Ok(match spare {
        0 => Judgement::fail(value)
            .severity(Severity::High)
            .because("it has the maximum length: the rest, if any, is lost"),
        spare if spare < SPARE => Judgement::fail(value),
        _ => Judgement::pass(value),
    })
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn the_line_is_held_against_what_fits() {
        let line = |arch: &str, length: usize| {
            format!("/proc/sys/kernel/arch: {arch}\n/proc/cmdline: a={}", "b".repeat(length - 2))
        };
        check(&KNOB, &line("x86_64", 900), "pass 900 of 2048 bytes");
        check(&KNOB, &line("x86_64", 1919), "pass 1919 of 2048 bytes");
        check(&KNOB, &line("x86_64", 1920), "fail low 1920 of 2048 bytes");
        check(&KNOB, &line("x86_64", 2047), "fail high 2047 of 2048 bytes");
        check(&KNOB, &line("aarch64", 3000), "fail high 3000 of 2048 bytes");
        check(&KNOB, &line("armv7l", 1000), "fail low 1000 of 1024 bytes");
        let riscv = |release: &str, length: usize| {
            format!("{}\n/proc/sys/kernel/osrelease: {release}", line("riscv64", length))
        };
        check(&KNOB, &riscv("6.12.5", 1000), "fail low 1000 of 1024 bytes");
        check(&KNOB, &riscv("7.3.4", 1000), "pass 1000 of 2048 bytes");
        check(&KNOB, &riscv("6.18.1", 90), "pass 90 of 1024 bytes");
        check(&KNOB, &riscv("6.18.1", 1500), "unknown");
        check(&KNOB, &riscv("6.1.192", 90), "pass 90 of 1024 bytes");
        check(&KNOB, &riscv("7.2.13", 1500), "pass 1500 of 2048 bytes");
        check(&KNOB, &format!("{}\ncmdline + bootconfig", line("x86_64", 3000)), "unknown");
        check(&KNOB, &format!("{}\ncmdline + bootconfig", line("x86_64", 300)), "pass");
        check(&KNOB, "/proc/sys/kernel/arch refused", "unknown");
    }
}
