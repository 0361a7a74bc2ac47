//! Random numbers that the kernel asks the firmware for.

use super::sources::HW_RANDOM;
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::truncate;
use facts::line::{parse_line, parse_strings, parse_words};
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "firmware-random",
    title: "random numbers from firmware",
    description: "The kernel thread hwrng reads the generator in rng_current about once a minute, and so do \
                  programs that read /dev/hwrng. For OP-TEE, the Arm firmware (smccc_trng) and a TPM, each \
                  read is a firmware call or a command to another chip on a slow bus. The same is true of \
                  the generators of some chips (Exynos850, MediaTek MT7981, MT7987 and MT7988), which only \
                  the firmware can access.",
    rationale: "while the secure world runs, the CPU takes no Linux interrupts; a firmware TPM stops more \
                than one CPU, and a TPM on a bus makes the reading CPU wait",
    detection: "The name in rng_current, and the type of its device, or of the board if the device's name \
                does not show the driver; before 5.18 rng_quality as well: with 0 older kernels did not read \
                the generator themselves, newer ones do, and credit no entropy. Generators with registers \
                (of the chip or the processor) and virtio, which asks the host, pass. Readers of /dev/hwrng \
                are not detected.",
    side_effects: "The kernel's generator is then seeded only by interrupts and the processor's random \
                   instruction: enough with such an instruction, and fewer sources on boards without one.",
    wanted: "a generator of the chip, or none",
    fix: || {
        Remedy::advice(
            AdviceReason::Kernel,
            "boot a kernel without its driver, or keep the driver's module from being loaded; for \
             OP-TEE, give the chip's generator to Linux and build OP-TEE with its PRNG",
        )
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Build,
    unsettable: "the sources of the kernel's random numbers are a security decision",
    sources: &[
        Source { title: "kernel: support for hardware random number generators", url: HW_RANDOM },
        Source {
            title: "Texas Instruments: RT Linux performance guide, spikes by OP-TEE's generator",
            url: "https://github.com/TexasInstruments/processor-sdk-doc/pull/508",
        },
        Source {
            title: "kernel: tpm, the generators of AMD's firmware TPMs switched off",
            url: "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/commit/?id=554b841d4703",
        },
    ],
    cures: &[SliceKind::Unexplained, SliceKind::PreemptOff],
    reads: &[CURRENT, QUALITY, AVAILABLE, KINDS, BOARD],
    facts: &["/proc/sys/kernel/osrelease", "/sys/devices/system/cpu/online"],
    judge,
    examples: Examples {
        fires: "/sys/class/misc/hw_random/rng_current: optee-rng
                /sys/class/misc/hw_random/rng_quality: 1024",
        silent: "/sys/class/misc/hw_random/rng_current: iproc-rng200
                 /sys/class/misc/hw_random/rng_quality: 1024",
        unknown: "/sys/class/misc/hw_random/rng_current refused",
    },
    ..Knob::DEFAULT
};

const CURRENT: &str = "/sys/class/misc/hw_random/rng_current";
const QUALITY: &str = "/sys/class/misc/hw_random/rng_quality";
const AVAILABLE: &str = "/sys/class/misc/hw_random/rng_available";
/// Kinds of the devices that are called by their address and the name `rng`.
const KINDS: &str = "/sys/bus/platform/devices/*.rng/modalias";
const BOARD: &str = "/proc/device-tree/compatible";

/// Chips whose generator is read by a call of the firmware (exynos-trng.c and mtk-rng.c of
/// drivers/char/hw_random).
const BY_CALL: &[&str] =
    &["samsung,exynos850", "mediatek,mt7981", "mediatek,mt7987", "mediatek,mt7988", MT7986];

/// Chip whose driver asks the firmware if that keeps the registers to itself.
const MT7986: &str = "mediatek,mt7986";

/// The one that answers for a generator.
fn answerer(machine: &MachineView, name: &str) -> Result<Option<(&'static str, Severity)>, Judgement> {
    let (None, Some(_)) = (firmware(name), name.strip_suffix(".rng")) else { return Ok(firmware(name)) };
    let kinds = machine.each(KINDS, parse_line)?;
    let kind = kinds.into_iter().find(|(names, _)| name.strip_suffix(".rng") == Some(names[0].as_str()));
    let chips: Vec<String> = match kind {
        Some((_, kind)) => kind.split('C').skip(1).map(str::to_owned).collect(),
        None => machine.parsed(BOARD, parse_strings)?.unwrap_or_default(),
    };
    let Some(chip) = BY_CALL.iter().find(|known| chips.iter().any(|chip| chip.starts_with(*known))) else {
        return Ok(None);
    };
    // 6.12 reads the registers of MediaTek's; distributions for routers have drivers of their own.
    if *chip == MT7986 || chip.starts_with("mediatek") && machine.series()? < (7, 3) {
        return Err(Judgement::unknown(format!(
            "only the kernel's log shows whether the driver reads registers of {chip} or calls the firmware"
        )));
    }
    Ok(Some(("the firmware answers", Severity::Medium)))
}

/// The one that answers, and the severity of that; none for registers, and for virtio.
///
/// Names as in drivers/char/hw_random/{optee-rng,arm_smccc_trng,omap3-rom-rng}.c and
/// drivers/char/tpm/tpm-chip.c.
fn firmware(name: &str) -> Option<(&'static str, Severity)> {
    match name {
        "optee-rng" | "omap3-rom" => Some(("the secure world answers", Severity::Medium)),
        "smccc_trng" => Some(("the firmware answers", Severity::Medium)),
        _ if name.starts_with("tpm-rng-") => Some(("the TPM answers", Severity::Low)),
        _ => None,
    }
}

