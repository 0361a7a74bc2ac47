//! Debian's packages: installing the tools a command needs, and fetching packages without
//! installing.
//!
//! Fetching uses apt with state, cache, architecture and, for a release other than the machine's,
//! sources below `target/lab/apt`: it needs no root, and never adds a foreign architecture or
//! another release to the machine.

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

/// Ensures that programs exist: installs their packages as root, otherwise names the missing ones.
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

/// Packages of the missing programs, one by one.
fn packages(needs: &[Need]) -> Vec<&'static str> {
    missing(needs).into_iter().flat_map(str::split_whitespace).collect()
}

fn missing(needs: &[Need]) -> Vec<&'static str> {
    needs.iter().filter(|need| !on_path(need.program)).map(|need| need.package).collect()
}

/// Debian's keys, including those of its next releases (package `debian-archive-keyring`).
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A private apt for one architecture and one release.
pub struct Archive {
    config: String,
    cache: PathBuf,
}

impl Archive {
    /// Debian's name of the architecture: `amd64`, `arm64`; and of the release, `sid` or
    /// `trixie-backports`, empty for the machine's own. Reads the package lists once a day.
    pub fn open(arch: &str, suite: &str) -> Result<Archive> {
        if !on_path("apt-get") || !on_path("dpkg-deb") {
            return Err("needs apt and dpkg to fetch Debian's kernels".to_string());
        }
        let place = format!("lab/apt/{}", keyed(arch, suite));
        let dir = target(&place)?;
        for below in ["state/lists/partial", "cache/archives/partial"] {
            target(&format!("{place}/{below}"))?;
        }
        write(&dir.join("status"), "")?;
        let config = dir.join("apt.conf");
        write(&config, config_of(&dir, arch, suite))?;
        if !suite.is_empty() {
            write(&dir.join("sources.list"), sources_of(&mirror()?, suite))?;
        }
        let archive = Archive { config: config.display().to_string(), cache: dir.join("cache") };
        let stamp = dir.join("updated");
        if !younger_than(&stamp, Duration::from_secs(24 * 3600)) {
            archive.apt("apt-get").args(["-q", "update"]).within(Duration::from_secs(180)).text()?;
            write(&stamp, "")?;
        }
        Ok(archive)
    }

    /// The package that a metapackage depends on.
    pub fn resolve(&self, metapackage: &str) -> Result<String> {
        let depends = self.apt("apt-cache").args(["depends", metapackage]).quiet().text()?;
        resolve_in(&depends).ok_or_else(|| format!("{metapackage} names no kernel package"))
    }

    /// The packages that a package depends on, alternatives included.
    pub fn depends(&self, package: &str) -> Result<Vec<String>> {
        let depends = self.apt("apt-cache").args(["depends", package]).quiet().text()?;
        Ok(depends_in(&depends).map(str::to_string).collect())
    }

    /// These packages and all that they depend on, as if nothing was installed.
    pub fn closure(&self, packages: &[&str]) -> Result<Vec<String>> {
        let simulated = self.apt("apt-get").args(["-q", "-s", "--no-install-recommends", "install"]);
        let simulated = simulated.args(packages).quiet().text()?;
        let installed = simulated.lines().filter_map(|line| line.strip_prefix("Inst "));
        Ok(installed.filter_map(|line| line.split_whitespace().next()).map(str::to_string).collect())
    }

    /// Unpacks a kernel: from 7.x on, some files are in separate packages of the same release.
    pub fn unpack_kernel(&self, metapackage: &str, into: &Path) -> Result<()> {
        let package = self.resolve(metapackage)?;
        let release = package.trim_start_matches("linux-image-");
        let mut packages = self.depends(&package)?;
        packages.retain(|needed| needed.ends_with(release));
        packages.push(package.clone());
        self.unpack(&packages, into)
    }

