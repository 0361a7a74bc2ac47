//! The module, built against Debian's headers of the machine's own kernel, and the static programs.
//!
//! The headers are unpacked, not installed. Their Makefile includes another by its absolute path,
//! and their tools are in a separate package, which for a foreign architecture is that of the
//! builder's: the tools run here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::debian::{self, Archive, Need};
use crate::live::machine::{KernelImage, Machine};
use crate::tools::{Result, Tool, read, root, target, write};

const LIMIT: Duration = Duration::from_secs(300);

/// Packages of a build for another release of Debian besides the headers and their compiler.
const TOOLS: [&str; 9] =
    ["base-files", "binutils", "coreutils", "dash", "findutils", "grep", "make", "mawk", "sed"];

/// `onbeat_fault.ko` for a kernel.
pub fn module(machine: &Machine, kernel: &KernelImage) -> Result<Vec<u8>> {
    let headers = headers(machine, &kernel.release)?;
    let place = match machine.suite {
        "" => target(&format!("lab/module/{}", machine.name))?,
        _ => headers.root.join("module"),
    };
    std::fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    copy(&root().join("lab/onbeat_fault"), &place)?;
    make(machine, &headers, &place)?.args(["modules"]).within(LIMIT).text()?;
    read(&place.join("onbeat_fault.ko"))
}

/// The make of the machine's own release runs here; that of another one in a tree of its programs
/// and libraries.
fn make(machine: &Machine, headers: &Headers, place: &Path) -> Result<Tool> {
    if !machine.suite.is_empty() {
        debian::ensure(&[Need { program: "unshare", package: "util-linux" }])?;
        let root = format!("--root={}", headers.root.display());
        // The kernel's tools read /proc, and mounting one needs namespaces.
        let inside = ["--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", &root];
        let from = format!("/{}", headers.place);
        return Ok(Tool::new("unshare").args(inside).args(["make", "-s", "-C", &from, "M=/module"]));
    }
    let foreign = machine.arch != std::env::consts::ARCH;
    debian::ensure(&needs(foreign))?;
    let from = headers.root.join(&headers.place).display().to_string();
    let make = Tool::new("make").args(["-s", "-C", &from, &format!("M={}", place.display())]);
    Ok(if foreign {
        make.args(["ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-", "CC=aarch64-linux-gnu-gcc"])
    } else {
        make.args(["CC=gcc"])
    })
}

fn needs(foreign: bool) -> Vec<Need> {
    let mut needs = vec![Need { program: "make", package: "make" }, Need { program: "gcc", package: "gcc" }];
    if foreign {
        needs.push(Need { program: "aarch64-linux-gnu-gcc", package: "gcc-aarch64-linux-gnu" });
    }
    needs
}

/// Unpacked headers.
struct Headers {
    /// Root of the unpacked packages; for another release of Debian also of the compiler.
    root: PathBuf,
    /// The folder of the kernel's own below it.
    place: String,
}

/// The kernel's headers, fetched once.
fn headers(machine: &Machine, release: &str) -> Result<Headers> {
    let whole = target("lab/headers")?.join(format!("{}-{release}", machine.debian_arch));
    let package = format!("linux-headers-{release}");
    let place = format!("usr/src/{package}");
    let (done, here) = (whole.join("whole"), whole.display().to_string());
    let was = read(&done).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if was.as_ref().is_ok_and(|was| *was != here) {
        // The folder was moved, and the Makefile's path with it was not.
        std::fs::remove_dir_all(&whole).map_err(|error| format!("{here}: {error}"))?;
    }
    if was.is_err() || !done.exists() {
        unpack(machine, &package, &whole)?;
        // With it, types are generated for BPF, which needs one more program and is of no use here.
        let _ = std::fs::remove_file(whole.join(&place).join("vmlinux"));
        write(&done, &here)?;
    }
    Ok(Headers { root: whole, place })
}

fn unpack(machine: &Machine, package: &str, whole: &Path) -> Result<()> {
    let archive = machine.archive()?;
    if !machine.suite.is_empty() {
        archive.unpack(&archive.closure(&[&[package], &TOOLS[..]].concat())?, whole)?;
        // Installing it makes this link.
        let awk = whole.join("usr/bin/awk");
        return std::os::unix::fs::symlink("mawk", &awk)
            .map_err(|error| format!("{}: {error}", awk.display()));
    }
    archive.unpack(&[package], whole)?;
    // The tools are the builder's, by the same name.
    let own = Archive::open(debian::own_architecture(), "")?;
    for needed in archive.depends(package)? {
        if needed.starts_with("linux-headers-") {
            archive.unpack(&[needed], whole)?;
        } else if needed.starts_with("linux-kbuild-") {
            own.unpack(&[needed], whole)?;
        }
    }
    relocate(&whole.join("usr/src").join(package).join("Makefile"), whole)
}

fn relocate(makefile: &Path, whole: &Path) -> Result<()> {
    let text = String::from_utf8_lossy(&read(makefile)?).into_owned();
    write(makefile, text.replace("include /usr/src/", &format!("include {}/usr/src/", whole.display())))
}

/// Copies changed files only, so that make builds only those.
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
