//! Lines of sources and documents: forbidden words, widths, and targets of links.

use super::tree::{Source, files, root, sources_and_documents};

// Written in two halves, so that this file passes its own check.
const UNFINISHED: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const MACHINE_PATHS: &[&str] =
    &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/tm", "p/")];
/// No measurement shows a worst case, and none promises anything.
const PROMISES: &[&str] = &[concat!("wc", "et"), concat!("guaran", "teed")];

const CODE_COLUMNS: usize = 110;
const COMMENT_COLUMNS: usize = 100;
/// A sentence that needs a longer line has to be read twice.
const DOCUMENT_COLUMNS: usize = 300;
const README_LINES: usize = 120;
/// Number of lines that are wider still.
const WIDE_CODE: usize = 308;
const WIDE_COMMENTS: usize = 3;

/// Places where a needle is a separate word; a document's fenced blocks are optional.
fn places(source: &Source, needles: &[&str], fenced_too: bool) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let alone = |line: &str, needle: &str| {
        line.match_indices(needle).any(|(at, _)| {
            let after = &line[at + needle.len()..];
            !(line[..at].ends_with(is_word) || needle.ends_with(is_word) && after.starts_with(is_word))
        })
    };
    let mut found = Vec::new();
    for (number, line) in lines(source, fenced_too) {
        let has = needles.iter().filter(|needle| alone(line, needle));
        found.extend(has.map(|needle| format!("{}:{number} has {needle}", source.path)));
    }
    found
}