    /// Downloads packages and unpacks them into a folder.
    pub fn unpack(&self, packages: &[impl AsRef<str>], into: &Path) -> Result<()> {
        let fetch = self.apt("apt-get").args(["-q", "download"]).args(packages).dir(&self.cache);
        fetch.within(Duration::from_secs(420)).text()?;
        packages.iter().try_for_each(|package| self.unpack_fetched(package.as_ref(), into))
    }

    fn unpack_fetched(&self, package: &str, into: &Path) -> Result<()> {
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

/// Name below `target/lab` for files of a release: the bare name for the machine's own.
pub fn keyed(name: &str, suite: &str) -> String {
    if suite.is_empty() { name.to_string() } else { format!("{name}-{suite}") }
}

fn config_of(dir: &Path, arch: &str, suite: &str) -> String {
    let dir = dir.display();
    let mut config = format!(
        "Dir::State \"{dir}/state\";\nDir::State::status \"{dir}/status\";\nDir::Cache \"{dir}/cache\";\n\
         APT::Architecture \"{arch}\";\nAPT::Architectures {{ \"{arch}\"; }};\nAPT::Sandbox::User \"\";\n\
         Acquire::Languages \"none\";\n"
    );
    if !suite.is_empty() {
        // Backports are used only on request.
        config += &format!(
            "Dir::Etc::sourcelist \"{dir}/sources.list\";\nDir::Etc::sourceparts \"-\";\n\
             APT::Default-Release \"{suite}\";\n"
        );
    }
    config
}

/// Sources of the release, and for backports also of its base.
fn sources_of(mirror: &str, suite: &str) -> String {
    let base = suite.strip_suffix("-backports").filter(|base| !base.is_empty());
    let line = |suite: &str| format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n");
    base.into_iter().chain([suite]).map(line).collect()
}

/// The Debian mirror of the machine.
fn mirror() -> Result<String> {
    let sources = ["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"];
    let listed = Tool::new("apt-get").args(sources).quiet().text()?;
    mirror_in(&listed).ok_or_else(|| "apt's sources name no mirror of Debian".to_string())
}

fn mirror_in(listed: &str) -> Option<String> {
    listed.lines().find(|uri| uri.trim_end_matches('/').ends_with("/debian")).map(str::to_string)
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

/// The static busybox of an architecture, fetched once. Debian 12 has no RISC-V.
pub fn busybox(arch: &str) -> Result<Vec<u8>> {
    let kept = target("lab/busybox")?.join(arch);
    if !kept.exists() {
        let scratch = target(&format!("lab/unpack-busybox-{arch}"))?;
        Archive::open(arch, if arch == "riscv64" { "trixie" } else { "" })?
            .unpack(&["busybox-static"], &scratch)?;
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
        for suite in ["", "sid"] {
            let config = config_of(Path::new("/t/lab"), "arm64", suite);
            assert!(config.contains("APT::Architectures { \"arm64\"; };"));
            let own = |line: &str| line.contains("\"/t/lab/") || line == "Dir::Etc::sourceparts \"-\";";
            assert!(config.lines().filter(|line| line.starts_with("Dir::")).all(own));
            assert_eq!(config.contains("sources.list"), !suite.is_empty());
        }
    }

    #[test]
    fn another_release_comes_signed_from_the_machines_own_mirror() {
        let listed = "http://m.example/debian-security/\nhttp://m.example/debian/\n";
        let mirror = mirror_in(listed).unwrap();
        let names = |suite: &str| -> Vec<String> {
            let sources = sources_of(&mirror, suite);
            assert!(sources.lines().all(|line| line.contains("[signed-by=/usr/share/keyrings/")));
            sources.lines().filter_map(|line| line.split(' ').nth(3)).map(str::to_string).collect()
        };
        assert_eq!(names("trixie-backports"), ["trixie", "trixie-backports"]);
        assert_eq!(names("sid"), ["sid"]);
        assert_eq!(mirror_in("http://m.example/ubuntu/\n"), None);
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
