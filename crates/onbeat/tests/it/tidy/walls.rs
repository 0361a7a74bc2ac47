//! Rules of dependencies beyond the manifests, and the match of their picture with the manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

use super::code::{Product, Segments, crate_of, parse};
use super::tree::{files, root};

/// Crates of functions from values to values; `facts` reads, but only through `host`.
const PURE: &[&str] = &["model", "stats", "experiment", "trace", "rules", "report", "facts"];
/// Modules of the standard library that access the world outside the program, and its clocks.
const IMPURE: &[&str] = &["fs", "env", "process", "thread", "net"];
const CLOCKS: &[&str] = &["Instant", "SystemTime"];
/// The only attribute that lifts Clippy's ban on files, clocks and environment from product code.
const LIFTED: &str = concat!("allow(clippy::dis", "allowed_methods)");
const LIFTED_IN: &[&str] = &[
    "crates/farm/src/main.rs",
    "crates/host/src/lib.rs",
    "crates/onbeat/src/main.rs",
    "crates/push/src/main.rs",
];
const UNSAFE_LINT: &str = concat!("unsafe", "_code");

/// Number of type names that are in several files and still to be renamed.
const SHARED_NAMES: usize = 0;

/// Every file of the product, crate by crate.
pub fn product() -> &'static [Product] {
    // Parsing takes most of the time of these tests.
    static PRODUCT: LazyLock<Vec<Product>> = LazyLock::new(|| {
        let mut found: Vec<Product> = roots().iter().flat_map(|root| crate_of(root)).collect();
        found.sort_by(|a, b| a.path.cmp(&b.path));
        assert!(found.len() > 300, "only {} files were found", found.len());
        found
    });
    &PRODUCT
}

fn roots() -> Vec<String> {
    let is_root = |path: &String| path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs");
    files("rs").into_iter().map(|source| source.path).filter(is_root).collect()
}

/// `stats` of `crates/stats/src/law.rs`.
fn crate_name(path: &str) -> &str {
    path.trim_start_matches("crates/").split('/').next().unwrap()
}

fn impurities(file: &Product) -> Vec<String> {
    let reaches_out = |path: &&Segments| {
        let [first, second, ..] = &path[..] else { return false };
        first == "std" && IMPURE.contains(&second.as_str())
            || path.iter().any(|name| CLOCKS.contains(&name.as_str()))
    };
    let named = file.paths.iter().filter(reaches_out);
    named.map(|path| format!("{} is pure and names {}", file.path, path.join("::"))).collect()
}

/// Other files that each file of a crate uses.
///
/// A `pub use` re-exports a name and uses nothing. A module lists and calls the files below it,
/// which use its definitions: such a pair is not a circle.
fn uses(files: &[Product]) -> BTreeMap<&str, BTreeSet<&str>> {
    let by_module: BTreeMap<&[String], &Product> =
        files.iter().map(|file| (&file.module[..], file)).collect();
    let used = |file: &Product| {
        let found = file.paths.iter().filter_map(|path| target(&file.module, path, &by_module, 0));
        found
            .filter(|other| !other.module.starts_with(&file.module))
            .map(|other| other.path.as_str())
            .collect()
    };
    files.iter().map(|file| (file.path.as_str(), used(file))).collect()
}

/// File in which a path ends, through re-exports of other files; none if it leads out of the crate.
fn target<'a>(
    from: &[String],
    path: &[String],
    files: &BTreeMap<&[String], &'a Product>,
    depth: usize,
) -> Option<&'a Product> {
    let supers = path.iter().take_while(|name| *name == "super").count();
    let absolute = match path[0].as_str() {
        "crate" => path[1..].to_vec(),
        "self" => [from, &path[1..]].concat(),
        "super" => [&from[..from.len().checked_sub(supers)?], &path[supers..]].concat(),
        _ if files.contains_key(&[from, &path[..1]].concat()[..]) => [from, path].concat(),
        _ => return None,
    };
    let length = (0..=absolute.len()).rev().find(|length| files.contains_key(&absolute[..*length]))?;
    let file = files[&absolute[..length]];
    match absolute.get(length).and_then(|name| file.reexports.get(name)) {
        Some(elsewhere) if depth < 8 => target(&file.module, elsewhere, files, depth + 1),
        _ => Some(file),
    }
}

/// Shortest way from each file back to itself, each circle once.
fn circles(uses: &BTreeMap<&str, BTreeSet<&str>>) -> BTreeSet<String> {
    let circle = |start: &str| -> Option<String> {
        let mut ways = vec![vec![start]];
        let mut seen = BTreeSet::new();
        while !ways.is_empty() {
            let mut longer = Vec::new();
            for way in ways {
                for next in uses.get(way[way.len() - 1]).into_iter().flatten() {
                    if *next == start {
                        let first = (0..way.len()).min_by_key(|at| way[*at])?;
                        return Some([&way[first..], &way[..=first]].concat().join(" -> "));
                    }
                    if seen.insert(*next) {
                        longer.push([&way[..], &[*next]].concat());
                    }
                }
            }
            ways = longer;
        }
        None
    };
    uses.keys().filter_map(|start| circle(start)).collect()
}

/// Names of types that are in several files; `Args` is clap's, and `Result` an alias of the
/// standard one.
fn shared_names(files: &[Product]) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for file in files {
        file.types.iter().for_each(|name| places.entry(name).or_default().push(&file.path));
    }
    places.retain(|name, places| places.len() > 1 && !["Args", "Result"].contains(name));
    places.iter().map(|(name, places)| format!("{name} is a type of {}", places.join(", "))).collect()
}

