//! The machines, and their kernels: fetched through Debian's metapackages, never by a fixed version.

use std::path::PathBuf;

use crate::debian::{Archive, only_file};
use crate::tools::{Result, target};

/// A kernel and the emulator it runs under.
pub struct Machine {
    /// How the log calls it.
    pub name: &'static str,
    /// Rust's name of the architecture.
    pub arch: &'static str,
    /// Debian's.
    pub debian_arch: &'static str,
    /// Debian's metapackage.
    pub metapackage: &'static str,
    /// The emulator.
    pub emulator: &'static str,
    /// The package that brings it.
    pub package: &'static str,
    /// The emulated board, processor and console.
    pub board: &'static [&'static str],
    /// The kernel's name of the console.
    pub console: &'static str,
    /// Whether the kernel is PREEMPT_RT.
    pub rt: bool,
    /// Whether it is booted without `--all`.
    pub first: bool,
    /// Whether only measuring is checked.
    pub measure_only: bool,
}

const X86: Machine = Machine {
    name: "",
    arch: "x86_64",
    debian_arch: "amd64",
    metapackage: "",
    emulator: "qemu-system-x86_64",
    package: "qemu-system-x86",
    board: &["-cpu", "max"],
    console: "ttyS0",
    rt: false,
    first: false,
    measure_only: false,
};

/// Every machine, the gate's first.
pub const MACHINES: &[Machine] = &[
    Machine { name: "6.12-rt", metapackage: "linux-image-6.12-rt-amd64", rt: true, first: true, ..X86 },
    Machine { name: "6.12", metapackage: "linux-image-6.12-amd64", ..X86 },
    Machine { name: "6.1-rt", metapackage: "linux-image-rt-amd64", rt: true, ..X86 },
    Machine {
        name: "arm64",
        arch: "aarch64",
        debian_arch: "arm64",
        metapackage: "linux-image-6.12-arm64",
        emulator: "qemu-system-aarch64",
        package: "qemu-system-arm",
        board: &["-machine", "virt", "-cpu", "cortex-a57"],
        console: "ttyAMA0",
        measure_only: true,
        ..X86
    },
];

/// The machine's kernel image, fetched once.
pub fn kernel(machine: &Machine) -> Result<PathBuf> {
    let dir = target(&format!("lab/kernels/{}", machine.metapackage))?;
    let kept = dir.join("vmlinuz");
    if kept.exists() {
        return Ok(kept);
    }
    let archive = Archive::open(machine.debian_arch)?;
    let package = archive.resolve(machine.metapackage)?;
    let scratch = target(&format!("lab/unpack-{}", machine.metapackage))?;
    archive.unpack(&package, &scratch)?;
    let found = only_file(&scratch.join("boot"), "vmlinuz-")?;
    let moved = std::fs::rename(&found, &kept).and_then(|()| std::fs::remove_dir_all(&scratch));
    moved.map_err(|error| format!("{}: {error}", kept.display()))?;
    Ok(kept)
}
