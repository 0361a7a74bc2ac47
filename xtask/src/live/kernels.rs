//! The kernels that onbeat was run on, and what held there: the page `docs/kernels.md`.
//!
//! A row is written by who ran it: what was not run is not in it.

use std::fmt::Write as _;

/// A kernel on an architecture, as far as it was run.
struct TriedKernel {
    /// The machine of [`super::machine::MACHINES`] that boots it; empty where none does.
    machine: &'static str,
    kernel: &'static str,
    arch: &'static str,
    ran: &'static str,
    works: &'static str,
    /// Refusals of onbeat there, and parts that it skips, with the reason.
    refused: &'static str,
}

const WHOLE: &str = "the lab's checks";
const BOARD: &str = "measuring, probing, hunting, watching, capturing, auditing, tuning, isolating";
const TRACERS: &str = "`kernel-tracing-support` fails: no timerlat, osnoise and hwlat";
const OLD: &str = "`fair-server`, `ext-server` and `sched-ext` do not apply: the throttle is that of \
                   real-time tasks; `cache-aware-balancing` and `damon-monitoring` find nothing built \
                   in";
const NEW: &str = "`rt-throttling` passes as the kernel sets it; `laptop-mode` does not apply beyond 0; \
                   `preempt=none` and `voluntary` are named as words without effect";

const TRIED: &[TriedKernel] = &[
    TriedKernel {
        machine: "6.1-rt",
        kernel: "6.1 PREEMPT_RT",
        arch: "x86-64",
        ran: WHOLE,
        works: BOARD,
        refused: OLD,
    },
    TriedKernel {
        machine: "6.12-rt",
        kernel: "6.12 PREEMPT_RT",
        arch: "x86-64",
        ran: WHOLE,
        works: BOARD,
        refused: "fair servers of isolated CPUs: set before the CPUs are set apart, for the kernel warns \
                  otherwise",
    },
    TriedKernel {
        machine: "6.12",
        kernel: "6.12",
        arch: "x86-64",
        ran: WHOLE,
        works: BOARD,
        refused: TRACERS,
    },
    TriedKernel {
        machine: "7.2-rt",
        kernel: "7.2 PREEMPT_RT",
        arch: "x86-64",
        ran: "booted; its checks did not pass under this emulator",
        works: "not known from there",
        refused: "not known from there",
    },
    TriedKernel {
        machine: "7.3-rt",
        kernel: "7.3 PREEMPT_RT",
        arch: "x86-64",
        ran: WHOLE,
        works: BOARD,
        refused: NEW,
    },
    TriedKernel { machine: "7.3", kernel: "7.3", arch: "x86-64", ran: WHOLE, works: BOARD, refused: TRACERS },
    TriedKernel {
        machine: "arm64",
        kernel: "6.12",
        arch: "arm64",
        ran: "the checks of measuring and capturing; a captured machine, recorded pages",
        works: "`measure`, `capture`, `audit`",
        refused: "rules of x86 do not apply (TSC, machine checks, turbo, firmware updates)",
    },
    TriedKernel {
        machine: "",
        kernel: "7.3 and 7.3 PREEMPT_RT",
        arch: "arm64",
        ran: "booted without onbeat; its files were audited",
        works: "`audit`",
        refused: "as above; HRTICK is off, for HRTIMER_REARM_DEFERRED is not built",
    },
    TriedKernel {
        machine: "",
        kernel: "7.2",
        arch: "riscv64",
        ran: "booted without onbeat; its files were audited",
        works: "`audit`",
        refused: "rules of x86 do not apply; onbeat itself never ran there",
    },
];

const HEAD: &str = "# Kernels

What onbeat was run on, all of it Debian's builds under QEMU's emulation.
None of these rows was seen on metal.
What a kernel lacks is found at run time, never by its version, except where a capture has nothing else.
`onbeat audit` tells what yours lacks, and `onbeat hunt` says which events it records with.

";
const COLUMNS: &str = "kernel | architecture | lab's machine | what was run | what works";
const FOOT: &str = "
The lab's checks are those of `cargo xtask live --all` (`lab/README.md`): what is measured, captured and
watched there, faults of known cause, settings changed and put back.
The table is in `xtask/src/live/kernels.rs`; `cargo xtask docs` writes this page.
";

/// The page.
pub fn markdown() -> String {
    let mut page = format!("{HEAD}| {COLUMNS} | refused or skipped, and why | on metal |\n|-|-|-|-|-|-|-|\n");
    for row in TRIED {
        let TriedKernel { machine, kernel, arch, ran, works, refused } = row;
        let machine = if machine.is_empty() { "none" } else { machine };
        let _ = writeln!(page, "| {kernel} | {arch} | {machine} | {ran} | {works} | {refused} | no |");
    }
    page + FOOT
}

#[cfg(test)]
mod tests {
    use super::super::machine::MACHINES;
    use super::*;

    #[test]
    fn each_machine_has_one_row() {
        let mut named: Vec<&str> =
            TRIED.iter().map(|row| row.machine).filter(|name| !name.is_empty()).collect();
        let mut machines: Vec<&str> = MACHINES.iter().map(|machine| machine.name).collect();
        named.sort_unstable();
        machines.sort_unstable();
        assert_eq!(named, machines);
    }
}
