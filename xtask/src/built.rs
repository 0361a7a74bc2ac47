//! The workspace as built by the tests. A different selection of packages would change the features
//! of shared dependencies, and rebuild most of it.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::tools::{Result, Tool, root, target};

/// All packages with the features of examples, except the fuzz targets, which need libFuzzer.
pub const WORKSPACE: [&str; 5] =
    ["--workspace", "--exclude", "onbeat-fuzz", "--features", "onbeat-farm/fixture"];

/// A program or an example (`examples/NAME`) of the workspace: a debug build.
pub fn program(name: &str) -> Result<PathBuf> {
    static BUILT: OnceLock<Result<()>> = OnceLock::new();
    let build =
        || Tool::new("cargo").args(["build", "--quiet", "--all-targets"]).args(WORKSPACE).dir(&root());
    BUILT.get_or_init(|| build().show()).clone()?;
    Ok(target("debug")?.join(name))
}
