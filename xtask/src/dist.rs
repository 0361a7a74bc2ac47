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
    let built = match add_target(&triple).and_then(|()| build_musl(&triple)) {
        Ok(path) => path,
        Err(why) if arch == std::env::consts::ARCH => {
            println!("  no musl build ({why}); making a static glibc build instead");
            build_glibc(arch)?
        }
        Err(why) => return Err(why),
    };
    let bytes = read(&built)?;
    elf::check_static(&bytes).map_err(|why| format!("{}: {why}", built.display()))?;
    let kept = target("dist")?.join(format!("onbeat-{arch}"));
    // Copied beside and renamed, so that a running binary can be replaced.
    let fresh = kept.with_extension("new");
    let moved = std::fs::copy(&built, &fresh).and_then(|_| std::fs::rename(&fresh, &kept));
    moved.map_err(|error| format!("{}: {error}", kept.display()))?;
    println!("  {}: static, {} KiB", kept.display(), bytes.len() / 1024);
    Ok(kept)
}

fn add_target(triple: &str) -> Result<()> {
    let libdir = Tool::new("rustc").args(["--print", "target-libdir", "--target", triple]).quiet().text()?;
    if Path::new(libdir.trim()).is_dir() {
        return Ok(());
    }
    Tool::new("rustup").args(["target", "add", triple]).dir(&root()).text().map(drop)
}

fn build_musl(triple: &str) -> Result<PathBuf> {
    let linker = format!("CARGO_TARGET_{}_LINKER", triple.to_uppercase().replace('-', "_"));
    cargo(triple).env(&linker, "rust-lld").show()?;
    binary(triple)
}

fn build_glibc(arch: &str) -> Result<PathBuf> {
    let triple = format!("{arch}-unknown-linux-gnu");
    let flags = format!("CARGO_TARGET_{}_RUSTFLAGS", triple.to_uppercase().replace('-', "_"));
    cargo(&triple).env(&flags, "-C target-feature=+crt-static").show()?;
    binary(&triple)
}

fn cargo(triple: &str) -> Tool {
    Tool::new("cargo")
        .args(["build", "--quiet", "--release", "--package", "onbeat", "--target", triple])
        .dir(&root())
}

fn binary(triple: &str) -> Result<PathBuf> {
    Ok(target(&format!("{triple}/release"))?.join("onbeat"))
}
