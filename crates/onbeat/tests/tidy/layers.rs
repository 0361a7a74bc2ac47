//! Who may use whom: the modules' boundaries, which no compiler holds inside one crate.

use super::tree::{Source, rust_files};

/// What a top module may use besides itself; `bundle::run` are the plain types of a run.
const MAY_USE: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("error", &[]),
    ("text", &[]),
    ("host", &["units"]),
    ("stats", &["units", "error", "bundle::run"]),
    ("facts", &["units", "error", "bundle::run", "stats"]),
    ("config", &["units", "error", "bundle::run"]),
    ("plan", &["units", "error", "bundle::run", "stats", "facts", "config"]),
    ("foreign", &["units", "error", "bundle::run", "stats"]),
    ("trace", &["units", "error"]),
    ("timeline", &["units", "error", "bundle::run", "stats", "facts", "trace"]),
    ("rules", &["units", "error", "bundle::run", "stats", "facts", "timeline"]),
    (
        "report",
        &["units", "error", "bundle::run", "stats", "facts", "plan", "trace", "timeline", "rules", "foreign"],
    ),
    ("bundle", &["units", "error", "stats", "trace", "host"]),
    ("measure", &["units", "error", "bundle", "stats", "plan", "facts", "host"]),
    ("load", &["units", "error", "bundle", "plan", "host"]),
    (
        "hunt",
        &[
            "units", "error", "bundle", "stats", "facts", "plan", "measure", "trace", "timeline", "rules",
            "host",
        ],
    ),
    ("tune", &["units", "error", "bundle", "facts", "rules", "host"]),
];

/// Files that may use more, or less, than their module: gathering facts is the one reading of the pure side.
const FILES: &[(&str, &[&str])] = &[
    ("src/facts/mod.rs", &["units", "error", "bundle::run", "stats", "host"]),
    ("src/facts/gather.rs", &["units", "error", "bundle::run", "stats", "host"]),
    ("src/facts/groups.rs", &["units", "error", "bundle::run", "stats", "host"]),
    ("src/facts/irqs.rs", &["units", "error", "bundle::run", "stats", "host"]),
    ("src/facts/limits_conf.rs", &["units", "error", "bundle::run", "stats", "host"]),
    ("src/facts/survey.rs", &["units", "error", "bundle::run", "stats", "host"]),
    ("src/facts/swaps.rs", &["units", "error", "bundle::run", "stats", "host"]),
    ("src/facts/tasks.rs", &["units", "error", "bundle::run", "stats", "host"]),
    ("src/facts/texts.rs", &["units", "error", "bundle::run", "stats", "host"]),
    ("src/facts/timer_list.rs", &["units", "error", "bundle::run", "stats", "host"]),
    ("src/facts/whole.rs", &["units", "error", "bundle::run", "stats", "host"]),
    ("src/facts/threads.rs", &["units", "error", "bundle::run", "stats", "host"]),
    ("src/bundle/run.rs", &["units", "stats"]),
];

/// What any of them may use: words, which know of nothing else.
const COMMON: &str = "text";

/// Functions from values to values: no files, clock, threads or environment.
const PURE: &[&str] = &[
    "units", "error", "text", "facts", "stats", "plan", "config", "report", "foreign", "trace", "timeline",
    "rules",
];

/// Paths of the standard library that a pure module does not name.
const IMPURE: &[&str] = &["std::fs", "std::env", "std::process", "std::thread", "std::net"];
const CLOCKS: &[&str] = &["Instant::now", "SystemTime"];

/// The top module of a file under `src/`; the crate's roots have none.
fn module_of(path: &str) -> Option<&str> {
    let name = path.strip_prefix("src/")?;
    let module = name.split('/').next()?.trim_end_matches(".rs");
    (!["main", "lib", "cli"].contains(&module)).then_some(module)
}

/// The paths behind a prefix such as `crate::`, with groups in braces taken apart one level deep.
fn paths_after(code: &str, prefix: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            paths.push(path_at(rest));
            continue;
        };
        let mut depth = 0;
        let mut fresh = true;
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => fresh = true,
                _ if fresh && !c.is_whitespace() => {
                    paths.push(path_at(&group[at..]));
                    fresh = false;
                }
                _ => {}
            }
        }
    }
    paths
}

fn path_at(text: &str) -> String {
    text.chars().take_while(|&c| c.is_alphanumeric() || c == '_' || c == ':').collect()
}

