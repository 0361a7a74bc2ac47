//! Debian's packages: installing the tools a command needs, and fetching packages without
//! installing.
//!
//! Fetching goes through apt with state, cache and architecture of its own below `target/lab/apt`:
//! it needs no root, and a foreign architecture is never added to the machine.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::tools::{Result, Tool, on_path, read, target, write};

/// A program that a command needs, and the package that brings it.
#[derive(Clone, Copy)]
pub struct Need {
    /// Name on the PATH.
    pub program: &'static str,
    /// Debian's package, or several with blanks between.
    pub package: &'static str,
}

/// Makes sure the programs are there: installs their packages as root, else says what is missing.
pub fn ensure(needs: &[Need]) -> Result<()> {
    if missing(needs).is_empty() {
        return Ok(());
    }
    if rustix::process::getuid().is_root() && on_path("apt-get") {
        let apt = || Tool::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive");
        // A third party's list that cannot be had must not stop us: the installation decides.
        if let Err(why) = apt().args(["-q", "update"]).within(Duration::from_secs(180)).text() {
            println!("  {why}");
        }
        let install = apt().args(["-q", "install", "-y", "--no-install-recommends"]).args(packages(needs));
        install.within(Duration::from_secs(420)).text()?;
    }
    match missing(needs) {
        missing if missing.is_empty() => Ok(()),
        missing => Err(format!("needs the Debian packages {}", missing.join(" "))),
    }
}

/// Those that are missing, one by one.
fn packages(needs: &[Need]) -> Vec<&'static str> {
    missing(needs).into_iter().flat_map(str::split_whitespace).collect()
}

fn missing(needs: &[Need]) -> Vec<&'static str> {
    needs.iter().filter(|need| !on_path(need.program)).map(|need| need.package).collect()
}

/// An apt of our own for one architecture.
pub struct Archive {
    config: String,
    cache: PathBuf,
}

impl Archive {
    /// Debian's name of the architecture: `amd64`, `arm64`. Reads the package lists once a day.
    pub fn open(arch: &str) -> Result<Archive> {
        if !on_path("apt-get") || !on_path("dpkg-deb") {
            return Err("needs apt and dpkg to fetch Debian's kernels".to_string());
        }
        let dir = target(&format!("lab/apt/{arch}"))?;
        for below in ["state/lists/partial", "cache/archives/partial"] {
            target(&format!("lab/apt/{arch}/{below}"))?;
        }
        write(&dir.join("status"), "")?;
        let config = dir.join("apt.conf");
        write(&config, config_of(&dir, arch))?;
        let archive = Archive { config: config.display().to_string(), cache: dir.join("cache") };
        let stamp = dir.join("updated");
        if !younger_than(&stamp, Duration::from_secs(24 * 3600)) {
            archive.apt("apt-get").args(["-q", "update"]).within(Duration::from_secs(180)).text()?;
            write(&stamp, "")?;
        }
        Ok(archive)
    }

    /// The package that a metapackage stands for.
    pub fn resolve(&self, metapackage: &str) -> Result<String> {
        let depends = self.apt("apt-cache").args(["depends", metapackage]).quiet().text()?;
        resolve_in(&depends).ok_or_else(|| format!("{metapackage} names no kernel package"))
    }

    /// The packages that a package depends on, alternatives included.
    pub fn depends(&self, package: &str) -> Result<Vec<String>> {
        let depends = self.apt("apt-cache").args(["depends", package]).quiet().text()?;
        Ok(depends_in(&depends).map(str::to_string).collect())
    }

    /// Downloads a package and unpacks it into a folder.
    pub fn unpack(&self, package: &str, into: &Path) -> Result<()> {
        let fetch = self.apt("apt-get").args(["-q", "download", package]).dir(&self.cache);
        fetch.within(Duration::from_secs(420)).text()?;
        let prefix = format!("{package}_");
        let entries = std::fs::read_dir(&self.cache).map_err(|error| error.to_string())?;
        let file = entries
            .filter_map(|entry| entry.ok())
            .find(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                name.starts_with(&prefix) && name.ends_with(".deb")
            })
            .ok_or_else(|| format!("{package} was not downloaded"))?
            .path();
        let (from, to) = (file.display().to_string(), into.display().to_string());
        Tool::new("dpkg-deb").args(["-x", &from, &to]).quiet().text()?;
        std::fs::remove_file(&file).map_err(|error| error.to_string())
    }

    fn apt(&self, program: &str) -> Tool {
        Tool::new(program).env("APT_CONFIG", &self.config).env("LC_ALL", "C")
    }
}

