//! The module, built against Debian's headers of the machine's own kernel, and the static programs.
//!
//! The headers are unpacked, not installed. Their Makefile includes another by its absolute path,
//! and their tools come in a package of their own, which for a foreign architecture is that of the
//! builder's: the tools run here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::debian::{self, Archive, Need};
use crate::live::machine::{KernelImage, Machine};
use crate::tools::{Result, Tool, read, root, target, write};

const LIMIT: Duration = Duration::from_secs(300);

/// `onbeat_fault.ko` for a kernel.
pub fn module(machine: &Machine, kernel: &KernelImage) -> Result<Vec<u8>> {
    let foreign = machine.arch != std::env::consts::ARCH;
    debian::ensure(&needs(foreign))?;
    let release = kernel.config.0.trim_start_matches("config-");
    let headers = headers(machine, release)?;
    let place = target(&format!("lab/module/{}", machine.name))?;
    copy(&root().join("lab/onbeat_fault"), &place)?;
    let (from, to) = (headers.display().to_string(), format!("M={}", place.display()));
    let mut make = Tool::new("make").args(["-s", "-C", &from, &to]);
    make = match foreign {
        false => make.args(["CC=gcc"]),
        true => make.args(["ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-", "CC=aarch64-linux-gnu-gcc"]),
    };
    make.args(["modules"]).within(LIMIT).text()?;
    read(&place.join("onbeat_fault.ko"))
}

fn needs(foreign: bool) -> Vec<Need> {
    let mut needs = vec![Need { program: "make", package: "make" }, Need { program: "gcc", package: "gcc" }];
    if foreign {
        needs.push(Need { program: "aarch64-linux-gnu-gcc", package: "gcc-aarch64-linux-gnu" });
    }
    needs
}

/// The folder of the kernel's headers, fetched once.
fn headers(machine: &Machine, release: &str) -> Result<PathBuf> {
    let whole = target("lab/headers")?.join(format!("{}-{release}", machine.debian_arch));
    let package = format!("linux-headers-{release}");
    let place = whole.join("usr/src").join(&package);
    let (done, here) = (whole.join("whole"), whole.display().to_string());
    let was = read(&done).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if was.as_ref().is_ok_and(|was| *was != here) {
        // The folder was moved, and the Makefile's path with it was not.
        std::fs::remove_dir_all(&whole).map_err(|error| format!("{here}: {error}"))?;
    }
    if was.is_err() || !done.exists() {
        let archive = Archive::open(machine.debian_arch)?;
        // The tools are the builder's, by the same name.
        let own = Archive::open(debian::own_architecture())?;
        archive.unpack(&package, &whole)?;
        for needed in archive.depends(&package)? {
            if needed.starts_with("linux-headers-") {
                archive.unpack(&needed, &whole)?;
            } else if needed.starts_with("linux-kbuild-") {
                own.unpack(&needed, &whole)?;
            }
        }
        relocate(&place.join("Makefile"), &whole)?;
        // With it types are described to BPF, which takes one program more and serves nothing here.
        let _ = std::fs::remove_file(place.join("vmlinux"));
        write(&done, &here)?;
    }
    Ok(place)
}

fn relocate(makefile: &Path, whole: &Path) -> Result<()> {
    let text = String::from_utf8_lossy(&read(makefile)?).into_owned();
    write(makefile, text.replace("include /usr/src/", &format!("include {}/usr/src/", whole.display())))
}

/// Only what changed, so that make builds only that.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let entries = std::fs::read_dir(from).map_err(|error| format!("{}: {error}", from.display()))?;
    for entry in entries.filter_map(|entry| entry.ok()) {
        let (content, kept) = (read(&entry.path())?, to.join(entry.file_name()));
        if read(&kept).ok().as_ref() != Some(&content) {
            write(&kept, content)?;
        }
    }
    Ok(())
}

/// A program of `lab/user_faults`, static, for the builder's own architecture.
pub fn program(name: &str) -> Result<Vec<u8>> {
    debian::ensure(&[Need { program: "gcc", package: "gcc" }])?;
    let source = root().join(format!("lab/user_faults/{name}.c")).display().to_string();
    let made = target("lab/module")?.join(name);
    let to = made.display().to_string();
    let flags = ["-O2", "-Wall", "-static", "-s", "-pthread", &source, "-o", &to];
    Tool::new("gcc").args(flags).within(LIMIT).text()?;
    read(&made)
}
