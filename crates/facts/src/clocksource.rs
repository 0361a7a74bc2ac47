//! The quality of the clock that time is measured with.
//!
//! Source: Documentation/timers/timekeeping.rst, and the `vdso_clock_mode` that each driver sets:
//! only such a clock is read without a system call.

/// What a clocksource means for measuring latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quality {
    /// Read in user mode, in tens of nanoseconds.
    Fast,
    /// Each reading is a system call, often with a slow access to a device: about 1 us, added to
    /// each sample.
    Slow,
    /// Advances with the timer tick: latencies under some milliseconds are invisible.
    Coarse,
    /// Not known to this program, or dependent on what cannot be seen from here.
    Unknown,
}

/// The quality of a clocksource by its name in `current_clocksource`.
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
        // Timers of Arm chips that no vDSO reads (drivers/clocksource, `clocksource_mmio_init()`).
        "mxc_timer1" | "mxc_timer2" | "imx-tpm" | "timer1" | "timer2" | "timer_us" | "orion_clocksource"
        | "fsl-ftm" | "32k_counter" => Quality::Slow,
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
            ("refined-jiffies", Quality::Coarse),
            ("xen", Quality::Unknown),
            ("", Quality::Unknown),
        ] {
            assert_eq!(quality(name), expected, "{name}");
        }
    }
}
