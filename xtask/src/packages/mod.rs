//! Packages: `.deb`, `.rpm` and tarballs, in `target/packages`.
//!
//! One list of contents (`contents`) serves all formats. `cargo-deb` and `cargo-generate-rpm` write
//! the packages from a manifest made for each; both take the time from `SOURCE_DATE_EPOCH`.

mod check;
mod contents;
mod crates;
mod deb;
mod manual;
mod programs;
mod rpm;
mod staged;
mod tarball;
mod units;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::dist;
use crate::tools::{Result, Tool, read, root, target, write};
use contents::{ALL, Package, PackageFormat};
use crates::Crates;
use manual::Manual;
use programs::{PackagedProgram, Programs};
use staged::Packed;

/// Build target/packages: .deb, .rpm, a tarball per architecture, SHA256SUMS.
///
/// Each has manual pages, completions, disabled units, examples, the list of its crates (CycloneDX)
/// and their licences. Time stamps are those of the last commit.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Architectures; the programs of the farm are built for this machine's
    #[arg(long, value_delimiter = ',', value_parser = dist::ARCHES, value_name = "ARCH",
          default_value = std::env::consts::ARCH)]
    arch: Vec<String>,
    /// Packages; by default all
    #[arg(long, value_delimiter = ',', value_parser = contents::NAMES, value_name = "PACKAGE")]
    only: Vec<String>,
    /// Take programs that exist from an earlier build
    #[arg(long)]
    built: bool,
    /// Person in charge of the packages, like `NAME <MAIL>`; by default $DEBFULLNAME <$DEBEMAIL>
    #[arg(long)]
    maintainer: Option<String>,
    /// Pack twice, from two folders, and fail unless the bytes are the same
    #[arg(long)]
    check: bool,
    /// With --check, also build the programs in another folder; takes as long as `dist`
    #[arg(long, requires = "check")]
    rebuild: bool,
}

impl Args {
    /// The form in the night's gate.
    pub fn of_gate() -> Args {
        let arch = vec![std::env::consts::ARCH.to_owned()];
        Args { arch, only: Vec::new(), built: false, maintainer: None, check: true, rebuild: true }
    }
}

/// Values that all packages of a release share.
pub struct Release {
    version: String,
    /// Seconds since 1970 of the last commit.
    epoch: u64,
    maintainer: String,
}

/// A package for an architecture, ready for each format.
pub struct Product<'a> {
    package: &'static Package,
    arch: &'a str,
    program: PackagedProgram,
    manual: &'a Manual,
    crates: &'a Crates,
    release: &'a Release,
}

/// Builds what is missing, and packs it.
pub fn run(args: &Args) -> Result<()> {
    let out = target("packages")?;
    pack_all(args, &out)?;
    if args.check { check::twice(args, &out) } else { Ok(()) }
}

/// Packs all into a folder; its earlier packages are removed.
fn pack_all(args: &Args, out: &Path) -> Result<()> {
    let release = Release::of(args)?;
    programs::ensure_tools()?;
    empty(out)?;
    let mut programs = Programs::new(args.built);
    let mut made = Vec::new();
    let chosen =
        |package: &&Package| args.only.is_empty() || args.only.iter().any(|name| name == package.name);
    for package in ALL.iter().filter(chosen) {
        let printer = if package.described_as.is_some() { &contents::FARM } else { package };
        let manual = Manual::of(package, &programs.of(printer, std::env::consts::ARCH)?)?;
        for arch in args.arch.iter().filter(|arch| package.is_for(arch)) {
            let program = programs.of(package, arch)?;
            let crates = Crates::of(package, &program.triple)?;
            let product =
                Product { package, arch, program, manual: &manual, crates: &crates, release: &release };
            for format in package.formats {
                let path = packed(*format, &product, out)?;
                println!("{} ({} kB)", path.display(), read(&path)?.len() / 1000);
                made.push(path);
            }
        }
    }
    let names = made.iter().filter_map(|path| path.file_name()?.to_str());
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    let sums = Tool::new("sha256sum").args(names).dir(out).quiet().text()?;
    write(&out.join("SHA256SUMS"), sums)
}

