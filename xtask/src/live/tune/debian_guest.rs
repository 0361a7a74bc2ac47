//! A guest with systemd: Debian 12, unpacked once by debootstrap, which needs root.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::debian::{self, Need};
use crate::live::image;
use crate::tools::{Result, Tool, read, target, write};

const SERVICE: &str = include_str!("../guest/lab.service");
const START: &str = include_str!("../guest/systemd.sh");
/// Folders that a machine that runs for a minute does not need.
const LEFT_OUT: [&str; 6] =
    ["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "var/cache/apt", "var/lib/apt"];
const LIMIT: Duration = Duration::from_secs(900);

/// The root file system as an archive for the kernel.
pub fn archive() -> Result<Vec<u8>> {
    let kept = target("lab/debian")?.join("root.cpio");
    if !kept.exists() {
        let root = unpacked()?;
        for dir in LEFT_OUT {
            let _ = std::fs::remove_dir_all(root.join(dir));
        }
        write(&kept, image::folder(&root)?)?;
    }
    let own: [(&str, u32, &[u8]); 6] = [
        ("init", 0o120_777, b"usr/lib/systemd/systemd"),
        ("lab", 0o040_755, b""),
        ("lab/systemd.sh", 0o100_755, START.as_bytes()),
        ("etc/systemd/system/lab.service", 0o100_644, SERVICE.as_bytes()),
        ("etc/systemd/system/default.target", 0o120_777, b"/lib/systemd/system/multi-user.target"),
        (
            "etc/systemd/system/multi-user.target.wants/lab.service",
            0o120_777,
            b"/etc/systemd/system/lab.service",
        ),
    ];
    Ok([read(&kept)?, image::entries(&own)].concat())
}

fn unpacked() -> Result<PathBuf> {
    let whole = target("lab/debian")?.join("root");
    if is_whole(&whole) {
        return Ok(whole);
    }
    if !rustix::process::getuid().is_root() {
        return Err("a guest with systemd is made by debootstrap, which takes root".to_string());
    }
    debian::ensure(&[Need { program: "debootstrap", package: "debootstrap" }])?;
    let _ = std::fs::remove_dir_all(&whole);
    let place = whole.display().to_string();
    let packages = "--include=systemd,systemd-sysv,dbus,kmod";
    Tool::new("debootstrap")
        .args(["--variant=minbase", packages, "bookworm", &place])
        .within(LIMIT)
        .text()?;
    write(&whole.with_extension("whole"), "")?;
    Ok(whole)
}

fn is_whole(dir: &Path) -> bool {
    dir.with_extension("whole").exists() && dir.join("usr/lib/systemd/systemd").exists()
}
