//! Ratchets: habits of the code and words of texts for users, with limits that may only fall.
//!
//! A limit is the count on the day it was set. A run with `--nocapture` prints those that can be
//! lowered.

use std::collections::BTreeMap;

use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, FnArg, GenericArgument, Lit, Pat, PathArguments, Token, Type};

use super::tree::{Source, files, git};
use super::walls::product;

const OPENER: &str = "doc comments that open with an interrogative";
const NESTED: &str = "`Result<Result<`";
const TEXT_ERROR: &str = "`Result<_, String>`";
const TUPLE: &str = "tuple parameters of functions";
const BOOL_MATCH: &str = "`match` on a bool";

/// Habits of the code, their limits, and the form that replaces them.
const HABITS: &[(&str, usize, &str)] = &[
    (OPENER, 38, "open with a noun phrase or a verb"),
    (NESTED, 0, "give the inner error a variant of an enum"),
    (TEXT_ERROR, 356, "return an enum or a struct as the error"),
    (TUPLE, 8, "pass two parameters, or a struct"),
    (BOOL_MATCH, 24, "write `if`"),
];

/// Words of texts for users, and their limits.
const WORDS: &[(&str, usize)] = &[
    ("are none", 0),
    ("as it is", 0),
    ("beside", 2),
    ("everybody", 0),
    ("goes on", 0),
    ("gone on with", 0),
    ("is no", 8),
    ("is none", 0),
    ("left out", 2),
    ("made-up", 0),
    ("meanwhile", 0),
    ("nobody", 2),
    ("of its own", 3),
    ("so many", 2),
    ("somebody", 0),
    ("told", 13),
    ("who", 47),
    ("whoever", 0),
];

const INTERROGATIVES: &[&str] = &[
    "What", "Whatever", "When", "Whenever", "Where", "Wherever", "Whether", "Which", "Who", "Whoever",
    "Whom", "Whose", "Why", "How",
];

/// A finding: the habit or word, and its file and line.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    name: &'static str,
    path: String,
    line: usize,
}

/// Lines that were added, by file.
type AddedLines = BTreeMap<String, Vec<std::ops::Range<usize>>>;

/// Failure text for a count over its limit. It names the places on added lines, or all of them if
/// none is on one.
fn excess(name: &str, limit: usize, remedy: &str, places: &[Place], added: &AddedLines) -> Option<String> {
    let places: Vec<&Place> = places.iter().filter(|place| place.name == name).collect();
    let count = places.len();
    if count < limit {
        println!("{name}: lower the limit from {limit} to {count}");
    }
    if count <= limit {
        return None;
    }
    let is_added = |place: &&&Place| {
        added.get(&place.path).is_some_and(|lines| lines.iter().any(|lines| lines.contains(&place.line)))
    };
    let new: Vec<&Place> = places.iter().filter(is_added).copied().collect();
    let listed = if new.is_empty() { places } else { new };
    let lines = listed.iter().map(|place| format!("\n  {}:{}", place.path, place.line));
    Some(format!("{name}: {count} of at most {limit}; {remedy}{}", lines.collect::<String>()))
}

/// Lines that differ from the commit in which the limits were last set; empty without git.
fn added_lines() -> AddedLines {
    let limits = "crates/onbeat/tests/it/tidy/ratchets.rs";
    let lines = git(&["log", "-1", "--format=%H", "--", limits]).and_then(|since| {
        git(&["diff", "--unified=0", "--no-ext-diff", "--no-color", "--dst-prefix=b/", since.trim(), "--"])
    });
    let mut added = lines.map(|diff| hunks(&diff)).unwrap_or_default();
    let untracked = git(&["ls-files", "--others", "--exclude-standard"]).unwrap_or_default();
    added.extend(untracked.lines().map(|path| (path.to_owned(), std::iter::once(0..usize::MAX).collect())));
    added
}

/// Added lines of a diff without context.
fn hunks(diff: &str) -> AddedLines {
    let mut added = AddedLines::new();
    let mut path = String::new();
    for line in diff.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            path = name.to_owned();
        } else if let Some((_, new)) = line.strip_prefix("@@ -").and_then(|rest| rest.split_once(" +")) {
            let range = new.split(' ').next().unwrap_or_default();
            let (start, count) = range.split_once(',').unwrap_or((range, "1"));
            if let (Ok(start), Ok(count)) = (start.parse::<usize>(), count.parse::<usize>()) {
                added.entry(path.clone()).or_default().push(start..start + count);
            }
        }
    }
    added
}

