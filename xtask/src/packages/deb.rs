//! Packages of Debian, by `cargo-deb`.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::Product;
use super::contents::{PackageFormat, files};
use super::programs::tool;
use super::staged::Packed;
use crate::tools::{Result, Tool, read, root, write};

/// Writes the package.
pub fn pack(product: &Product, out: &Path) -> Result<PathBuf> {
    let (package, release) = (product.package, product.release);
    let scripts = root().join("packaging/debian").join(package.name);
    let mut all = files(product, PackageFormat::Deb)?;
    let documents = format!("share/doc/{}", package.name);
    let changes = format!("{documents}/CHANGELOG.md");
    for file in all.iter_mut().filter(|file| file.place == changes) {
        *file = Packed::gzipped(&format!("{documents}/changelog.gz"), &file.bytes)?;
    }
    all.push(Packed::text(
        &format!("{documents}/copyright"),
        copyright(package.name, &release.date("+%Y")?)?,
    ));
    if let Ok(overrides) = read(&scripts.join("lintian-overrides")) {
        all.push(Packed::file(&format!("share/lintian/overrides/{}", package.name), overrides));
    }
    let libraries = if package.is_dynamic { "$auto, " } else { "" };
    let manifest = json!({
        "maintainer": release.maintainer,
        "section": "utils",
        "priority": "optional",
        // The snippets of systemd call its program.
        "depends": format!("{libraries}init-system-helpers (>= 1.54)"),
        "suggests": package.suggests,
        "extended-description": description(package.description),
        "maintainer-scripts": scripts,
        "changelog": "changelog",
        "systemd-units": { "enable": false, "start": false },
    });
    let stage = product.stage("deb", &all, "deb", manifest)?;
    write(&stage.join("changelog"), changelog(product)?)?;
    Tool::new(tool("cargo-deb")?)
        .args(["--quiet", "--no-build", "--no-strip", "--offline", "--target", &product.program.triple])
        .args(["--manifest-path", &stage.join("Cargo.toml").display().to_string()])
        .args(["--output", &out.display().to_string()])
        .env("CARGO_TARGET_DIR", stage.join("target").display().to_string())
        .env("SOURCE_DATE_EPOCH", release.epoch.to_string())
        .quiet()
        .text()?;
    super::only_with(out, &format!("{}_", package.name), &format!("_{}.deb", debian_arch(product.arch)))
}

/// Debian's name of an architecture.
fn debian_arch(arch: &str) -> &str {
    match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Lines of a description, an empty one as a dot.
fn description(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The changes in Debian's format (deb-changelog(5)).
fn changelog(product: &Product) -> Result<String> {
    let release = product.release;
    Ok(format!(
        "{} ({}-1) unstable; urgency=medium\n\n  * Release {}; its changes are in changelog.gz.\n\n \
         -- {}  {}\n",
        product.package.name,
        release.version,
        release.version,
        release.maintainer,
        release.date("+%a, %d %b %Y %H:%M:%S +0000")?
    ))
}

/// The licence of the package in Debian's format (copyright-format 1.0).
fn copyright(name: &str, year: &str) -> Result<String> {
    let mit = String::from_utf8_lossy(&read(&root().join("LICENSE-MIT"))?).into_owned();
    let (owner, text) = mit.split_once("\n\nPermission").ok_or("LICENSE-MIT: no permission")?;
    let owner = owner.lines().last().unwrap_or_default().trim_start_matches("Copyright (c) ");
    let text = format!("Permission{text}");
    let text: Vec<&str> =
        text.trim_end().lines().map(|line| if line.is_empty() { "." } else { line }).collect();
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: onbeat\n\
         Comment: The licences of the linked crates are in /usr/share/doc/{name}/crates.txt.gz.\n\n\
         Files: *\nCopyright: {year}, {owner}\nLicense: Expat or Apache-2.0\n\n\
         License: Expat\n {}\n\n\
         License: Apache-2.0\n On Debian systems the text of this licence is in\n \
         /usr/share/common-licenses/Apache-2.0.\n",
        text.join("\n ")
    ))
}
