//! Packages of Fedora and its kin, by `cargo-generate-rpm`.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::Product;
use super::contents::{PackageFormat, files};
use super::programs::tool;
use crate::tools::{Result, Tool};

/// Writes the package.
pub fn pack(product: &Product, out: &Path) -> Result<PathBuf> {
    let (package, release) = (product.package, product.release);
    let all = files(product, PackageFormat::Rpm)?;
    let units: Vec<&str> = package.units.iter().map(|(name, _)| *name).collect();
    // Presets decide at an installation, and Fedora's disable; systemd reloads by its own trigger.
    let removal = format!(
        "if [ $1 -eq 0 ] && [ -x /usr/bin/systemctl ]; then\n    systemctl --no-reload disable --now {} \
         >/dev/null 2>&1 || :\nfi\n",
        units.join(" ")
    );
    let manifest = json!({
        "summary": package.summary,
        "release": "1",
        "auto-req": "no",
        "pre_uninstall_script": removal,
    });
    let stage = product.stage("rpm", &all, "generate-rpm", manifest)?;
    Tool::new(tool("cargo-generate-rpm")?)
        .args(["--arch", product.arch, "--payload-compress", "xz"])
        .args(["--target", &product.program.triple])
        .args(["--output", &out.display().to_string()])
        .env("SOURCE_DATE_EPOCH", release.epoch.to_string())
        .env("CARGO_TARGET_DIR", stage.join("target").display().to_string())
        .dir(&stage)
        .quiet()
        .text()?;
    let end = format!(".{}.rpm", product.arch);
    super::only_with(out, &format!("{}-{}", package.name, release.version), &end)
}