/// Habits in a Rust file; inside of macros only those of expressions separated by commas.
fn habits(source: &Source) -> Vec<Place> {
    let mut visitor = HabitVisitor::default();
    visitor.visit_file_mut(&mut syn::parse_file(&source.text).unwrap());
    let mut before = "";
    for (at, line) in source.text.lines().map(str::trim_start).enumerate() {
        let marker = ["///", "//!"].into_iter().find(|marker| line.starts_with(marker)).unwrap_or_default();
        let opens = !marker.is_empty() && marker != before;
        let word = line[marker.len()..].trim_start().split(|c: char| !c.is_alphanumeric()).next();
        if opens && word.is_some_and(|word| INTERROGATIVES.contains(&word)) {
            visitor.0.push((OPENER, at + 1));
        }
        before = marker;
    }
    let place = |(name, line)| Place { name, path: source.path.clone(), line };
    visitor.0.into_iter().map(place).collect()
}

#[derive(Default)]
struct HabitVisitor(Vec<(&'static str, usize)>);

impl VisitMut for HabitVisitor {
    fn visit_signature_mut(&mut self, signature: &mut syn::Signature) {
        for input in &signature.inputs {
            let FnArg::Typed(parameter) = input else { continue };
            let mut kind = &*parameter.ty;
            while let Type::Reference(reference) = kind {
                kind = &reference.elem;
            }
            let is_tuple = matches!(kind, Type::Tuple(tuple) if !tuple.elems.is_empty());
            if is_tuple || matches!(*parameter.pat, Pat::Tuple(_)) {
                self.0.push((TUPLE, parameter.colon_token.span.start().line));
            }
        }
        visit_mut::visit_signature_mut(self, signature);
    }

    fn visit_path_segment_mut(&mut self, segment: &mut syn::PathSegment) {
        if let PathArguments::AngleBracketed(arguments) = &segment.arguments
            && segment.ident == "Result"
        {
            let line = segment.ident.span().start().line;
            let types: Vec<&Type> = arguments.args.iter().filter_map(type_of).collect();
            if types.first().is_some_and(|ok| is_named(ok, "Result")) {
                self.0.push((NESTED, line));
            }
            if types.get(1).is_some_and(|error| is_named(error, "String")) {
                self.0.push((TEXT_ERROR, line));
            }
        }
        visit_mut::visit_path_segment_mut(self, segment);
    }

    fn visit_expr_match_mut(&mut self, expression: &mut syn::ExprMatch) {
        let is_bool = |pattern: &Pat| matches!(pattern, Pat::Lit(lit) if matches!(lit.lit, Lit::Bool(_)));
        if expression.arms.iter().any(|arm| is_bool(&arm.pat)) {
            self.0.push((BOOL_MATCH, expression.match_token.span.start().line));
        }
        visit_mut::visit_expr_match_mut(self, expression);
    }

    fn visit_macro_mut(&mut self, call: &mut syn::Macro) {
        let arguments = Punctuated::<Expr, Token![,]>::parse_terminated;
        if let Ok(mut arguments) = arguments.parse2(call.tokens.clone()) {
            arguments.iter_mut().for_each(|argument| self.visit_expr_mut(argument));
        }
    }
}

fn type_of(argument: &GenericArgument) -> Option<&Type> {
    if let GenericArgument::Type(kind) = argument { Some(kind) } else { None }
}

fn is_named(kind: &Type, name: &str) -> bool {
    matches!(kind, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == name))
}

/// Words in one line of a text; names in braces are values, and `is no longer` is plain.
fn words(text: &str) -> Vec<&'static str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let text = text.to_lowercase().replace("\\n", "  ").replace("is no longer", "");
    let times = |word: &str| {
        let alone = |at: usize| {
            let (before, after) = (&text[..at], &text[at + word.len()..]);
            !before.ends_with(is_word) && !before.ends_with('{') && !after.starts_with(is_word)
        };
        text.match_indices(word).filter(|(at, _)| alone(*at)).count()
    };
    WORDS.iter().flat_map(|(word, _)| std::iter::repeat_n(*word, times(word))).collect()
}

/// Words in texts for users: of the product, of its pages' scripts, and of the part of the manual
/// that is not generated.
fn words_for_users() -> Vec<Place> {
    let generated = ["docs/cli.md", "docs/loads.md", "docs/suites.md"];
    let mut found = Vec::new();
    let mut add = |path: &str, line: usize, text: &str| {
        let place = |name| Place { name, path: path.to_owned(), line };
        found.extend(words(text).into_iter().map(place));
    };
    for file in product().iter().filter(|file| file.path.starts_with("crates/")) {
        file.texts.iter().for_each(|(line, text)| add(&file.path, *line, text));
    }
    for source in files("md") {
        let is_manual = source.path == "README.md" || source.path.starts_with("docs/");
        if is_manual && !source.path.starts_with("docs/rules/") && !generated.contains(&&*source.path) {
            super::lines::lines(&source, false).for_each(|(line, text)| add(&source.path, line, text));
        }
    }
    for source in files("js").iter().filter(|source| source.path.starts_with("crates/")) {
        for (at, line) in source.text.lines().enumerate() {
            add(&source.path, at + 1, line.split("//").next().unwrap_or_default());
        }
    }
    found
}

