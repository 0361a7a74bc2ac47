//! The workspace as built by the tests.

use std::path::PathBuf;
use std::sync::OnceLock;

use gate::WORKSPACE;

use crate::tools::{Result, Tool, root, target};

/// A program or an example (`examples/NAME`) of the workspace: a debug build.
pub fn program(name: &str) -> Result<PathBuf> {
    static BUILT: OnceLock<Result<()>> = OnceLock::new();
    let build =
        || Tool::new("cargo").args(["build", "--quiet", "--all-targets"]).args(WORKSPACE).dir(&root());
    BUILT.get_or_init(|| build().show()).clone()?;
    Ok(target("debug")?.join(name))
}
