//! The machines, and their kernels: fetched through Debian's metapackages, never by a fixed
//! version.

use std::path::{Path, PathBuf};

use crate::debian::{Archive, keyed, only_file};
use crate::tools::{Result, read, target};

/// A kernel and the emulator it runs under.
pub struct Machine {
    /// Name in the log.
    pub name: &'static str,
    /// Rust's name of the architecture.
    pub arch: &'static str,
    /// Debian's.
    pub debian_arch: &'static str,
    /// Debian's metapackage.
    pub metapackage: &'static str,
    /// The release of Debian that has it; empty for that of the building machine.
    pub suite: &'static str,
    /// The emulator.
    pub emulator: &'static str,
    /// The package that brings it.
    pub package: &'static str,
    /// The emulated board, processor and console.
    pub board: &'static [&'static str],
    /// Emulation mode; one thread for machines that patch their own text often.
    pub accel: &'static str,
    /// Its CPUs, in the syntax of the emulator's `-smp`.
    pub smp: &'static str,
    /// Its memory, in the syntax of the emulator's `-m`.
    pub memory: &'static str,
    /// More of the emulator's arguments: devices, memory nodes.
    pub devices: &'static [&'static str],
    /// The kernel's name of the console.
    pub console: &'static str,
    /// The kernel's command line besides the console, the panic and the port.
    pub words: &'static str,
    /// The device in the guest that results go to.
    pub port: &'static str,
    /// True if the emulator gets a real-time priority, because latencies are judged. With more
    /// spinning virtual CPUs than the host has CPUs it would starve itself.
    pub urgent: bool,
    /// True for a PREEMPT_RT kernel.
    pub rt: bool,
    /// True if it is booted without `--all`.
    pub first: bool,
    /// True if it is booted without `--all` for measuring and capturing alone.
    pub brief: bool,
    /// True if only measuring is checked.
    pub measure_only: bool,
}

/// A virtio port: no terminal between the ends, and quick.
pub const VIRTIO: &str = "/dev/vport0p1";
/// The board's second serial port.
pub const SERIAL: &str = "/dev/ttyS1";

/// Defaults of the x86 machines.
pub const X86: Machine = Machine {
    name: "",
    arch: "x86_64",
    debian_arch: "amd64",
    metapackage: "",
    suite: "",
    emulator: "qemu-system-x86_64",
    package: "qemu-system-x86",
    board: &["-cpu", "max"],
    accel: "tcg,thread=multi",
    smp: "2",
    memory: "1G",
    devices: &[],
    console: "ttyS0",
    words: "quiet",
    port: VIRTIO,
    urgent: true,
    rt: false,
    first: false,
    brief: false,
    measure_only: false,
};

/// The newest PREEMPT_RT kernel of Debian 12.
pub const RT: Machine = Machine { metapackage: "linux-image-6.12-rt-amd64", rt: true, ..X86 };
/// Debian 12's own kernel. There the virtio port's driver is a module; the second serial port's
/// never is.
pub const OLD: Machine = Machine { metapackage: "linux-image-amd64", port: SERIAL, ..X86 };
/// The same with PREEMPT_RT.
pub const OLD_RT: Machine = Machine { metapackage: "linux-image-rt-amd64", rt: true, ..OLD };
/// The newest PREEMPT_RT kernel for Debian 13.
pub const NEW_RT: Machine = Machine { metapackage: "linux-image-rt-amd64", rt: true, ..NEW };
/// The newest kernel for Debian 13.
pub const NEW: Machine = Machine { metapackage: "linux-image-amd64", suite: "trixie-backports", ..X86 };
/// The other architecture.
pub const ARM: Machine = Machine {
    arch: "aarch64",
    debian_arch: "arm64",
    metapackage: "linux-image-6.12-arm64",
    emulator: "qemu-system-aarch64",
    package: "qemu-system-arm",
    board: &["-machine", "virt", "-cpu", "cortex-a57"],
    console: "ttyAMA0",
    ..X86
};
/// RISC-V, which Debian has from 13 on.
pub const RISCV: Machine = Machine {
    arch: "riscv64",
    debian_arch: "riscv64",
    metapackage: "linux-image-riscv64",
    suite: "trixie",
    emulator: "qemu-system-riscv64",
    package: "qemu-system-misc",
    board: &["-machine", "virt"],
    ..X86
};

