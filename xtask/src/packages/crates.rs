//! Crates that are linked into a program: their list (CycloneDX) and their licences.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Release;
use super::contents::Package;
use crate::tools::{Result, Tool, read, root};

/// Beginnings of the names of files with a licence.
const LICENCES: [&str; 6] = ["license", "licence", "copying", "copyright", "notice", "unlicense"];

/// Crates of a program.
pub struct Crates {
    package: &'static str,
    all: Vec<Crate>,
}

struct Crate {
    name: String,
    version: String,
    licence: String,
    /// SHA-256 of its archive; none for the crates of this repository.
    checksum: Option<String>,
    folder: PathBuf,
}

/// Version of the workspace.
pub fn version() -> Result<String> {
    let metadata = metadata(&["--no-deps"])?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let found = packages.into_iter().find(|package| package["name"] == "onbeat");
    Ok(found.and_then(|package| package["version"].as_str()).ok_or("onbeat has no version")?.to_owned())
}

fn metadata(args: &[&str]) -> Result<Value> {
    let line = Tool::new("cargo").args(["metadata", "--locked", "--format-version", "1"]).args(args);
    serde_json::from_str(&line.dir(&root()).quiet().text()?).map_err(|error| error.to_string())
}

impl Crates {
    /// The crates of a package's program for a target: without macros, which run at compile time.
    pub fn of(package: &Package, triple: &str) -> Result<Crates> {
        let tree = ["tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none", "--no-dedupe"];
        let tree = Tool::new("cargo").args(tree).args(["--format", "{p}", "--target", triple]);
        let tree = tree.args(["--package", package.name]).dir(&root()).quiet().text()?;
        let linked: BTreeSet<(&str, &str)> = tree.lines().filter_map(name_and_version).collect();
        let lock = String::from_utf8_lossy(&read(&root().join("Cargo.lock"))?).into_owned();
        let sums = checksums(&lock);
        let metadata = metadata(&["--filter-platform", triple])?;
        let mut all = Vec::new();
        for found in metadata["packages"].as_array().into_iter().flatten() {
            let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
            let (name, version) = (text("name"), text("version"));
            if !linked.contains(&(name.as_str(), version.as_str())) {
                continue;
            }
            let checksum = sums.get(&(name.as_str(), version.as_str())).map(|sum| (*sum).to_owned());
            let manifest = PathBuf::from(text("manifest_path"));
            let folder = manifest.parent().unwrap_or(Path::new("/")).to_path_buf();
            // Cargo's old form of an alternative.
            let licence = text("license").replace('/', " OR ").replace("  ", " ");
            all.push(Crate { name, version, licence, checksum, folder });
        }
        all.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
        if all.len() == linked.len() {
            Ok(Crates { package: package.name, all })
        } else {
            Err(format!("{}: {} crates, but {} in cargo metadata", package.name, linked.len(), all.len()))
        }
    }

    /// The list in the format CycloneDX 1.5, JSON.
    pub fn sbom(&self, release: &Release) -> Result<String> {
        let purl = |name: &str, version: &str| format!("pkg:cargo/{name}@{version}");
        let component = |of: &Crate| {
            let mut component = json!({
                "type": "library",
                "bom-ref": purl(&of.name, &of.version),
                "name": of.name,
                "version": of.version,
                "purl": purl(&of.name, &of.version),
                "licenses": [{ "expression": of.licence }],
            });
            if let Some(sum) = &of.checksum {
                component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
            }
            component
        };
        let components: Vec<Value> =
            self.all.iter().filter(|of| of.name != self.package).map(component).collect();
        let document = json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {
                "timestamp": release.date("+%Y-%m-%dT%H:%M:%SZ")?,
                "component": {
                    "type": "application",
                    "bom-ref": purl(self.package, &release.version),
                    "name": self.package,
                    "version": release.version,
                    "licenses": [{ "expression": "MIT OR Apache-2.0" }],
                },
            },
            "components": components,
        });
        Ok(serde_json::to_string_pretty(&document).map_err(|error| error.to_string())? + "\n")
    }

    /// The crates with their licences, and each text once.
    pub fn licences(&self) -> Result<Vec<u8>> {
        let mut page = format!("Crates in {}, and their licences.\n\n", self.package);
        let mut texts: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
        for of in self.all.iter().filter(|of| of.checksum.is_some()) {
            page.push_str(&format!("{} {}: {}\n", of.name, of.version, of.licence));
            for text in licences_in(&of.folder)? {
                let words: Vec<&str> = text.split_whitespace().collect();
                let entry = texts.entry(words.join(" ")).or_insert_with(|| (text.clone(), Vec::new()));
                entry.1.push(format!("{} {}", of.name, of.version));
            }
        }
        for (text, crates) in texts.values() {
            let line = "-".repeat(70);
            page.push_str(&format!("\n{line}\n{}\n\n{}\n", crates.join(", "), text.trim_end()));
        }
        page.push_str(&format!("\n{}\n", "-".repeat(70)));
        let mut page = page.into_bytes();
        page.extend(read(&root().join("packaging/runtime-licences.txt"))?);
        Ok(page)
    }
}

/// Texts of the licences in the folder of a crate, sorted by the names of their files.
fn licences_in(folder: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        path.is_file() && LICENCES.iter().any(|begin| name.starts_with(begin))
    });
    paths.sort();
    paths.iter().map(|path| Ok(String::from_utf8_lossy(&read(path)?).into_owned())).collect()
}

/// Name and version of a line of `cargo tree`, such as `serde v1.0.2 (/path)`.
fn name_and_version(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split(' ');
    Some((words.next()?, words.next()?.strip_prefix('v')?))
}

/// Checksums of a lock file by name and version.
fn checksums(lock: &str) -> BTreeMap<(&str, &str), &str> {
    let field = |block: &'_ str, name: &str| -> Option<std::ops::Range<usize>> {
        let begin = format!("\n{name} = \"");
        let from = block.find(&begin)? + begin.len();
        Some(from..from + block[from..].find('"')?)
    };
    let row = |block| {
        let block: &str = block;
        let get = |name| field(block, name).map(|range| &block[range]);
        Some(((get("name")?, get("version")?), get("checksum")?))
    };
    lock.split("[[package]]").filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_file_has_the_checksums_of_foreign_crates() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry\"\n\
                    checksum = \"00ff\"\n\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        assert_eq!(checksums(lock), BTreeMap::from([(("a", "1.0.0"), "00ff")]));
        assert!(checksums("").is_empty() && checksums("[[package]]\nname = \"a").is_empty());
    }

    #[test]
    fn a_line_of_the_tree_has_a_name_and_a_version() {
        assert_eq!(name_and_version("host v0.1.0 (/x/crates/host)"), Some(("host", "0.1.0")));
        assert_eq!(name_and_version(""), None);
    }
}