/// Lines counted from 1, those of a Markdown file outside fenced blocks unless requested.
pub fn lines(source: &Source, fenced_too: bool) -> impl Iterator<Item = (usize, &str)> {
    let markdown = source.path.ends_with(".md") && !fenced_too;
    let mut fenced = false;
    source.text.lines().enumerate().map(|(at, line)| (at + 1, line)).filter(move |(_, line)| {
        let fence = markdown && line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

fn promises(source: &Source) -> Vec<String> {
    places(&Source::new(&source.path, &source.text.to_lowercase()), PROMISES, true)
}

fn undocumented(source: &Source) -> Option<String> {
    let purpose = source.text.strip_prefix("//! ").is_some_and(|rest| !rest.trim().is_empty());
    (!purpose).then(|| format!("{} does not open with its purpose in //!", source.path))
}

/// Code blocks in doc comments: they would be compiled as separate tests, which the gate does not
/// run.
fn doc_examples(source: &Source) -> Vec<String> {
    let opens = |line: &str| {
        let comment = line.trim_start().strip_prefix("///").or(line.trim_start().strip_prefix("//!"));
        comment.is_some_and(|text| text.trim_start().starts_with("```"))
    };
    let found = lines(source, true).filter(|(_, line)| opens(line));
    found.map(|(number, _)| format!("{}:{number} has a code block: write a test", source.path)).collect()
}

/// Lines that are too wide: comments or the others.
fn wide(source: &Source, comments: bool) -> Vec<String> {
    let limit = if comments { COMMENT_COLUMNS } else { CODE_COLUMNS };
    let over = lines(source, true)
        .filter(|(_, line)| line.trim_start().starts_with("//") == comments && line.chars().count() > limit);
    over.map(|(number, _)| format!("{}:{number} is wider than {limit} columns", source.path)).collect()
}

/// Long lines of a document, and a README that is too long. Pages of rules have lists of paths, and
/// fixtures have rows of numbers.
fn long_document(source: &Source) -> Vec<String> {
    let path = &source.path;
    if path.starts_with("docs/rules/") || path.starts_with("tests/") {
        return Vec::new();
    }
    let over = lines(source, true).filter(|(_, line)| line.chars().count() > DOCUMENT_COLUMNS);
    let mut found: Vec<String> =
        over.map(|(number, _)| format!("{path}:{number} is wider than {DOCUMENT_COLUMNS} columns")).collect();
    if path == "README.md" && source.text.lines().count() > README_LINES {
        found.push(format!("{path} is longer than {README_LINES} lines"));
    }
    found
}

/// Links of a Markdown file to missing files; those with a scheme or to a heading are not followed.
fn dead_links(source: &Source) -> Vec<String> {
    let base = root().join(&source.path);
    let base = base.parent().unwrap();
    let mut dead = Vec::new();
    for (number, line) in lines(source, false) {
        for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or("");
            let leads_out = target.contains("://") || target.starts_with("mailto:");
            if !leads_out && !target.is_empty() && !base.join(target).exists() {
                dead.push(format!("{}:{number} links to {target}, which is not there", source.path));
            }
        }
    }
    dead
}

#[test]
fn nothing_is_left_unfinished() {
    super::expect_none(sources_and_documents().flat_map(|source| places(&source, UNFINISHED, true)));
}

#[test]
fn no_path_of_a_developers_machine() {
    // The guests of the lab have other home folders.
    let ours = sources_and_documents().filter(|source| !source.path.starts_with("xtask/src/live/"));
    super::expect_none(ours.flat_map(|source| places(&source, MACHINE_PATHS, false)));
}

#[test]
fn no_promise_is_made() {
    super::expect_none(sources_and_documents().flat_map(|source| promises(&source)));
}

#[test]
fn every_file_opens_with_its_purpose() {
    super::expect_none(files("rs").iter().filter_map(undocumented));
}

#[test]
fn no_example_is_left_untested() {
    super::expect_none(files("rs").iter().flat_map(doc_examples));
    assert_eq!(doc_examples(&Source::new("a.rs", "/// Adds.\n    /// ```\n")).len(), 1);
}

#[test]
fn lines_are_narrow() {
    super::expect_at_most(WIDE_CODE, files("rs").iter().flat_map(|source| wide(source, false)));
    super::expect_at_most(WIDE_COMMENTS, files("rs").iter().flat_map(|source| wide(source, true)));
}

#[test]
fn documents_are_narrow_and_the_readme_short() {
    super::expect_none(files("md").iter().flat_map(long_document));
    let text = format!("{}\n{}\n{}", "a".repeat(300), "b".repeat(301), "c\n".repeat(119));
    let found = |path: &str| long_document(&Source::new(path, &text)).len();
    assert_eq!(["docs/a.md", "README.md", "tests/a.md"].map(found), [1, 2, 0]);
}

#[test]
fn links_lead_somewhere() {
    super::expect_none(files("md").iter().flat_map(dead_links));
}

#[test]
fn forbidden_words_are_found() {
    let source = |text: &str| Source::new("a.md", text);
    for word in UNFINISHED {
        let found = places(&source(&format!("a\n// {word} b\n")), UNFINISHED, true);
        assert_eq!(found, [format!("a.md:2 has {word}")]);
        assert_eq!(places(&source(&format!("a{word}")), UNFINISHED, true).len(), 0);
    }
    for path in MACHINE_PATHS {
        let text = format!("see {path}me\n```\n{path}you\n```\nnot a{path}me\n");
        assert_eq!(places(&source(&text), MACHINE_PATHS, false).len(), 1);
        assert_eq!(places(&Source::new("a.rs", &text), MACHINE_PATHS, false).len(), 2);
    }
    for word in PROMISES {
        assert_eq!(promises(&source(&format!("is {}.", word.to_uppercase()))).len(), 1);
    }
    assert!(undocumented(&source("use std::fmt;\n//! late")).is_some());
    assert!(undocumented(&source("//! Says why.")).is_none());
}

#[test]
fn wide_lines_are_found() {
    let text =
        format!("//{}\n{}\n//{}\n{}\n", "a".repeat(98), "b".repeat(110), "c".repeat(99), "d".repeat(111));
    let source = Source::new("a.rs", &text);
    assert_eq!(wide(&source, true), ["a.rs:3 is wider than 100 columns"]);
    assert_eq!(wide(&source, false), ["a.rs:4 is wider than 110 columns"]);
}

#[test]
fn dead_links_are_found() {
    let text = "[a](crates/model/src/lib.rs) [b](gone.md) [c](https://example.org/x) [d](#e)\n\
                ```\n[f](gone)\n```\n[g](Cargo.toml#h)";
    assert_eq!(
        dead_links(&Source::new("README.md", text)),
        ["README.md:1 links to gone.md, which is not there"]
    );
}