/// Every machine, the gate's first.
pub const MACHINES: &[Machine] = &[
    Machine { name: "6.12-rt", first: true, ..RT },
    Machine { name: "6.12", metapackage: "linux-image-6.12-amd64", ..X86 },
    Machine { name: "6.1-rt", ..OLD_RT },
    Machine { name: "7.3-rt", brief: true, ..NEW_RT },
    Machine { name: "7.3", ..NEW },
    Machine { name: "7.2-rt", suite: "sid", ..NEW_RT },
    Machine { name: "arm64", measure_only: true, ..ARM },
    Machine { name: "riscv64", ..RISCV },
];

impl Machine {
    /// Debian's packages for it.
    pub fn archive(&self) -> Result<Archive> {
        Archive::open(self.debian_arch, self.suite)
    }

    /// Name of its kernel below `target/lab`: metapackages of two releases may share a name.
    pub fn kernel_key(&self) -> String {
        keyed(self.metapackage, self.suite)
    }

    /// The name of the kernel's image in its package: RISC-V's is not compressed.
    fn image(&self) -> &'static str {
        if self.arch == "riscv64" { "vmlinux" } else { "vmlinuz" }
    }

    /// True if its kernel is older than 7.0, by the release of Debian that has it.
    pub fn is_before_7(&self) -> bool {
        ["", "trixie"].contains(&self.suite)
    }

    /// True if its kernel is Debian 12's own, 6.1.
    pub fn is_old(&self) -> bool {
        self.suite.is_empty() && [OLD.metapackage, OLD_RT.metapackage].contains(&self.metapackage)
    }
}

/// A kernel as Debian ships it.
pub struct KernelImage {
    /// Image to boot.
    pub image: PathBuf,
    /// Its release by `uname -r`.
    pub release: String,
    /// Its configuration: the path in the kernel's packages, and the text.
    pub config: (String, Vec<u8>),
}

/// The machine's kernel, fetched once.
pub fn kernel(machine: &Machine) -> Result<KernelImage> {
    let dir = target(&format!("lab/kernels/{}", machine.kernel_key()))?;
    if only_file(&dir, "config-").is_err() {
        fetch(machine, &dir)?;
    }
    let config = only_file(&dir, "config-")?;
    let name = config.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let release = name.trim_start_matches("config-").to_string();
    let place = if machine.is_before_7() {
        format!("boot/{name}")
    } else {
        format!("usr/lib/modules/{release}/config")
    };
    Ok(KernelImage {
        image: only_file(&dir, &format!("{}-", machine.image()))?,
        release,
        config: (place, read(&config)?),
    })
}

fn fetch(machine: &Machine, dir: &Path) -> Result<()> {
    let scratch = target(&format!("lab/unpack-{}", machine.kernel_key()))?;
    machine.archive()?.unpack_kernel(machine.metapackage, &scratch)?;
    // The configuration last: with it the kernel is whole.
    for name in [machine.image(), "config"] {
        let (found, release) = unpacked(&scratch, name)?;
        let kept = dir.join(format!("{name}-{release}"));
        std::fs::rename(&found, &kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    }
    std::fs::remove_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))
}

/// A file of an unpacked kernel, and its release: `boot/NAME-RELEASE`, from 7.x on
/// `usr/lib/modules/RELEASE/NAME`.
fn unpacked(root: &Path, name: &str) -> Result<(PathBuf, String)> {
    let named = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if let Ok(found) = only_file(&root.join("boot"), &format!("{name}-")) {
        let release = named(&found)[name.len() + 1..].to_string();
        return Ok((found, release));
    }
    let modules = only_file(&root.join("usr/lib/modules"), "")?;
    Ok((modules.join(name), named(&modules)))
}
