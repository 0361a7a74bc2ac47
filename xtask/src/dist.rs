//! Static binaries, `target/dist/onbeat-ARCH`.
//!
//! musl needs no C compiler: the target brings its start files and rustc its own linker, so the
//! foreign architecture needs no cross toolchain either.

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
    Ok(())
}

/// The static binary of an architecture.
pub fn build(arch: &str) -> Result<PathBuf> {
    let triple = format!("{arch}-unknown-linux-musl");
    let built = match add_target(&triple) {
        Ok(()) => build_musl(&triple)?,
        Err(why) if arch == std::env::consts::ARCH => {
            println!("  no musl target ({why}); making a static glibc build instead");
            build_glibc(arch)?
        }
        Err(why) => return Err(why),
    };
    let bytes = read(&built)?;
    elf::check_static(&bytes).map_err(|why| format!("{}: {why}", built.display()))?;
    let kept = kept(arch)?;
    // Copied beside and renamed, so that a running binary can be replaced.
    let fresh = kept.with_extension("new");
    let moved = std::fs::copy(&built, &fresh).and_then(|_| std::fs::rename(&fresh, &kept));
    moved.map_err(|error| format!("{}: {error}", kept.display()))?;
    println!("  {}: static, {} KiB", kept.display(), bytes.len() / 1024);
    Ok(kept)
}

/// Where it lies once it is built.
pub fn kept(arch: &str) -> Result<PathBuf> {
    Ok(target("dist")?.join(format!("onbeat-{arch}")))
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

fn build_musl(triple: &str) -> Result<PathBuf> {
    let mut build = cargo(triple);
    // A distribution's rustc may come without it; then the machine's own linker serves its own
    // architecture.
    if has_own_linker()? {
        build = build.env(&format!("CARGO_TARGET_{}_LINKER", variable_of(triple)), "rust-lld");
    }
    build.show()?;
    binary(triple)
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

fn build_glibc(arch: &str) -> Result<PathBuf> {
    let triple = format!("{arch}-unknown-linux-gnu");
    let flags = format!("CARGO_TARGET_{}_RUSTFLAGS", variable_of(&triple));
    cargo(&triple).env(&flags, "-C target-feature=+crt-static").show()?;
    binary(&triple)
}

fn cargo(triple: &str) -> Tool {
    Tool::new("cargo")
        .args(["build", "--quiet", "--profile", "dist", "--package", "onbeat", "--target", triple])
        .dir(&root())
}

fn binary(triple: &str) -> Result<PathBuf> {
    Ok(target(&format!("{triple}/dist"))?.join("onbeat"))
}
