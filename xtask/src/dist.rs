//! Static binaries, `target/dist/onbeat-ARCH`, and `onbeat-push-ARCH` of this machine's
//! architecture. Their symbols are in a file of the same name with `.debug` at its end.
//!
//! musl needs no C compiler for `onbeat`: the target has its start files and rustc its own linker,
//! so a foreign architecture needs no cross toolchain. For an architecture without musl in Rust,
//! Debian's cross compiler links glibc.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::debian::{self, Need};
use crate::elf;
use crate::tools::{Result, Tool, read, root, target};

/// Architectures of boards, by Rust's names.
pub const ARCHES: [&str; 3] = ["x86_64", "aarch64", "riscv64"];

/// Build static binaries target/dist/onbeat-ARCH and onbeat-push-ARCH.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Build these only; the sender for a farm is built for this machine's architecture.
    #[arg(long, value_delimiter = ',', value_parser = ARCHES, value_name = "ARCH")]
    arch: Vec<String>,
}

/// Builds all possible architectures; fails if the machine's own is not.
pub fn run(args: &Args) -> Result<()> {
    let chosen = |arch: &str| args.arch.is_empty() || args.arch.iter().any(|name| name == arch);
    for arch in ARCHES.into_iter().filter(|arch| chosen(arch)) {
        match build(arch) {
            Ok(path) => println!("{}", path.display()),
            Err(why) if arch == std::env::consts::ARCH => return Err(why),
            Err(why) => println!("left out  onbeat-{arch} ({why})"),
        }
    }
    if !chosen(std::env::consts::ARCH) {
        return Ok(());
    }
    match build_push() {
        Ok(path) => println!("{}", path.display()),
        Err(why) => println!("left out  onbeat-push ({why})"),
    }
    Ok(())
}

/// A program that is built static.
struct StaticProgram {
    name: &'static str,
    profile: &'static str,
    /// True if a part of it is in C.
    has_c: bool,
    /// Flags of the compiler.
    compiled: &'static str,
    /// The level at which all crates are optimised together: only from 2 on are loops made of
    /// vector instructions, also those of crates that are built for speed.
    together: &'static str,
    /// Flags of rustc's own linker.
    linked: &'static str,
}

/// Its addresses are fixed, so that tables of texts need no relocation, which would write to most
/// of their pages at a start. They prevent the kernel from mapping a large page of the page cache
/// as one: 2 MiB instead of 0.5. A panic ends it, so tables for unwinding need no index and are
/// removed. Function names show which crate instantiated each generic one (`sizes`).
const ONBEAT: StaticProgram = StaticProgram {
    name: "onbeat",
    profile: "dist",
    has_c: false,
    compiled: "-C relocation-model=static -C symbol-mangling-version=v0",
    together: "opt-level=2",
    linked: "-C link-arg=--icf=all -C link-arg=--no-eh-frame-hdr -C link-arg=--image-base=0x210000",
};
/// Identical functions are merged, and the index for unwinding, unused because a panic ends the
/// program, is omitted: 55 kB of 2.5 MB. Relative relocations are packed as bits (musl 1.2.4 reads
/// these): 80 kB.
const PUSH: StaticProgram = StaticProgram {
    name: "onbeat-push",
    profile: "push",
    has_c: true,
    compiled: "",
    together: "opt-level=z",
    linked: "-C link-arg=--icf=all -C link-arg=--no-eh-frame-hdr -C link-arg=--pack-dyn-relocs=relr",
};

/// The static binary of an architecture.
pub fn build(arch: &str) -> Result<PathBuf> {
    ONBEAT.build(arch)
}

/// The sender for a farm, for this machine's architecture; needs a C compiler.
pub fn build_push() -> Result<PathBuf> {
    PUSH.build(std::env::consts::ARCH)
}

/// Path of the binary after its build.
pub fn output_path(arch: &str) -> Result<PathBuf> {
    ONBEAT.output_path(arch)
}

impl StaticProgram {
    fn build(&self, arch: &str) -> Result<PathBuf> {
        let triple = rust_target(arch, "musl");
        let built = match add_target(&triple) {
            Ok(()) => self.build_musl(&triple)?,
            Err(why) if arch != std::env::consts::ARCH && CrossCompiler::of(arch).is_none() => {
                return Err(why);
            }
            Err(why) => {
                println!("  no musl target ({why}); making a static glibc build instead");
                self.build_glibc(arch)?
            }
        };
        let whole = read(&built)?;
        let stripped = elf::stripped(&whole).map_err(|why| format!("{}: {why}", built.display()))?;
        let kept = self.output_path(arch)?;
        replace(&symbols_of(&kept), &whole)?;
        replace(&kept, &stripped)?;
        println!("  {}: static, {} KiB", kept.display(), stripped.len() / 1024);
        Ok(kept)
    }

    fn output_path(&self, arch: &str) -> Result<PathBuf> {
        Ok(target("dist")?.join(format!("{}-{arch}", self.name)))
    }

