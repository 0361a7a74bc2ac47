//! The initial RAM disk, written here in cpio's "newc" form: the same input gives the same bytes.
//!
//! Uncompressed, because the emulator loads it instantly and the guest unpacks slowly. Without
//! device nodes, whose creation needs root: the kernel's own archive has /dev/console, devtmpfs the
//! rest.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::checks::Check;
use crate::tools::{Result, Tool, read};

const INIT: &str = include_str!("guest/init.sh");
const HELPERS: &str = include_str!("guest/helpers.sh");
const CHECKS: &str = include_str!("guest/checks.sh");
const DIRS: [&str; 17] = [
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "home/user",
    "lab",
    "lab/modules",
    "proc",
    "root",
    "run",
    "sys",
    "tmp",
    "usr",
    "usr/lib",
    "usr/lib/modules",
    "usr/lib64",
];
const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n";
const GROUP: &str = "root:x:0:\nuser:x:1000:\n";

/// A file of the image: its path and contents.
pub type ImageFile = (String, Vec<u8>);

/// The program in the guest.
pub struct GuestProgram {
    pub binary: Vec<u8>,
    /// Shared libraries and their loader; none for a static binary.
    pub libraries: Vec<ImageFile>,
}

impl GuestProgram {
    pub fn fixed(binary: Vec<u8>) -> GuestProgram {
        GuestProgram { binary, libraries: Vec::new() }
    }

    /// A program of this machine, with the libraries that this machine's loader finds.
    pub fn linked(path: &Path) -> Result<GuestProgram> {
        let listed = Tool::new("ldd").args([path.display().to_string()]).quiet().text()?;
        let paths = listed.split_whitespace().filter(|word| word.starts_with('/'));
        // /lib and /lib64 are links in the guest; some distributions name their targets.
        let place = |path: &str| format!("usr{}", path.strip_prefix("/usr").unwrap_or(path));
        let libraries = paths.map(|path| Ok((place(path), read(Path::new(path))?)));
        Ok(GuestProgram { binary: read(path)?, libraries: libraries.collect::<Result<_>>()? })
    }
}

/// The archive: busybox, the binary, the kernel's configuration, the scripts, and the files for the
/// machine's own `lab/main.sh`.
pub fn initramfs(busybox: &[u8], onbeat: &GuestProgram, config: &ImageFile, items: &[ImageFile]) -> Vec<u8> {
    let mut archive = Archive::default();
    for dir in DIRS {
        archive.entry(dir, 0o040_755, b"");
    }
    archive.entry("lib", 0o120_777, b"usr/lib");
    archive.entry("lib64", 0o120_777, b"usr/lib64");
    archive.entry("bin/busybox", 0o100_755, busybox);
    archive.entry("bin/onbeat", 0o100_755, &onbeat.binary);
    let folders = onbeat.libraries.iter().filter_map(|(path, _)| path.rsplit_once('/'));
    for folder in folders.map(|(folder, _)| folder).collect::<BTreeSet<_>>() {
        archive.entry(folder, 0o040_755, b"");
    }
    for (path, bytes) in &onbeat.libraries {
        archive.entry(path, 0o100_755, bytes);
    }
    archive.config(config);
    archive.entry("etc/passwd", 0o100_644, PASSWD.as_bytes());
    archive.entry("etc/group", 0o100_644, GROUP.as_bytes());
    archive.entry("init", 0o100_755, INIT.as_bytes());
    archive.entry("lab/helpers.sh", 0o100_644, HELPERS.as_bytes());
    for (name, content) in items {
        let mode = if name.starts_with("bin/") { 0o100_755 } else { 0o100_644 };
        archive.entry(name, mode, content);
    }
    archive.finish()
}