/// Other crates of the workspace that each crate's code may name, by its manifest.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        let ours = all.filter(|other| {
            other["kind"].is_null() && other["optional"] == false && !other["path"].is_null()
        });
        (text(&package["name"]), ours.map(|other| text(&other["name"])).collect())
    };
    let packages = metadata["packages"].as_array().unwrap().iter().map(of);
    packages.filter(|(name, _)| !["gate", "onbeat-fuzz", "xtask"].contains(&&**name)).collect()
}

/// Rows below `| crate | may use |` of a document.
fn table(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let rows = text.lines().skip_while(|line| !line.starts_with("| crate | may use |")).skip(2);
    let cells = rows.take_while(|line| line.starts_with('|')).map(|line| line.split('|').map(str::trim));
    let names = |cell: &str| {
        let names = cell.split(',').map(|name| name.trim().trim_matches('`').to_owned());
        names.filter(|name| !name.is_empty() && name != "-").collect::<BTreeSet<_>>()
    };
    cells.filter_map(|mut row| Some((row.nth(1)?.trim_matches('`').to_owned(), names(row.next()?)))).collect()
}

#[test]
fn the_table_of_crates_is_that_of_the_manifests() {
    let document = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    assert_eq!(table(&document), dependencies(), "left: ARCHITECTURE.md, right: the manifests");
}

#[test]
fn pure_crates_reach_nothing_outside() {
    let pure = |file: &&Product| PURE.contains(&crate_name(&file.path));
    super::expect_none(product().iter().filter(pure).flat_map(impurities));
}

#[test]
fn clippys_bans_hold_in_the_product() {
    let lifts = files("rs").into_iter().filter(|source| {
        let product = source.path.starts_with("crates/") && source.path.contains("/src/");
        let inner = format!("\n#![{LIFTED}]");
        product && source.text.contains(&inner) && !LIFTED_IN.contains(&source.path.as_str())
    });
    let product: BTreeSet<&str> = product().iter().map(|file| &*file.path).collect();
    let lifts = lifts.filter(|source| product.contains(&*source.path));
    super::expect_none(lifts.map(|source| format!("{} lifts Clippy's bans", source.path)));
}

#[test]
fn only_host_is_unsafe() {
    let ours = files("rs").into_iter().filter(|source| !source.path.starts_with("crates/host/src/"));
    let lifts = ours.filter(|source| source.text.contains(UNSAFE_LINT));
    super::expect_none(lifts.map(|source| format!("{} names the lint {UNSAFE_LINT}", source.path)));
    let manifests = |path: &str| path.starts_with("crates/") && path.ends_with("/Cargo.toml");
    for source in files("toml").iter().filter(|source| manifests(&source.path)) {
        assert!(source.text.contains("[lints]\nworkspace = true\n"), "{} has lints of its own", source.path);
    }
}

#[test]
fn no_file_uses_itself_through_others() {
    super::expect_none(roots().iter().flat_map(|root| circles(&uses(&crate_of(root)))));
}

#[test]
fn a_type_name_means_one_thing() {
    super::expect_at_most(SHARED_NAMES, shared_names(product()));
}

fn product_of(module: &str, text: &str) -> Product {
    let module: Segments = module.split("::").filter(|name| !name.is_empty()).map(String::from).collect();
    Product { path: format!("src/{}.rs", module.join("/")), module, ..parse(text) }
}

#[test]
fn a_circle_is_found() {
    let files = [
        product_of("", "pub mod a;\nmod b;\npub use b::B;\n"),
        product_of("a", "use crate::B;\nmod c;\n#[cfg(test)]\nmod tests { use crate::d::D; }"),
        product_of("a::c", "fn f() { super::super::d::g() }"),
        product_of("b", "use super::a::{self, c::C};"),
        product_of("d", "use std::fmt;\nuse other::a::B;\nmod e;\nfn g() { e::h() }"),
        product_of("d::e", "use super::D;"),
    ];
    assert_eq!(circles(&uses(&files)), BTreeSet::from(["src/a.rs -> src/b.rs -> src/a.rs".to_owned()]));
}

#[test]
fn what_reaches_out_is_found() {
    for text in [
        "use std::fs::File;",
        "use std::{fmt, fs};",
        "fn f() { std::env::var(\"A\"); }",
        "use std::process;",
        "fn f() { Instant::now(); }",
        "mod tests {}\nuse std::time::SystemTime;",
    ] {
        assert_eq!(impurities(&parse(text)).len(), 1, "{text}");
    }
    let fine =
        "//! std::fs\nuse std::fmt;\nconst T: &str = \"std::fs\";\n#[cfg(test)]\nmod tests { use std::fs; }";
    assert_eq!(impurities(&parse(fine)), [""; 0]);
}

#[test]
fn a_shared_name_and_a_wrong_row_are_found() {
    let files =
        [product_of("a", "pub struct A;\nstruct B;"), product_of("b", "pub(super) enum A {}\nstruct B;")];
    assert_eq!(shared_names(&files), ["A is a type of src/a.rs, src/b.rs"]);
    let rows = table(
        "# x\n| crate | may use | words |\n|---|---|---|\n| `a` | - | b |\n| b | `a`, c | d |\n\n| e |",
    );
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(rows, BTreeMap::from([("a".to_owned(), set(&[])), ("b".to_owned(), set(&["a", "c"]))]));
}
