//! Static binaries, `target/dist/onbeat-ARCH`, and `onbeat-push-ARCH` of this machine's
//! architecture.
//!
//! musl needs no C compiler for `onbeat`: the target brings its start files and rustc its own
//! linker, so the foreign architecture needs no cross toolchain either.

use std::path::{Path, PathBuf};

use crate::elf;
use crate::tools::{Result, Tool, read, root, target};

const ARCHES: [&str; 2] = ["x86_64", "aarch64"];

/// Builds what can be built; an error if the machine's own architecture cannot.
pub fn run() -> Result<()> {
    for arch in ARCHES {
        match build(arch) {
            Ok(path) => println!("{}", path.display()),
            Err(why) if arch == std::env::consts::ARCH => return Err(why),
            Err(why) => println!("left out  onbeat-{arch} ({why})"),
        }
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
    /// Whether a part of it is in C.
    has_c: bool,
    /// What rustc's own linker leaves out of it.
    linked: &'static str,
}

const ONBEAT: StaticProgram = StaticProgram { name: "onbeat", profile: "dist", has_c: false, linked: "" };
/// Functions of the same code are there once, and the index by which a panic would be unwound,
/// which ends the program here, is not: 55 kB of 2.5 MB. What is to be moved to where the program
/// lies is named by bits (musl 1.2.4 reads these): 80 kB.
const PUSH: StaticProgram = StaticProgram {
    name: "onbeat-push",
    profile: "push",
    has_c: true,
    linked: "-C link-arg=--icf=all -C link-arg=--no-eh-frame-hdr -C link-arg=--pack-dyn-relocs=relr",
};

/// The static binary of an architecture.
pub fn build(arch: &str) -> Result<PathBuf> {
    ONBEAT.build(arch)
}

/// What sends to a farm, for this machine's architecture; it takes a C compiler.
pub fn build_push() -> Result<PathBuf> {
    PUSH.build(std::env::consts::ARCH)
}

/// Where the binary lies once it is built.
pub fn kept(arch: &str) -> Result<PathBuf> {
    ONBEAT.kept(arch)
}

impl StaticProgram {
    fn build(&self, arch: &str) -> Result<PathBuf> {
        let triple = format!("{arch}-unknown-linux-musl");
        let built = match add_target(&triple) {
            Ok(()) => self.build_musl(&triple)?,
            Err(why) if arch == std::env::consts::ARCH => {
                println!("  no musl target ({why}); making a static glibc build instead");
                self.build_glibc(arch)?
            }
            Err(why) => return Err(why),
        };
        let bytes = read(&built)?;
        elf::check_static(&bytes).map_err(|why| format!("{}: {why}", built.display()))?;
        let kept = self.kept(arch)?;
        // Copied beside and renamed, so that a running binary can be replaced.
        let fresh = kept.with_extension("new");
        let moved = std::fs::copy(&built, &fresh).and_then(|_| std::fs::rename(&fresh, &kept));
        moved.map_err(|error| format!("{}: {error}", kept.display()))?;
        println!("  {}: static, {} KiB", kept.display(), bytes.len() / 1024);
        Ok(kept)
    }

    fn kept(&self, arch: &str) -> Result<PathBuf> {
        Ok(target("dist")?.join(format!("{}-{arch}", self.name)))
    }

    fn build_musl(&self, triple: &str) -> Result<PathBuf> {
        let mut build = self.cargo(triple);
        // A distribution's rustc may come without it; then the machine's own linker serves its own
        // architecture.
        if has_own_linker()? {
            let of_target = format!("CARGO_TARGET_{}", variable_of(triple));
            build = build.env(&format!("{of_target}_LINKER"), "rust-lld");
            if !self.linked.is_empty() {
                build = build.env(&format!("{of_target}_RUSTFLAGS"), self.linked);
            }
        }
        // What is in C needs no C library: the machine's own compiler serves musl too.
        if self.has_c {
            build = build.env(&format!("CC_{}", triple.replace('-', "_")), "cc");
        }
        build.show()?;
        self.binary(triple)
    }

    fn build_glibc(&self, arch: &str) -> Result<PathBuf> {
        let triple = format!("{arch}-unknown-linux-gnu");
        let flags = format!("CARGO_TARGET_{}_RUSTFLAGS", variable_of(&triple));
        self.cargo(&triple).env(&flags, "-C target-feature=+crt-static").show()?;
        self.binary(&triple)
    }

    fn cargo(&self, triple: &str) -> Tool {
        Tool::new("cargo")
            .args(["build", "--quiet", "--profile", self.profile, "--package", self.name])
            .args(["--target", triple])
            .dir(&root())
    }

    fn binary(&self, triple: &str) -> Result<PathBuf> {
        Ok(target(&format!("{triple}/{}", self.profile))?.join(self.name))
    }
}

/// Has the standard library of a target there.
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