/// Writes a package into a folder; the path of its file.
fn packed(format: PackageFormat, product: &Product, out: &Path) -> Result<PathBuf> {
    match format {
        PackageFormat::Deb => deb::pack(product, out),
        PackageFormat::Rpm => rpm::pack(product, out),
        PackageFormat::Tarball => tarball::pack(product, out),
    }
}

fn empty(folder: &Path) -> Result<()> {
    let fault = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(fault)?;
    }
    std::fs::create_dir_all(folder).map_err(fault)
}

/// The only file in a folder whose name begins and ends so.
fn only_with(folder: &Path, begin: &str, end: &str) -> Result<PathBuf> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let found: Vec<String> = names.filter(|name| name.starts_with(begin) && name.ends_with(end)).collect();
    match found.as_slice() {
        [name] => Ok(folder.join(name)),
        others => Err(format!("{}: expected one {begin}*{end}, not {others:?}", folder.display())),
    }
}

impl Product<'_> {
    /// Writes the files and a manifest with these values for a tool; the folder of the manifest.
    ///
    /// The tools take `target/release` for `target/TRIPLE/release`, and look for other files from
    /// the manifest on.
    fn stage(&self, format: &str, files: &[Packed], table: &str, values: Value) -> Result<PathBuf> {
        let folder = target("packages-stage")?.join(format!("{}-{}-{format}", self.package.name, self.arch));
        empty(&folder)?;
        let mut assets = Vec::new();
        for file in files {
            let (below, source) = match file.place.strip_prefix("bin/") {
                Some(name) => (
                    folder.join(format!("target/{}/release", self.program.triple)),
                    format!("target/release/{name}"),
                ),
                None => (folder.join("files"), format!("files/{}", file.place)),
            };
            let place = file.place.strip_prefix("bin/").unwrap_or(&file.place);
            Packed { place: place.to_owned(), ..file.clone() }.stage(&below)?;
            let mode = format!("{:o}", file.mode);
            // cargo-deb compares the places of some files, which must not begin with a slash.
            let to = if table == "deb" { "usr" } else { "/usr" };
            let mut asset = json!({ "source": source, "dest": format!("{to}/{}", file.place), "mode": mode });
            if table == "generate-rpm" {
                let is_doc = ["share/man/", "share/doc/"].iter().any(|begin| file.place.starts_with(begin));
                asset["doc"] = is_doc.into();
            }
            assets.push(asset);
        }
        let mut values = values;
        values["assets"] = Value::Array(assets);
        let manifest = json!({
            "package": {
                "name": self.package.name,
                "version": self.release.version,
                "edition": "2024",
                "license": "MIT OR Apache-2.0",
                "description": self.package.summary,
                "metadata": { table: values },
            },
            "workspace": {},
            "lib": { "path": "empty.rs" },
        });
        write(&folder.join("empty.rs"), "")?;
        write(&folder.join("Cargo.toml"), toml::to_string(&manifest).map_err(|error| error.to_string())?)?;
        Ok(folder)
    }
}

/// Seconds since 1970 of the release: those of the last commit, or `$SOURCE_DATE_EPOCH`.
fn epoch() -> Result<u64> {
    let committed = || Tool::new("git").args(["log", "-1", "--format=%ct"]).dir(&root()).quiet().text();
    let epoch = std::env::var("SOURCE_DATE_EPOCH").or_else(|_| committed())?;
    let wrong = |_| format!("invalid time {:?}: expected seconds; set SOURCE_DATE_EPOCH", epoch.trim());
    epoch.trim().parse().map_err(wrong)
}

impl Release {
    fn of(args: &Args) -> Result<Release> {
        let variable = |name: &str| std::env::var(name).ok();
        let of_debian = || {
            let (name, mail) = (variable("DEBFULLNAME")?, variable("DEBEMAIL")?);
            Some(format!("{name} <{mail}>"))
        };
        let maintainer = args.maintainer.clone().or_else(of_debian);
        let maintainer = maintainer.unwrap_or_else(|| contents::UNNAMED.to_owned());
        Ok(Release { version: crates::version()?, epoch: epoch()?, maintainer })
    }

    /// Time of the last commit in a format of `date`.
    fn date(&self, format: &str) -> Result<String> {
        let date = Tool::new("date").args(["-u", "-d", &format!("@{}", self.epoch), format]);
        Ok(date.env("LC_ALL", "C").quiet().text()?.trim().to_owned())
    }
}
