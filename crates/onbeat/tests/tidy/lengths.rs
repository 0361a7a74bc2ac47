//! How long files and functions may be, and how large what is tracked.

use super::tree::{Source, code_of, paths, root, rust_files, tests_begin};

/// Lines of a file without its tests: a limit on both would move tests away from what they test.
const FILE_LINES: usize = 380;
/// Lines of a file that holds nothing but tests or what they need.
const TEST_LINES: usize = 420;
/// Lines of a function, from its `fn` to its closing brace: a screen.
const FUNCTION_LINES: usize = 70;
/// Bytes of a tracked file: the largest is a distribution's kernel configuration, in captures of the corpus.
const FILE_BYTES: u64 = 384 << 10;

/// Longer ones that are let be, at most as long as this, and why.
const LONG_FILES: &[(&str, usize, &str)] = &[];
const LONG_FUNCTIONS: &[(&str, usize, &str)] = &[];

fn limit_of(name: &str, usual: usize, exceptions: &[(&str, usize, &str)]) -> usize {
    exceptions.iter().find(|entry| entry.0 == name).map_or(usual, |entry| entry.1)
}

fn long_file(source: &Source) -> Option<String> {
    let tests = ["fixture.rs", "tests.rs"].iter().any(|name| source.path.ends_with(name));
    let usual = if tests { TEST_LINES } else { FILE_LINES };
    let code = &source.text[..tests_begin(&source.text)];
    let (lines, limit) = (code.lines().count(), limit_of(&source.path, usual, LONG_FILES));
    (lines > limit).then(|| format!("{} has {lines} lines of {limit}", source.path))
}

/// Every function with a body: its name and how many lines it takes.
fn functions(text: &str) -> Vec<(String, usize)> {
    let code = code_of(text);
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let name: String = code[at + 3..].chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect();
        // A type `fn (..)` has no name, a declaration in a trait ends before any brace.
        let Some(open) = code[at..].find(['{', ';']).filter(|_| !name.is_empty()) else { continue };
        // The `;` of an array type in the signature is not its end.
        let signature_end = signature_end(&code[at..]).unwrap_or(open);
        if !code[at + signature_end..].starts_with('{') {
            continue;
        }
        let mut depth = 0usize;
        let body = code[at..].char_indices().skip_while(|(n, _)| *n < signature_end).find(|&(_, c)| {
            depth = if c == '{' { depth + 1 } else { depth - usize::from(c == '}') };
            depth == 0
        });
        let end = body.map_or(code.len(), |(n, _)| at + n);
        found.push((name, code[at..end].matches('\n').count() + 1));
    }
    found
}

/// Where the signature's brackets are closed and its body or `;` follows.
fn signature_end(code: &str) -> Option<usize> {
    let mut depth = 0i32;
    code.char_indices().find_map(|(at, c)| {
        depth += i32::from(matches!(c, '(' | '[')) - i32::from(matches!(c, ')' | ']'));
        (depth == 0 && matches!(c, '{' | ';')).then_some(at)
    })
}

fn long_functions(source: &Source) -> Vec<String> {
    let too_long = |(name, lines): (String, usize)| {
        let whole = format!("{}::{name}", source.path);
        let limit = limit_of(&whole, FUNCTION_LINES, LONG_FUNCTIONS);
        (lines > limit).then(|| format!("{whole} has {lines} lines of {limit}"))
    };
    functions(&source.text).into_iter().filter_map(too_long).collect()
}

#[test]
fn files_are_short() {
    super::expect_none(rust_files().iter().filter_map(long_file));
}

#[test]
fn functions_fit_a_screen() {
    super::expect_none(rust_files().iter().flat_map(long_functions));
}

#[test]
fn no_large_file_is_tracked() {
    let size = |path: &std::path::PathBuf| std::fs::metadata(root().join(path)).unwrap().len();
    let large = paths().into_iter().filter(|path| size(path) > FILE_BYTES);
    super::expect_none(large.map(|path| format!("{} is over {FILE_BYTES} bytes", path.display())));
}

#[test]
fn every_exception_has_a_reason() {
    for (name, lines, reason) in LONG_FILES.iter().chain(LONG_FUNCTIONS) {
        assert!(reason.len() > 20 && *lines > FUNCTION_LINES, "{name}");
    }
}

#[test]
fn long_ones_are_found() {
    let long = Source::new("src/a.rs", &"x\n".repeat(FILE_LINES + 1));
    assert!(long_file(&long).is_some());
    let body = "    a(\"{\");\n".repeat(FUNCTION_LINES);
    let text = format!(
        "trait T {{ fn t(&self) -> [u8; 4]; }}\npub fn long<'a>(x: [u8; 3]) -> fn(u8) {{\n{body}}}\nfn short() {{ '{{' }}\n"
    );
    let names: Vec<_> = functions(&text);
    assert_eq!(names, [("long".to_owned(), FUNCTION_LINES + 2), ("short".to_owned(), 1)]);
    assert_eq!(long_functions(&Source::new("src/a.rs", &text)).len(), 1);
}