fn config_of(dir: &Path, arch: &str) -> String {
    let dir = dir.display();
    format!(
        "Dir::State \"{dir}/state\";\nDir::State::status \"{dir}/status\";\nDir::Cache \"{dir}/cache\";\n\
         APT::Architecture \"{arch}\";\nAPT::Architectures {{ \"{arch}\"; }};\nAPT::Sandbox::User \"\";\n\
         Acquire::Languages \"none\";\n"
    )
}

fn depends_in(depends: &str) -> impl Iterator<Item = &str> {
    depends.lines().filter_map(|line| line.trim().trim_start_matches('|').strip_prefix("Depends: "))
}

/// Debian's name of the architecture that we run on.
pub fn own_architecture() -> &'static str {
    if std::env::consts::ARCH == "aarch64" { "arm64" } else { "amd64" }
}

fn resolve_in(depends: &str) -> Option<String> {
    let mut kernels = depends_in(depends).filter(|name| name.starts_with("linux-image-"));
    kernels.next().map(str::to_string)
}

fn younger_than(path: &Path, age: Duration) -> bool {
    let modified = std::fs::metadata(path).and_then(|meta| meta.modified());
    modified.is_ok_and(|then| SystemTime::now().duration_since(then).is_ok_and(|passed| passed < age))
}

/// A package's only file that matches, e.g. `boot/vmlinuz-*`.
pub fn only_file(dir: &Path, prefix: &str) -> Result<PathBuf> {
    let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok())
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect();
    match (found.pop(), found.is_empty()) {
        (Some(path), true) => Ok(path),
        _ => Err(format!("{}: not exactly one {prefix}*", dir.display())),
    }
}

/// The static busybox of an architecture, fetched once.
pub fn busybox(arch: &str) -> Result<Vec<u8>> {
    let kept = target("lab/busybox")?.join(arch);
    if !kept.exists() {
        let scratch = target(&format!("lab/unpack-busybox-{arch}"))?;
        Archive::open(arch)?.unpack("busybox-static", &scratch)?;
        let usr_merged = ["usr/bin/busybox", "bin/busybox"].map(|place| scratch.join(place));
        let found = usr_merged.iter().find(|place| place.exists());
        let found = found.ok_or("busybox-static holds no busybox")?;
        write(&kept, read(found)?)?;
        std::fs::remove_dir_all(&scratch).map_err(|error| error.to_string())?;
    }
    read(&kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metapackage_stands_for_the_kernel_it_depends_on() {
        let depends = "linux-image-6.12-rt-amd64\n  Depends: linux-base\n \
                       Depends: linux-image-6.12.1+deb12-rt-amd64\n  Suggests: linux-doc\n";
        assert_eq!(resolve_in(depends).as_deref(), Some("linux-image-6.12.1+deb12-rt-amd64"));
        assert_eq!(resolve_in("linux-image-6.12-rt-amd64\n"), None);
    }

    #[test]
    fn the_private_apt_names_one_architecture_and_no_path_of_the_machine() {
        let config = config_of(Path::new("/t/lab"), "arm64");
        assert!(config.contains("APT::Architectures { \"arm64\"; };"));
        assert!(
            config.lines().filter(|line| line.starts_with("Dir::")).all(|line| line.contains("\"/t/lab/"))
        );
    }

    #[test]
    fn a_program_that_is_missing_names_its_package() {
        let needs = [
            Need { program: "sh", package: "dash" },
            Need { program: "no-such-program", package: "no-such-package" },
        ];
        assert_eq!(missing(&needs), ["no-such-package"]);
    }
}