fn expect_within(limits: &[(&str, usize, &str)], places: &[Place]) {
    let added = added_lines();
    let excess = |(name, limit, remedy): &(&str, usize, &str)| excess(name, *limit, remedy, places, &added);
    super::expect_none(limits.iter().filter_map(excess));
}

#[test]
fn habits_of_the_code_become_fewer() {
    let ours = |source: &&Source| source.path.starts_with("crates/") || source.path.starts_with("xtask/");
    let places: Vec<Place> = files("rs").iter().filter(ours).flat_map(habits).collect();
    expect_within(HABITS, &places);
}

#[test]
fn private_words_become_fewer() {
    let remedy = "write the term of the field, docs/glossary.md";
    let limits: Vec<_> = WORDS.iter().map(|(word, limit)| (*word, *limit, remedy)).collect();
    expect_within(&limits, &words_for_users());
}

#[test]
fn habits_are_found_and_only_they() {
    let lines = |name: &str, text: &[&str]| -> Vec<usize> {
        let found = habits(&Source::new("a.rs", &text.join("\n")));
        found.iter().filter(|place| place.name == name).map(|place| place.line).collect()
    };
    let docs = ["//! What it holds.", "", "/// Whether.", "struct A;", "/// Whole.", "/// Which.", "// Why."];
    assert_eq!(lines(OPENER, &[&docs[..], &["struct B;"]].concat()), [1, 3]);
    let results = [
        "fn f() -> io::Result<",
        "    Result<u8, E>> {}",
        "fn g() -> Result<Option<Result<u8, E>>, String> {}",
        "type T<A> = std::result::Result<A, String>;",
        "fn h() -> Result<String, Vec<String>> {}",
    ];
    assert_eq!(lines(NESTED, &results), [1]);
    assert_eq!(lines(TEXT_ERROR, &results), [3, 4]);
    let parameters = [
        "fn f(a: (u8, u8)) {}",
        "fn g(",
        "    b: u8,",
        "    (c, d): &(u8, &str),",
        ") {}",
        "fn h(e: Vec<(u8, u8)>, f: (), g: fn((u8, u8))) { |(h, i): (u8, u8)| h; }",
    ];
    assert_eq!(lines(TUPLE, &parameters), [1, 4]);
    let matches = [
        "fn f() {",
        "    match a { true => 1, _ => 2 };",
        "    assert!(b, \"{}\", match c { false => 3, true => 4 });",
        "    match d { (true, _) => 5, _ => 6 };",
        "    match e { Some(true) => 7, _ => 8 };",
        "}",
    ];
    assert_eq!(lines(BOOL_MATCH, &matches), [2, 3]);
}

#[test]
fn words_are_found_and_only_they() {
    assert_eq!(words("Told\\nwho it is none of: is no name"), ["is no", "is none", "told", "who"]);
    assert_eq!(words("besides, whole, {told}, retold, is not, is no longer, as its"), [""; 0]);
    let product = [
        "/// Who runs.",
        "pub struct A { /** told */ b: u8 }",
        "#[derive(Debug, clap::Args)]",
        "struct C {",
        "    /// Told there",
        "    d: u8,",
        "}",
        "fn e() {",
        "    // beside",
        "    html! { p { \"told\\n",
        " somebody\" } }",
        "}",
        "#[cfg(test)]",
        "mod tests { const A: &str = \"nobody\"; }",
    ];
    let texts = super::code::parse(&product.join("\n")).texts;
    let found = texts.iter().flat_map(|(line, text)| words(text).into_iter().map(move |word| (*line, word)));
    assert_eq!(found.collect::<Vec<_>>(), [(5, "told"), (10, "told"), (11, "somebody")]);
}

#[test]
fn a_count_over_its_limit_names_what_was_added() {
    let diff = "--- a/a.rs\n+++ b/a.rs\n@@ -1 +2 @@ fn\n-a\n+b\n@@ -9,2 +9,0 @@\n\
                --- a/b.rs\n+++ b/b.rs\n@@ -0,0 +1,3 @@\n";
    let added = hunks(diff);
    let place = |path: &str, line| Place { name: NESTED, path: path.into(), line };
    let places = [place("a.rs", 1), place("a.rs", 2), place("b.rs", 3), place("b.rs", 4)];
    assert_eq!(excess(NESTED, 4, "", &places, &added), None);
    assert_eq!(excess(TUPLE, 0, "", &places, &added), None);
    let text = excess(NESTED, 3, "do", &places, &added).unwrap();
    assert_eq!(text, "`Result<Result<`: 4 of at most 3; do\n  a.rs:2\n  b.rs:3");
    assert_eq!(excess(NESTED, 3, "do", &places, &AddedLines::new()).unwrap().lines().count(), 5);
}