/// `super::` as often as it leads from this file to the crate's root.
fn supers_to_root(path: &str) -> String {
    let levels = path.trim_start_matches("src/").trim_end_matches("/mod.rs").split('/').count();
    "super::".repeat(levels)
}

fn layering(source: &Source) -> Vec<String> {
    let Some(module) = module_of(&source.path) else { return Vec::new() };
    let file = FILES.iter().find(|file| file.0 == source.path);
    let Some((_, allowed)) = file.or_else(|| MAY_USE.iter().find(|entry| entry.0 == module)) else {
        return vec![format!("{}: the module {module} is not in the table of layers", source.path)];
    };
    let code = source.product_code();
    let mut used = paths_after(&code, "crate::");
    used.extend(paths_after(&code, &supers_to_root(&source.path)));
    let fine = |path: &String| {
        let is =
            |name: &str| path == name || path.strip_prefix(name).is_some_and(|rest| rest.starts_with("::"));
        is(module) || is(COMMON) || is("super") || allowed.iter().any(|name| is(name))
    };
    used.retain(|path| !fine(path));
    used.iter().map(|path| format!("{} uses crate::{path}, which {module} may not", source.path)).collect()
}

fn impurity(source: &Source) -> Vec<String> {
    let pure = module_of(&source.path).is_some_and(|module| PURE.contains(&module));
    if !pure && source.path != "src/bundle/run.rs" {
        return Vec::new();
    }
    let code = source.product_code();
    let mut named: Vec<String> =
        paths_after(&code, "std::").into_iter().map(|path| format!("std::{path}")).collect();
    named.retain(|path| {
        IMPURE
            .iter()
            .any(|bad| path == bad || path.strip_prefix(bad).is_some_and(|rest| rest.starts_with("::")))
    });
    named.extend(CLOCKS.iter().filter(|clock| code.contains(**clock)).map(|clock| (*clock).to_owned()));
    named.iter().map(|path| format!("{} is pure and names {path}", source.path)).collect()
}

#[test]
fn modules_use_only_what_they_may() {
    super::expect_none(rust_files().iter().flat_map(layering));
}

#[test]
fn pure_modules_touch_nothing() {
    super::expect_none(rust_files().iter().flat_map(impurity));
}

#[test]
fn forbidden_uses_are_found() {
    for (path, text) in [
        ("src/facts/cmdline.rs", "use crate::host::Host;\n"),
        ("src/stats/mod.rs", "use crate::{\n    units::{Nanos, Cpu},\n    measure::run,\n};\n"),
        ("src/report/text.rs", "fn f() { crate::cli::run() }"),
        ("src/host/rt.rs", "use crate::stats::histogram::Row;"),
        ("src/foreign/mod.rs", "use crate::bundle::read::Bundle;"),
        ("src/foreign/mod.rs", "use super::host::Host;"),
        ("src/foreign/date.rs", "use super::super::host::Host;"),
        ("src/bundle/run.rs", "use crate::host::Host;"),
        ("src/novel/mod.rs", ""),
    ] {
        assert_eq!(layering(&Source::new(path, text)).len(), 1, "{path}: {text}");
    }
    for (path, text) in [
        ("src/facts/mod.rs", "use crate::host::Host;"),
        ("src/foreign/mod.rs", "use crate::bundle::run::Run; use super::units::Nanos;"),
        ("src/foreign/date.rs", "// crate::host\nuse super::{Context, date};\nuse crate::foreign::import;"),
        ("src/stats/mod.rs", "#[cfg(test)]\nmod tests { use crate::cli; }"),
        ("src/cli/mod.rs", "use crate::host::Host;"),
    ] {
        assert_eq!(layering(&Source::new(path, text)), [""; 0], "{path}: {text}");
    }
}

#[test]
fn impure_names_are_found() {
    for text in [
        "use std::fs::File;",
        "use std::{fmt, fs};",
        "fn f() { std::env::var(\"A\"); }",
        "use std::process;",
        "let t = Instant::now();",
        "use std::time::SystemTime;",
    ] {
        assert_eq!(impurity(&Source::new("src/stats/a.rs", text)).len(), 1, "{text}");
        assert_eq!(impurity(&Source::new("src/host/a.rs", text)).len(), 0, "{text}");
    }
    let fine =
        "//! std::fs\nuse std::fmt;\nconst V: &str = env!(\"CARGO_PKG_VERSION\");\nlet t = \"std::fs\";";
    assert_eq!(impurity(&Source::new("src/stats/a.rs", fine)), [""; 0]);
}
