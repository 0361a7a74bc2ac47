//! The quality of the clock that time is measured with.
//!
//! Source: Documentation/timers/timekeeping.rst, and the `vdso_clock_mode` that each driver sets:
//! only such a clock is read without a system call.

/// Suitability of a clocksource for measuring latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quality {
    /// Read in user mode, in tens of nanoseconds.
    Fast,
    /// Each reading is a system call, often with a slow access to a device: about 1 us, added to
    /// each sample.
    Slow,
    /// Advances with the timer tick: latencies under some milliseconds are invisible.
    Coarse,
    /// Not known to this program, or dependent on conditions that cannot be seen from here.
    Unknown,
}

/// Timers of chips, which no vDSO reads: those of drivers/clocksource without a `vdso_clock_mode`,
/// as registered by `clocksource_mmio_init()`.
const DEVICES: &[&str] = &[
    "32k_counter",
    "FTTMR010-TIMER2",
    "OSTS",
    "arm_global_timer",
    "armada_370_xp_clocksource",
    "clint_clocksource",
    "clksrc-st-lpc",
    "clps711x-clocksource",
    "dbx500-prcmu-timer",
    "dg_timer",
    "dmtimer",
    "fsl-ftm",
    "gx6605s",
    "imx-tpm",
    "ingenic-ost",
    "ingenic-timer",
    "jcore_pit_cs",
    "lpc3220 timer",
    "mct-frc",
    "mtu_0",
    "mxc_timer1",
    "mxc_timer2",
    "mxs_timer",
    "npcm7xx-timer1",
    "numachip2",
    "orion_clocksource",
    "oscr0",
    "rda-timer",
    "samsung_clocksource_timer",
    "timer1",
    "timer2",
    "timer4",
    "timer_us",
    "ttc_clocksource",
    "vf-pit",
    "vt8500_timer",
];

/// Quality of a clocksource by its name in `current_clocksource`.
pub fn quality(name: &str) -> Quality {
    match name {
        // x86 and its hypervisors; Arm; RISC-V; POWER; s390; LoongArch; MIPS; SPARC
        "tsc"
        | "tsc-early"
        | "kvm-clock"
        | "hyperv_clocksource_tsc_page"
        | "arch_sys_counter"
        | "riscv_clocksource"
        | "timebase"
        | "tod"
        | "Constant"
        | "GIC"
        | "MIPS"
        | "stick"
        | "tick" => Quality::Fast,
        "hpet" | "acpi_pm" | "pit" | "hyperv_clocksource_msr" | "arch_mem_counter" | "scx200_hrt" => {
            Quality::Slow
        }
        _ if DEVICES.contains(&name) => Quality::Slow,
        // Drivers that use the name of the device tree's node: bcm2835_timer.c, timer-mediatek.c,
        // timer-stm32.c, timer-sun5i.c.
        "timer" => Quality::Slow,
        _ if name.starts_with("timer@") => Quality::Slow,
        "jiffies" | "refined-jiffies" => Quality::Coarse,
        // "xen" is read in user mode only if the host's counter is stable.
        _ => Quality::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_by_name() {
        for (name, expected) in [
            ("tsc", Quality::Fast),
            ("arch_sys_counter", Quality::Fast),
            ("hpet", Quality::Slow),
            ("mxc_timer1", Quality::Slow),
            ("32k_counter", Quality::Slow),
            ("ttc_clocksource", Quality::Slow),
            ("dmtimer", Quality::Slow),
            ("timer@40000000", Quality::Slow),
            ("refined-jiffies", Quality::Coarse),
            ("xen", Quality::Unknown),
            ("", Quality::Unknown),
        ] {
            assert_eq!(quality(name), expected, "{name}");
        }
    }
}
