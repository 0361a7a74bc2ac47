//! Limits of file lengths and of the size of tracked files; Clippy counts the lines of functions.

use super::code::{Product, parse};
use super::tree::{paths, root};
use super::walls::product;

/// Maximum number of lines of code in a file: no tests, comments or blanks.
const FILE_LINES: usize = 300;
/// Number of files with more lines.
const LONG_FILES: usize = 0;
/// Maximum size of a tracked file: the largest is a distribution's kernel configuration, in
/// captures of the corpus.
const FILE_BYTES: u64 = 384 << 10;

fn long_file(file: &Product) -> Option<String> {
    (file.lines > FILE_LINES).then(|| format!("{} has {} lines of {FILE_LINES}", file.path, file.lines))
}

#[test]
fn files_are_short() {
    super::expect_at_most(LONG_FILES, product().iter().filter_map(long_file));
}

#[test]
fn no_large_file_is_tracked() {
    let size = |path: &std::path::PathBuf| std::fs::metadata(root().join(path)).unwrap().len();
    let large = paths().into_iter().filter(|path| size(path) > FILE_BYTES);
    super::expect_none(large.map(|path| format!("{} is over {FILE_BYTES} bytes", path.display())));
}

#[test]
fn a_long_file_is_found() {
    let code = |lines: usize| "const A: u8 = 1;\n\n// b\n".repeat(lines);
    assert!(long_file(&parse(&code(FILE_LINES))).is_none());
    assert!(long_file(&parse(&code(FILE_LINES + 1))).is_some());
}
