//! The tests of changed code, for use between two edits; the gate remains `cargo xtask ci`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::tools::{Result, Tool, root};

/// Cases of a property test here; the gate runs all of them.
const CASES: &str = "16";

/// Selection of tests, from the diff.
#[derive(Debug, Default, PartialEq)]
struct Touched {
    crates: BTreeSet<String>,
    /// Crates with a changed line that contains `pub`: their dependents are tested, too.
    interfaces: BTreeSet<String>,
    /// Modules of the integration tests, `answers`.
    modules: BTreeSet<String>,
}

/// Checks that everything builds, and runs the tests of uncommitted changes, or otherwise of the
/// last commit.
pub fn run() -> Result<()> {
    let git = |args: &[&str]| Tool::new("git").args(args).dir(&root()).quiet().text();
    let mut changes = git(&["diff", "--unified=0", "--no-renames", "HEAD"])?;
    for path in git(&["ls-files", "--others", "--exclude-standard"])?.lines() {
        changes += &format!("+++ b/{path}\n");
    }
    if changes.is_empty() {
        changes = git(&["show", "--unified=0", "--no-renames", "--format=", "HEAD"])?;
    }
    let mut touched = Touched::by(&changes);
    touched.crates.extend(dependents(&touched.interfaces)?);
    cargo(&["check", "--workspace", "--all-targets", "--quiet"])?;
    if !touched.crates.is_empty() {
        let packages = touched.crates.iter().flat_map(|name| ["--package", name]);
        cargo(&["test", "--quiet", "--lib", "--bins"].into_iter().chain(packages).collect::<Vec<_>>())?;
    }
    // The rules of the tree cost seconds, whatever changed.
    touched.modules.insert("tidy".to_string());
    let modules = touched.modules.iter().map(String::as_str);
    let test = ["test", "--quiet", "--package", "onbeat", "--test", "it", "--"];
    cargo(&test.into_iter().chain(modules).collect::<Vec<_>>())
}

impl Touched {
    /// Parses the lines of a diff as printed by git.
    fn by(changes: &str) -> Touched {
        let mut touched = Touched::default();
        let mut current = None;
        for line in changes.lines() {
            let path = line.strip_prefix("+++ b/").or_else(|| line.strip_prefix("--- a/"));
            if let Some(path) = path {
                current = touched.add(path);
            } else if line.starts_with(['+', '-']) && line[1..].trim_start().starts_with("pub ") {
                touched.interfaces.extend(current.clone());
            }
        }
        touched
    }

    /// Adds the tests of a file, and returns the crate that it is a source of.
    fn add(&mut self, path: &str) -> Option<String> {
        let parts: Vec<&str> = path.split('/').collect();
        let owner = match parts.as_slice() {
            ["crates", _, "tests", "it", module, ..] => {
                self.modules.insert(module.trim_end_matches(".rs").to_string());
                return None;
            }
            // Programs that are not called as their folders.
            ["crates", "farm", ..] => "onbeat-farm",
            ["crates", "push", ..] => "onbeat-push",
            ["crates", name, ..] => *name,
            ["xtask", ..] => "xtask",
            ["tests", "corpus", ..] => "rules",
            ["tests", "fixtures", ..] => {
                self.modules.insert("screens".to_string());
                "bundle"
            }
            ["tests", module, ..] => {
                self.modules.insert((*module).to_string());
                return None;
            }
            _ => return None,
        };
        self.crates.insert(owner.to_string());
        Some(owner.to_string())
    }
}

/// The crates that use one of these directly.
fn dependents(used: &BTreeSet<String>) -> Result<Vec<String>> {
    let args = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let text = Tool::new("cargo").args(args).dir(&root()).quiet().text()?;
    let metadata: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let uses = |package: &&Value| {
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        dependencies.filter_map(|other| other["name"].as_str()).any(|name| used.contains(name))
    };
    let packages = metadata["packages"].as_array().into_iter().flatten().filter(uses);
    Ok(packages.filter_map(|package| package["name"].as_str().map(str::to_string)).collect())
}

fn cargo(args: &[&str]) -> Result<()> {
    Tool::new("cargo").args(args).env("PROPTEST_CASES", CASES).dir(&root()).show()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_its_tests() {
        let set = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<BTreeSet<_>>();
        let touched = Touched::by(
            "--- a/crates/stats/src/law.rs\n+++ b/crates/stats/src/law.rs\n@@ -1 +1 @@\n-    a();\n\
             +    b();\n\
             +++ b/crates/trace/src/page.rs\n+    pub fn c() {}\n\
             +++ b/xtask/src/ci.rs\n+++ b/tests/pages/x/trace\n\
             +++ b/crates/onbeat/tests/it/answers/place.rs\n+pub fn d() {}\n+++ b/README.md\n",
        );
        assert_eq!(touched.crates, set(&["stats", "trace", "xtask"]));
        assert_eq!(touched.interfaces, set(&["trace"]));
        assert_eq!(touched.modules, set(&["answers", "pages"]));
        let names = dependents(&set(&["rules"])).unwrap();
        assert!(names.contains(&"report".to_string()) && !names.contains(&"stats".to_string()), "{names:?}");
    }
}