fn judge(machine: &MachineView) -> Judged {
    // Without the core of these drivers there is no such file, which counts only where sysfs shows.
    machine.known(&machine.facts().online, "/sys/devices/system/cpu/online")?;
    let Some(current) = machine.parsed(CURRENT, parse_line)? else {
        return Ok(Judgement::pass("the kernel has no generator in use"));
    };
    let generator = truncate(&current);
    let Some((who, severity)) = answerer(machine, &current)? else {
        return Ok(Judgement::pass(generator));
    };
    // Kernels before 5.16 have no such file; from 5.18 on the thread asks with any quality, and
    // their parameter current_quality does not stop it (`hwrng_fillfn()`).
    if machine.series()? < (5, 18) && machine.number_if_present(QUALITY)? == Some(0) {
        return Ok(Judgement::pass(format!("{generator}, which the kernel does not read (quality 0)")));
    }
    let judged = Judgement::fail(format!("{generator}: {who}")).severity(severity);
    let others = machine.parsed(AVAILABLE, parse_words)?.unwrap_or_default();
    let other = others.iter().find(|name| *name != &current && answerer(machine, name) == Ok(None));
    Ok(match other {
        Some(other) => judged.fix(Change::write(CURRENT, other)),
        // `rng_current_store()` of 6.1 does not know the word.
        None if machine.series()? >= (6, 12) => {
            let words = format!("echo none >{CURRENT}");
            judged.fix(Remedy::advice(AdviceReason::Choice, words).with_persistence(Persistence::Runtime))
        }
        None => judged,
    })
}

#[cfg(test)]
mod tests {
    use super::{AVAILABLE, BOARD, CURRENT, KNOB, QUALITY};
    use crate::fixture::{Machine, check};

    #[test]
    fn firmware_that_answers_is_told_from_registers() {
        let named = |name: &str| format!("{CURRENT}: {name}\n{QUALITY}: 1024");
        check(&KNOB, "", "pass the kernel has no generator in use");
        check(&KNOB, &named("optee-rng"), "fail medium optee-rng: the secure world answers");
        check(&KNOB, &named("omap3-rom"), "fail medium omap3-rom: the secure world answers");
        check(&KNOB, &named("smccc_trng"), "fail medium smccc_trng: the firmware answers");
        check(&KNOB, &named("tpm-rng-0"), "fail low tpm-rng-0: the TPM answers");
        for registers in ["3f104000.rng", "bcm2835-rng", "virtio_rng.0", "none", "ccp-1-rng", "exynos"] {
            check(&KNOB, &named(registers), &format!("pass {registers}"));
        }
        let unasked = format!("{CURRENT}: tpm-rng-0\n{QUALITY}: 0");
        check(&KNOB, &unasked, "fail low tpm-rng-0: the TPM answers");
        let old = "/proc/sys/kernel/osrelease: 5.17.1\n";
        let pass = "pass tpm-rng-0, which the kernel does not read (quality 0)";
        check(&KNOB, &format!("{old}{unasked}"), pass);
        check(&KNOB, &format!("{CURRENT}: tpm-rng-0"), "fail low tpm-rng-0: the TPM answers");
        check(&KNOB, &format!("{old}{CURRENT}: tpm-rng-0\n{QUALITY} refused"), "unknown");
        check(&KNOB, "/sys/devices/system/cpu/online refused\n--cpus 2", "unknown");
    }

    #[test]
    fn a_device_is_judged_by_its_kind() {
        let on = |board: &str| format!("{CURRENT}: 1020f000.rng\n{BOARD}: {board}\n");
        let fails = "fail medium 1020f000.rng: the firmware answers";
        let new = "/proc/sys/kernel/osrelease: 7.3.1\n";
        let one = on("openwrt,one\0mediatek,mt7981b");
        check(&KNOB, &format!("{new}{one}"), fails);
        check(&KNOB, &one, "unknown");
        check(&KNOB, &format!("{new}{}", on("acelink,ew-7886cax\0mediatek,mt7986a")), "unknown");
        check(&KNOB, &on("winlink,e850-96\0samsung,exynos850"), fails);
        check(&KNOB, &on("samsung,exynos5250"), "pass 1020f000.rng");
        let kind = |kind: &str| {
            format!("/sys/bus/platform/devices/1020f000.rng/modalias: of:NrngT(null)C{kind}\n{}", on("a,b"))
        };
        check(&KNOB, &kind("google,gs101-trngCsamsung,exynos850-trng"), fails);
        check(&KNOB, &kind("samsung,exynos5250-trng"), "pass 1020f000.rng");
    }

    #[test]
    fn another_generator_takes_its_place() {
        let fix = |available: &str| {
            let mut machine = Machine::base();
            machine.edit(&format!("{CURRENT}: optee-rng\n{QUALITY}: 1000\n{AVAILABLE}: {available}"));
            machine.finding(&KNOB).fix
        };
        assert!(fix("optee-rng tpm-rng-0 ks-sa-rng").starts_with("echo ks-sa-rng >"));
        assert!(fix("optee-rng").starts_with("echo none >"));
        let mut machine = Machine::base();
        machine.edit(&format!("{CURRENT}: optee-rng\n/proc/sys/kernel/osrelease: 6.1.9"));
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.starts_with("boot a kernel without its driver"), "{fix}");
    }
}
