//! Contents of the packages, one list for all formats.

use super::Product;
use super::staged::Packed;
use super::units::{self, UnitText};
use crate::tools::{Result, read, root};

/// Maintainer of packages without a named one; the domain is reserved (RFC 2606).
pub const UNNAMED: &str = "the onbeat authors <onbeat@packages.invalid>";

/// A package.
pub struct Package {
    /// Name of the package, of its crate and of its program.
    pub name: &'static str,
    pub summary: &'static str,
    /// Lines of at most 75 columns.
    pub description: &'static [&'static str],
    pub suggests: &'static str,
    pub formats: &'static [PackageFormat],
    /// The name under which the farm's program prints its pages, as boards' programs are small; if
    /// none, it prints its own.
    pub described_as: Option<&'static str>,
    /// Units, all of them disabled after an installation.
    pub units: &'static [(&'static str, UnitText)],
    /// Files of the repository, and their places below the package's folder of documents.
    pub documents: &'static [(&'static str, &'static str)],
    /// True if its program is not static: only for this machine's architecture, with its libraries.
    pub is_dynamic: bool,
    /// True if a part of its program is in C, for which no foreign compiler is used.
    pub has_c: bool,
}

/// A shell with completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// A format of packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageFormat {
    Deb,
    Rpm,
    Tarball,
}

/// Names of the packages.
pub const NAMES: [&str; 3] = [ONBEAT.name, PUSH.name, FARM.name];

/// Every package.
pub const ALL: &[Package] = &[ONBEAT, PUSH, FARM];

const ONBEAT: Package = Package {
    name: "onbeat",
    summary: "Measure, explain and fix wake-up latency on real-time Linux",
    description: &[
        "onbeat measures the latency of every CPU in nanoseconds, names the thread,",
        "interrupt or function that delayed each wake-up, judges the settings of",
        "the machine, changes them through a journal that undoes every change, and",
        "records the wake-ups of a real-time application for months.",
        "",
        "Nothing is started and no setting is changed by the installation. The",
        "settings of tuned and irqbalance stay theirs unless onbeat is asked to",
        "take them over.",
    ],
    suggests: "onbeat-push",
    formats: &[PackageFormat::Deb, PackageFormat::Rpm, PackageFormat::Tarball],
    described_as: None,
    units: &[
        ("onbeat-watch.service", UnitText::Watch),
        ("onbeat-tune-undo.service", UnitText::File("packaging/onbeat-tune-undo.service")),
    ],
    documents: &[
        ("README.md", "README.md"),
        ("CHANGELOG.md", "CHANGELOG.md"),
        ("docs/installing.md", "installing.md"),
        ("examples/robot/README.md", "examples/robot/README.md"),
        ("examples/robot/careless.c", "examples/robot/careless.c"),
        ("examples/robot/careless.rs", "examples/robot/careless.rs"),
        ("examples/robot/good.c", "examples/robot/good.c"),
        ("examples/robot/good.rs", "examples/robot/good.rs"),
    ],
    is_dynamic: false,
    has_c: false,
};

const PUSH: Package = Package {
    name: "onbeat-push",
    summary: "Send a board's latency measurements to a farm of onbeat",
    description: &[
        "onbeat-push sends the runs and records of onbeat from this board to an",
        "onbeat-farm, over HTTPS, and nothing while onbeat measures.",
    ],
    suggests: "onbeat",
    formats: &[PackageFormat::Deb, PackageFormat::Rpm, PackageFormat::Tarball],
    described_as: Some("push"),
    units: &[("onbeat-push.service", UnitText::Page("docs/farm/boards.md"))],
    documents: &[("CHANGELOG.md", "CHANGELOG.md"), ("docs/farm/boards.md", "boards.md")],
    is_dynamic: false,
    has_c: true,
};

