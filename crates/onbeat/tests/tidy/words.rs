//! What sources and documents may not contain, what each must, and where their links lead.

use super::tree::{Source, code_of, documents, root, rust_files};

/// The only files with `unsafe`.
const UNSAFE_FILES: &[&str] =
    &["src/host/rt.rs", "src/host/rt/place.rs", "src/host/rt/signals.rs", "src/host/heap.rs"];

// Written in two halves, so that this file passes its own check.
const UNFINISHED: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("db", "g!"),
];
const MACHINE_PATHS: &[&str] =
    &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/tm", "p/")];
/// No measurement shows a worst case, and none promises anything.
const PROMISES: &[&str] = &[concat!("wc", "et"), concat!("guaran", "teed")];
const UNWRAP: &str = concat!(".unw", "rap()");

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The lines, from 1, on which the needle stands as a word of its own.
fn lines_with(text: &str, needle: &str) -> Vec<usize> {
    let alone = |line: &str| {
        line.match_indices(needle).any(|(at, _)| {
            let after = &line[at + needle.len()..];
            !(line[..at].ends_with(is_word) || needle.ends_with(is_word) && after.starts_with(is_word))
        })
    };
    text.lines().enumerate().filter(|(_, line)| alone(line)).map(|(n, _)| n + 1).collect()
}

fn places(source: &Source, text: &str, needles: &[&str]) -> Vec<String> {
    let place = |needle: &str| {
        let at = |line| format!("{}:{line} has {needle}", source.path);
        lines_with(text, needle).into_iter().map(at).collect::<Vec<_>>()
    };
    needles.iter().flat_map(|needle| place(needle)).collect()
}

fn unfinished(source: &Source) -> Vec<String> {
    places(source, &source.text, UNFINISHED)
}

fn machine_paths(source: &Source) -> Vec<String> {
    places(source, &source.text, MACHINE_PATHS)
}

fn promises(source: &Source) -> Vec<String> {
    places(source, &source.text.to_lowercase(), PROMISES)
}

fn unwraps(source: &Source) -> Vec<String> {
    let code = source.product_code();
    let lines = code.lines().enumerate().filter(|(_, line)| line.contains(UNWRAP));
    lines.map(|(n, _)| format!("{}:{} unwraps outside a test", source.path, n + 1)).collect()
}

fn undocumented(source: &Source) -> Option<String> {
    let purpose = source.text.strip_prefix("//! ").is_some_and(|rest| !rest.trim().is_empty());
    (!purpose).then(|| format!("{} does not open with its purpose in //!", source.path))
}

/// `unsafe` elsewhere than in the two files, or without its reason above the statement.
fn unsafe_use(source: &Source) -> Vec<String> {
    let code = code_of(&source.text);
    let lines: Vec<&str> = source.text.lines().collect();
    let reasoned = |line: usize| {
        let ends = |text: &str| text.is_empty() || text.ends_with([';', '{', '}']);
        let above = lines[..line - 1].iter().rev().map(|text| text.trim());
        let mut statement = above.take_while(|text| text.starts_with("//") || !ends(text));
        statement.any(|text| text.contains("SAFETY:"))
    };
    let fault = |line: usize| match UNSAFE_FILES.contains(&source.path.as_str()) {
        false => Some(format!("{}:{line} has unsafe outside {UNSAFE_FILES:?}", source.path)),
        true if reasoned(line) => None,
        true => Some(format!("{}:{line} has unsafe without SAFETY: above it", source.path)),
    };
    lines_with(&code, "unsafe").into_iter().filter_map(fault).collect()
}

/// Links of a Markdown file that lead to no file; those with a scheme or to a heading are not followed.
fn dead_links(source: &Source) -> Vec<String> {
    let base = root().join(&source.path);
    let base = base.parent().unwrap();
    let mut fenced = false;
    let mut dead = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        if fenced {
            continue;
        }
        for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or("");
            let leads_out = target.contains("://") || target.starts_with("mailto:");
            if !leads_out && !target.is_empty() && !base.join(target).exists() {
                dead.push(format!("{}:{} links to {target}, which is not there", source.path, number + 1));
            }
        }
    }
    dead
}

fn sources_and_documents() -> impl Iterator<Item = Source> {
    rust_files().into_iter().chain(documents())
}

#[test]
fn nothing_is_left_unfinished() {
    super::expect_none(sources_and_documents().flat_map(|source| unfinished(&source)));
}

#[test]
fn no_path_of_somebodys_machine() {
    // The lab's guests have homes of their own making.
    let ours = sources_and_documents().filter(|source| !source.path.starts_with("xtask/src/live/"));
    super::expect_none(ours.flat_map(|source| machine_paths(&source)));
}

#[test]
fn no_promise_is_made() {
    super::expect_none(sources_and_documents().flat_map(|source| promises(&source)));
}

#[test]
fn nothing_unwraps_outside_tests() {
    super::expect_none(rust_files().iter().flat_map(unwraps));
}

#[test]
fn every_file_opens_with_its_purpose() {
    super::expect_none(rust_files().iter().filter_map(undocumented));
}

#[test]
fn unsafe_is_in_its_place_and_reasoned() {
    super::expect_none(rust_files().iter().flat_map(unsafe_use));
}

#[test]
fn links_lead_somewhere() {
    super::expect_none(documents().iter().flat_map(dead_links));
}

#[test]
fn forbidden_words_are_found() {
    let source = |text: &str| Source::new("src/a.rs", text);
    for word in UNFINISHED {
        assert_eq!(unfinished(&source(&format!("a\n// {word} b\n"))), [format!("src/a.rs:2 has {word}")]);
        assert_eq!(unfinished(&source(&format!("a{word}"))).len(), 0);
    }
    for path in MACHINE_PATHS {
        assert_eq!(machine_paths(&source(&format!("see {path}me"))).len(), 1);
        assert_eq!(machine_paths(&source(&format!("see a{path}me"))).len(), 0);
    }
    for word in PROMISES {
        assert_eq!(promises(&source(&format!("is {}.", word.to_uppercase()))).len(), 1);
    }
    let text = format!("fn f() {{ a(){UNWRAP} }}\n// b{UNWRAP}\n#[cfg(test)]\nmod tests {{ c{UNWRAP} }}\n");
    assert_eq!(unwraps(&source(&text)).len(), 1);
    assert!(undocumented(&source("use std::fmt;\n//! late")).is_some());
    assert!(undocumented(&source("//! Says why.")).is_none());
}

#[test]
fn unreasoned_unsafe_is_found() {
    let rt = |text: &str| unsafe_use(&Source::new("src/host/rt.rs", text)).len();
    assert_eq!(rt("// SAFETY: it is ours.\nlet x = check(\n    unsafe { f() },\n);\n"), 0);
    assert_eq!(rt("// SAFETY: it is ours.\nlet x = unsafe { f() };\nlet y = unsafe { g() };\n"), 1);
    assert_eq!(rt("unsafe fn f() {}\n"), 1);
    assert_eq!(rt("#![allow(unsafe_code)]\n// unsafe\nlet a = \"unsafe\";\n"), 0);
    assert_eq!(unsafe_use(&Source::new("src/a.rs", "// SAFETY: no.\nunsafe { f() }")).len(), 1);
}

#[test]
fn dead_links_are_found() {
    let text = "[a](src/lib.rs) [b](gone.md) [c](https://example.org/x) [d](#e)\n```\n[f](gone)\n```\n[g](Cargo.toml#h)";
    assert_eq!(
        dead_links(&Source::new("README.md", text)),
        ["README.md:1 links to gone.md, which is not there"]
    );
}
