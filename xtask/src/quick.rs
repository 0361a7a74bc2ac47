//! The tests of what changed, for the minutes between two edits; the gate remains `cargo xtask ci`.

use std::collections::BTreeSet;

use crate::tools::{Result, Tool, root};

/// Cases of a property test here; the gate runs all of them.
const CASES: &str = "16";

/// What is tested, from the paths that changed.
#[derive(Debug, Default, PartialEq)]
struct Touched {
    /// Modules of the library, as `stats::tail::`.
    modules: BTreeSet<String>,
    /// Integration tests by name.
    tests: BTreeSet<String>,
    xtask: bool,
    /// The library as a whole: its manifest or its root changed.
    all: bool,
}

/// Checks that everything builds, and runs the tests of what is not committed, or else of the last commit.
pub fn run() -> Result<()> {
    let git = |args: &[&str]| Tool::new("git").args(args).dir(&root()).quiet().text();
    let mut paths = git(&["status", "--porcelain", "--no-renames", "--untracked-files=all"])?
        .lines()
        .filter_map(|line| line.get(3..).map(str::to_string))
        .collect::<Vec<_>>();
    if paths.is_empty() {
        paths = git(&["show", "--name-only", "--format=", "HEAD"])?.lines().map(str::to_string).collect();
    }
    let touched = Touched::by(&paths);
    cargo(&["check", "--workspace", "--all-targets", "--quiet"])?;
    if touched.all || !touched.modules.is_empty() {
        let filters = touched.modules.iter().filter(|_| !touched.all).map(String::as_str);
        cargo(&["test", "--quiet", "--lib", "--"].into_iter().chain(filters).collect::<Vec<_>>())?;
    }
    if touched.xtask {
        cargo(&["test", "--quiet", "--package", "xtask"])?;
    }
    // The rules of the tree cost a second, whatever changed.
    for test in touched.tests.iter().map(String::as_str).chain(["tidy"]).collect::<BTreeSet<_>>() {
        cargo(&["test", "--quiet", "--test", test])?;
    }
    Ok(())
}

impl Touched {
    fn by(paths: &[String]) -> Touched {
        let mut touched = Touched::default();
        for path in paths {
            let parts: Vec<&str> = path.split('/').collect();
            match parts.as_slice() {
                ["src", "main.rs"] => {}
                ["src", "lib.rs"] | ["Cargo.toml" | "Cargo.lock"] => touched.all = true,
                ["src", folders @ .., file] => {
                    let name = file.strip_suffix(".rs").unwrap_or(file);
                    // A file's folder: its neighbours use it first.
                    let module = if folders.is_empty() { name.to_string() } else { folders.join("::") };
                    touched.modules.insert(format!("{module}::"));
                }
                ["tests", "corpus", ..] => {
                    touched.modules.insert("rules::".to_string());
                }
                ["tests", "fixtures", ..] => {
                    touched.modules.insert("foreign::".to_string());
                }
                ["tests", name, ..] => {
                    touched.tests.insert(name.strip_suffix(".rs").unwrap_or(name).to_string());
                }
                ["xtask", ..] => touched.xtask = true,
                _ => {}
            }
        }
        touched
    }
}

fn cargo(args: &[&str]) -> Result<()> {
    Tool::new("cargo").args(args).env("PROPTEST_CASES", CASES).dir(&root()).show()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_known_by_its_tests() {
        let by = |paths: &[&str]| Touched::by(&paths.iter().map(|path| path.to_string()).collect::<Vec<_>>());
        let set = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<BTreeSet<_>>();
        let touched =
            by(&["src/stats/tail/gev.rs", "src/units.rs", "tests/pages.rs", "tests/answers/place.rs"]);
        assert_eq!(touched.modules, set(&["stats::tail::", "units::"]));
        assert_eq!(touched.tests, set(&["answers", "pages"]));
        assert!(!touched.all && !touched.xtask);
        assert!(by(&["src/lib.rs"]).all && by(&["xtask/src/ci.rs"]).xtask);
        assert_eq!(by(&["README.md", "src/main.rs"]), Touched::default());
    }
}