/// It prints the pages of the sender, too.
pub const FARM: Package = Package {
    name: "onbeat-farm",
    summary: "Store the latency measurements of many boards and show them",
    description: &[
        "onbeat-farm receives runs and records of onbeat from many boards, stores",
        "them for years, shows them in a browser and reports when a board became",
        "worse, since when and with which kernel.",
    ],
    suggests: "onbeat, postgresql",
    formats: &[PackageFormat::Deb],
    described_as: None,
    units: &[
        ("onbeat-farm.service", UnitText::Page("docs/farm-setup.md")),
        ("onbeat-farm-backup.service", UnitText::Page("docs/farm-setup.md")),
        ("onbeat-farm-backup.timer", UnitText::Page("docs/farm-setup.md")),
        ("onbeat-farm-prune.service", UnitText::Page("docs/farm-setup.md")),
        ("onbeat-farm-prune.timer", UnitText::Page("docs/farm-setup.md")),
    ],
    documents: &[
        ("CHANGELOG.md", "CHANGELOG.md"),
        ("docs/farm-setup.md", "farm-setup.md"),
        ("docs/farm/start.md", "farm/start.md"),
        ("docs/farm/api.md", "farm/api.md"),
        ("docs/farm/boards.md", "farm/boards.md"),
        ("docs/farm/pages.md", "farm/pages.md"),
        ("docs/farm/retention.md", "farm/retention.md"),
        ("docs/farm/scaling.md", "farm/scaling.md"),
        ("docs/farm/security.md", "farm/security.md"),
        ("docs/farm/grafana-dashboard.json", "examples/grafana-dashboard.json"),
        ("docs/farm/alerts.yaml", "examples/alerts.yaml"),
        ("docs/farm/nginx.conf", "examples/nginx.conf"),
        ("docs/farm/Caddyfile", "examples/Caddyfile"),
    ],
    is_dynamic: true,
    has_c: true,
};

impl Package {
    /// True if it can be built for this architecture on this machine.
    pub fn is_for(&self, arch: &str) -> bool {
        arch == std::env::consts::ARCH || !(self.is_dynamic || self.has_c)
    }
}

impl PackageFormat {
    /// Folder below which everything is installed.
    pub fn prefix(self) -> &'static str {
        if self == PackageFormat::Tarball { "/usr/local" } else { "/usr" }
    }

    /// Zsh's folder of completions: Debian keeps that of packages apart.
    fn zsh(self) -> &'static str {
        if self == PackageFormat::Deb { "share/zsh/vendor-completions" } else { "share/zsh/site-functions" }
    }
}

/// Files of a package, sorted by their place below the format's prefix; the program is the first.
pub fn files(product: &Product, format: PackageFormat) -> Result<Vec<Packed>> {
    let (package, manual) = (product.package, product.manual);
    let name = package.name;
    let documents = format!("share/doc/{name}");
    let program = Packed::program(&format!("bin/{name}"), read(&product.program.path)?);
    let mut rest = vec![
        Packed::gzipped(&format!("{documents}/crates.txt.gz"), &product.crates.licences()?)?,
        Packed::text(&format!("{documents}/{name}.cdx.json"), product.crates.sbom(product.release)?),
    ];
    for (page, roff) in &manual.pages {
        rest.push(Packed::gzipped(&format!("share/man/man1/{page}.1.gz"), roff.as_bytes())?);
    }
    for (shell, script) in &manual.completions {
        let place = match shell {
            Shell::Bash => format!("share/bash-completion/completions/{name}"),
            Shell::Zsh => format!("{}/_{name}", format.zsh()),
            Shell::Fish => format!("share/fish/vendor_completions.d/{name}.fish"),
        };
        rest.push(Packed::text(&place, script.clone()));
    }
    for (unit, text) in package.units {
        let text = units::text(unit, *text, format.prefix())?;
        rest.push(Packed::text(&format!("lib/systemd/system/{unit}"), text));
    }
    for (from, to) in package.documents {
        rest.push(Packed::file(&format!("{documents}/{to}"), read(&root().join(from))?));
    }
    if format != PackageFormat::Deb {
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            rest.push(Packed::file(&format!("{documents}/{licence}"), read(&root().join(licence))?));
        }
    }
    rest.sort_by(|a, b| a.place.cmp(&b.place));
    Ok([vec![program], rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packaged_file_is_in_the_repository() {
        for package in ALL {
            for (from, to) in package.documents {
                assert!(root().join(from).is_file(), "{}: {from}", package.name);
                assert!(!to.starts_with('/') && !to.contains(".."), "{to}");
            }
            let scripts = root().join("packaging/debian").join(package.name);
            assert!(scripts.join("postrm").is_file(), "{}", scripts.display());
        }
    }

    #[test]
    fn every_example_of_the_repository_is_packaged() {
        let packaged = |path: &str| ALL.iter().flat_map(|package| package.documents).any(|row| row.0 == path);
        for folder in ["examples/robot", "docs/farm"] {
            for entry in std::fs::read_dir(root().join(folder)).unwrap() {
                let path = format!("{folder}/{}", entry.unwrap().file_name().to_string_lossy());
                assert!(packaged(&path), "{path} is in no package: add it to `documents`");
            }
        }
    }

    #[test]
    fn a_description_fits_the_field_of_a_package() {
        for package in ALL {
            assert!(package.summary.len() < 80 && !package.summary.ends_with('.'), "{}", package.summary);
            assert!(package.description.iter().all(|line| line.len() <= 78), "{}", package.name);
        }
    }
}