    fn build_musl(&self, triple: &str) -> Result<PathBuf> {
        let of_target = format!("CARGO_TARGET_{}", variable_of(triple));
        let (mut build, mut flags) = (self.cargo(triple), format!("{}{}", self.compiled, remapped()?));
        // A distribution's rustc may lack it; then the machine's linker handles its own
        // architecture.
        if has_own_linker()? {
            build = build.env(&format!("{of_target}_LINKER"), "rust-lld");
            flags = format!("{flags} {}", self.linked);
        }
        build = build.env(&format!("{of_target}_RUSTFLAGS"), flags);
        // Its C code needs no C library, so the machine's compiler works for musl too.
        if self.has_c {
            build = build.env(&format!("CC_{}", triple.replace('-', "_")), "cc");
        }
        build.show()?;
        self.binary(triple)
    }

    fn build_glibc(&self, arch: &str) -> Result<PathBuf> {
        let triple = rust_target(arch, "gnu");
        let of_target = format!("CARGO_TARGET_{}", variable_of(&triple));
        let compiled = format!("{}{} -C target-feature=+crt-static", self.compiled, remapped()?);
        let mut build = self.cargo(&triple).env(&format!("{of_target}_RUSTFLAGS"), compiled);
        if let Some(compiler) = CrossCompiler::of(arch) {
            add_target(&triple)?;
            debian::ensure(&[Need { program: compiler.program, package: compiler.packages }])?;
            build = build.env(&format!("{of_target}_LINKER"), compiler.program);
        }
        build.show()?;
        self.binary(&triple)
    }

    fn cargo(&self, triple: &str) -> Tool {
        // Clippy, the gate's compiler, optimises less; incremental crates cannot be optimised
        // together.
        Tool::new("cargo")
            .env_remove("RUSTC_WORKSPACE_WRAPPER")
            .env_remove("CARGO_INCREMENTAL")
            .args(["rustc", "--quiet", "--profile", self.profile, "--package", self.name, "--bin", self.name])
            .args(["--target", triple, "--", "-C", self.together])
            .dir(&root())
    }

    fn binary(&self, triple: &str) -> Result<PathBuf> {
        Ok(target(&format!("{triple}/{}", self.profile))?.join(self.name))
    }
}

/// Linker of static glibc programs of a foreign architecture.
struct CrossCompiler {
    program: &'static str,
    /// Debian's packages of it and of its C library.
    packages: &'static str,
}

impl CrossCompiler {
    /// `None` for the machine's own architecture, and for those without need of one.
    fn of(arch: &str) -> Option<CrossCompiler> {
        (arch == "riscv64" && arch != std::env::consts::ARCH).then_some(CrossCompiler {
            program: "riscv64-linux-gnu-gcc",
            packages: "gcc-riscv64-linux-gnu libc6-dev-riscv64-cross",
        })
    }
}

/// Rust's name of a Linux target: that of RISC-V has its extensions in it.
pub fn rust_target(arch: &str, library: &str) -> String {
    let arch = if arch == "riscv64" { "riscv64gc" } else { arch };
    format!("{arch}-unknown-linux-{library}")
}

/// Flags that keep the machine's folders out of a program, so that two folders make the same one.
/// The folder of downloaded crates is named after the registry, which may be a mirror.
pub fn remapped() -> Result<String> {
    Tool::new("cargo").args(["fetch", "--quiet", "--locked"]).dir(&root()).quiet().text()?;
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).ok_or("no CARGO_HOME")?;
    let built = target("dist")?.parent().map(Path::to_path_buf).unwrap_or_default();
    let mut folders = vec![(root(), "/onbeat"), (built, "/target")];
    let registries = std::fs::read_dir(home.join("registry/src")).into_iter().flatten().flatten();
    folders.extend(registries.map(|registry| (registry.path(), "/crates")));
    let flags = folders.iter().map(|(from, to)| format!(" --remap-path-prefix={}={to}", from.display()));
    Ok(flags.collect())
}

/// Writes a new file and renames it, so that a running binary can be replaced.
fn replace(program: &Path, bytes: &[u8]) -> Result<()> {
    let fresh = program.with_extension("new");
    let written = std::fs::write(&fresh, bytes)
        .and_then(|()| std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o755)))
        .and_then(|()| std::fs::rename(&fresh, program));
    written.map_err(|error| format!("{}: {error}", program.display()))
}

/// The file that has the symbols of a binary.
pub fn symbols_of(binary: &Path) -> PathBuf {
    binary.with_extension("debug")
}

/// Ensures that the standard library of a target is installed.
pub fn add_target(triple: &str) -> Result<()> {
    let libdir = Tool::new("rustc")
        .args(["--print", "target-libdir", "--target", triple])
        .dir(&root())
        .quiet()
        .text()?;
    if Path::new(libdir.trim()).is_dir() {
        return Ok(());
    }
    Tool::new("rustup").args(["target", "add", triple]).dir(&root()).text().map(drop)
}

fn has_own_linker() -> Result<bool> {
    let sysroot = Tool::new("rustc").args(["--print", "sysroot"]).dir(&root()).quiet().text()?;
    let rustlib = Path::new(sysroot.trim()).join("lib/rustlib");
    let hosts = std::fs::read_dir(&rustlib).map_err(|error| format!("{}: {error}", rustlib.display()))?;
    Ok(hosts.filter_map(|host| host.ok()).any(|host| host.path().join("bin/rust-lld").exists()))
}

fn variable_of(triple: &str) -> String {
    triple.to_uppercase().replace('-', "_")
}