/// The same files without folders and first process, as an addition to another root file system,
/// with a static binary.
pub fn beside(busybox: &[u8], onbeat: &[u8], config: &ImageFile, items: &[ImageFile]) -> Vec<u8> {
    let mut archive = Archive::default();
    for dir in ["lab", "lab/modules", "lab/bin", "usr/lib/modules"] {
        archive.entry(dir, 0o040_755, b"");
    }
    archive.entry("lab/bin/busybox", 0o100_755, busybox);
    archive.entry("lab/bin/onbeat", 0o100_755, onbeat);
    archive.config(config);
    archive.entry("lab/helpers.sh", 0o100_644, HELPERS.as_bytes());
    for (name, content) in items {
        let program = name.strip_prefix("bin/").map(|program| format!("lab/bin/{program}"));
        let mode = if program.is_some() { 0o100_755 } else { 0o100_644 };
        archive.entry(program.as_deref().unwrap_or(name), mode, content);
    }
    archive.finish()
}

/// A folder of the building machine, links as links; other types than file, folder and link are
/// skipped.
pub fn folder(dir: &Path) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    let mut folders = vec![(dir.to_path_buf(), String::new())];
    while let Some((folder, name)) = folders.pop() {
        let listed = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut entries: Vec<_> = listed.filter_map(|entry| entry.ok()).collect();
        entries.sort_by_key(|entry| entry.file_name());
        for entry in entries {
            let (path, own) = (entry.path(), format!("{name}{}", entry.file_name().to_string_lossy()));
            let meta = std::fs::symlink_metadata(&path).map_err(|error| error.to_string())?;
            let mode = meta.permissions().mode() & 0o7777;
            if meta.is_symlink() {
                let to = std::fs::read_link(&path).map_err(|error| error.to_string())?;
                archive.entry(&own, 0o120_777, to.as_os_str().as_encoded_bytes());
            } else if meta.is_dir() {
                archive.entry(&own, 0o040_000 | mode, b"");
                folders.push((path, format!("{own}/")));
            } else if meta.is_file() {
                archive.entry(&own, 0o100_000 | mode, &read(&path)?);
            }
        }
    }
    Ok(archive.finish())
}

/// An archive of entries by name, mode and content; a link's content is its target.
pub fn entries(entries: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut archive = Archive::default();
    for (name, mode, content) in entries {
        archive.entry(name, *mode, content);
    }
    archive.finish()
}

/// The main script of the checks.
pub fn main_script() -> ImageFile {
    ("lab/main.sh".to_string(), CHECKS.into())
}

/// Files of the checks: one script each, and their order, besides their other files.
pub fn of_checks(checks: &[Check], others: &[ImageFile]) -> Vec<ImageFile> {
    let script = |check: &Check| (format!("lab/{}.sh", check.name), check.script.clone().into_bytes());
    let order: String = checks.iter().map(|check| format!("{}\n", check.name)).collect();
    let mut items = others.to_vec();
    items.extend(checks.iter().map(script));
    items.push(("lab/order".to_string(), order.into_bytes()));
    items
}

#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        // Magic, then inode, mode, uid, gid, links, mtime, size, four device numbers, name,
        // checksum.
        let fields =
            [self.entries, mode, 0, 0, 1, 0, length(content.len()), 0, 0, 0, 0, length(name.len() + 1), 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes().chain([0]));
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    /// The kernel's configuration, in the folder of its release if it has one.
    fn config(&mut self, config: &ImageFile) {
        if let Some((dir, _)) = config.0.rsplit_once('/') {
            self.entry(dir, 0o040_755, b"");
        }
        self.entry(&config.0, 0o100_644, &config.1);
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, b"");
        self.bytes
    }
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a file of the image is smaller than 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_the_trailer_ends_them() {
        let mut archive = Archive::default();
        archive.entry("a", 0o100_644, b"hello");
        let bytes = archive.finish();
        // Header 110 and name 2 are a multiple of four; five bytes of content are padded to eight.
        assert_eq!(&bytes[..6], b"070701");
        assert_eq!(&bytes[110..117], b"a\0hello");
        assert_eq!(&bytes[120..126], b"070701");
        assert!(bytes.len() % 4 == 0 && bytes.windows(10).any(|window| window == b"TRAILER!!!"));
    }

    #[test]
    fn the_same_input_gives_the_same_bytes() {
        let image = || {
            initramfs(
                b"b",
                &GuestProgram::fixed(b"o".into()),
                &("boot/config-6".to_string(), Vec::new()),
                &of_checks(&[], &[main_script()]),
            )
        };
        assert_eq!(image(), image());
    }
}
