//! Programs to pack, and the tools that pack them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::contents::Package;
use crate::dist;
use crate::tools::{Result, Tool, root, target};

/// Tools from crates.io, with the versions that were tried.
const TOOLS: [(&str, &str); 2] = [("cargo-deb", "3.8.0"), ("cargo-generate-rpm", "0.21.1")];

/// A built program.
#[derive(Clone)]
pub struct PackagedProgram {
    pub path: PathBuf,
    /// Its target, as Rust names it.
    pub triple: String,
}

/// Programs, each built once.
pub struct Programs {
    built: bool,
    known: BTreeMap<(&'static str, String), PackagedProgram>,
}

impl Programs {
    /// With `built`, those of an earlier build are taken.
    pub fn new(built: bool) -> Programs {
        Programs { built, known: BTreeMap::new() }
    }

    /// The program of a package.
    pub fn of(&mut self, package: &'static Package, arch: &str) -> Result<PackagedProgram> {
        let key = (package.name, arch.to_owned());
        if let Some(program) = self.known.get(&key) {
            return Ok(program.clone());
        }
        let program = program(package, arch, self.built)?;
        self.known.insert(key, program.clone());
        Ok(program)
    }
}

fn program(package: &Package, arch: &str, built: bool) -> Result<PackagedProgram> {
    if package.is_dynamic {
        let triple = dist::rust_target(arch, "gnu");
        let path = target(&format!("{triple}/farm"))?.join(package.name);
        if !(built && path.exists()) {
            build_dynamic(package, &triple)?;
        }
        return Ok(PackagedProgram { path, triple });
    }
    let kept = target("dist")?.join(format!("{}-{arch}", package.name));
    let path = match (built && kept.exists(), package.has_c) {
        (true, _) => kept,
        (false, true) => dist::build_push()?,
        (false, false) => dist::build(arch)?,
    };
    Ok(PackagedProgram { path, triple: dist::rust_target(arch, "musl") })
}

/// The server's program: with the machine's C library, so that names are resolved as on the
/// machine. It runs with this C library and later ones.
fn build_dynamic(package: &Package, triple: &str) -> Result<()> {
    let flags = format!("CARGO_TARGET_{}_RUSTFLAGS", triple.to_uppercase().replace('-', "_"));
    Tool::new("cargo")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("CARGO_INCREMENTAL")
        .args(["build", "--quiet", "--locked", "--profile", "farm", "--package", package.name])
        .args(["--target", triple])
        .env(&flags, dist::remapped()?)
        .env("CARGO_PROFILE_FARM_STRIP", "symbols")
        .dir(&root())
        .show()
}

/// Installs missing tools below `target/tools`.
pub fn ensure_tools() -> Result<()> {
    for (name, version) in TOOLS {
        let kept = Tool::new(tool(name)?).args(["--version"]).quiet().text().unwrap_or_default();
        if kept.contains(version) {
            continue;
        }
        let into = target("tools")?;
        Tool::new("cargo")
            .env_remove("RUSTC_WORKSPACE_WRAPPER")
            .args(["install", "--quiet", "--locked", "--force", "--version", version])
            .args(["--root", &into.display().to_string(), name])
            .show()?;
    }
    Ok(())
}

/// The path of a tool.
pub fn tool(name: &str) -> Result<PathBuf> {
    Ok(target("tools/bin")?.join(name))
}
