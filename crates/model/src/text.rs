//! Escaping of external text, and common pieces of sentences, for all modules.
//!
//! Names of threads, interrupts, files and kernels are external. On a terminal they could move the
//! cursor, set the title or answer in the user's name; anywhere they could turn the direction of
//! the text around them.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// True if a character acts on the text around it instead of being seen: controls of ASCII and of
/// C1 (which terminals take for escape sequences), separators of lines and paragraphs, marks of
/// direction, and invisible characters. U+FFFE and U+FFFF are not allowed in XML.
///
/// Sources: ECMA-48 (C0, DEL, C1); Unicode Standard Annex 9 for the marks of direction; Unicode
/// Technical Report 36.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
            | '\u{e0000}'..='\u{e007f}')
}

/// An external string with U+FFFD for each character that [`steers`]: for a terminal, a page, a
/// comment.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect()
}

/// Final check of a text of several lines, whatever went into it: U+FFFD for each character that
/// [`steers`] except line ends, tabs, and the text's escape sequences in `styles`.
pub fn steered_by_none(text: String, styles: &[String]) -> String {
    if !text.chars().any(|c| steers(c) && !"\n\t".contains(c)) {
        return text;
    }
    let mut safe = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        let style = styles.iter().find(|style| !style.is_empty() && rest.starts_with(style.as_str()));
        let piece = style.map_or(c.len_utf8(), String::len);
        if style.is_some() || !steers(c) || "\n\t".contains(c) {
            safe.push_str(&rest[..piece]);
        } else {
            safe.push('\u{fffd}');
        }
        rest = &rest[piece..];
    }
    safe
}

/// Beginning of an external text, cleaned, for quoting in an error message.
pub fn excerpt(text: &str) -> String {
    let mut excerpt = clean(text);
    if let Some((end, _)) = excerpt.char_indices().nth(EXCERPT) {
        excerpt.truncate(end);
        excerpt.push_str("...");
    }
    excerpt
}

/// Number of quoted characters.
const EXCERPT: usize = 200;

/// A path as a word for a shell, to be read and to be copied: plain if that is safe, else in
/// quotes, and with escapes ($'...', POSIX.1-2024) if it holds characters that would steer a
/// terminal or is not UTF-8.
pub fn quoted(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    match path.as_os_str().as_bytes() {
        // A path that begins with a dash would be parsed as a flag.
        [b'-', _, ..] => word(Path::new(".").join(path).as_os_str().as_bytes()),
        bytes => word(bytes),
    }
}

/// A value as such a word: `-1` is a number, not a path.
pub fn quoted_value(value: &str) -> String {
    word(value.as_bytes())
}

fn word(bytes: &[u8]) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"/._-+,:@%".contains(b);
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.is_empty() && bytes.iter().all(plain) => text.to_owned(),
        Ok(text) if !text.chars().any(steers) => format!("'{}'", text.replace('\'', "'\\''")),
        _ => escaped(bytes),
    }
}

fn escaped(bytes: &[u8]) -> String {
    let mut word = String::from("$'");
    let octal = |bytes: &[u8]| bytes.iter().map(|b| format!("\\{b:03o}")).collect::<String>();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' | '\\' => word.extend(['\\', c]),
                c if steers(c) => word += &octal(c.encode_utf8(&mut [0; 4]).as_bytes()),
                c => word.push(c),
            }
        }
        word += &octal(chunk.invalid());
    }
    word.push('\'');
    word
}

/// A document with `\u` escapes for characters beyond ASCII that would steer a terminal. JSON keeps
/// its values so, because such characters are in its strings only; for other documents it is the
/// last check, after [`clean`].
pub fn harmless(document: &str) -> Cow<'_, str> {
    // What lies below DEL is layout here: every writer of JSON escapes it in strings.
    let steers = |c: char| c >= '\u{7f}' && steers(c);
    if !document.contains(steers) {
        return Cow::Borrowed(document);
    }
    let mut safe = String::with_capacity(document.len() + 64);
    for c in document.chars() {
        if steers(c) {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| safe += &format!("\\u{unit:04x}"));
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// A number with the singular or plural of a noun.
pub fn several(n: u64, one: &str, more: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { more })
}

/// Bytes in hexadecimal, two digits each.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ffi::OsStr;
    use std::path::PathBuf;

    #[test]
    fn what_steers_is_replaced_and_nothing_else() {
        for c in "\0\u{7}\u{1b}\r\n\t\u{7f}\u{85}\u{9b}\u{9d}\u{61c}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}\u{2028}\u{2029}\u{feff}".chars() {
            assert_eq!(clean(&format!("a{c}b")), "a\u{fffd}b", "{c:?}");
        }
        for text in ["kworker/0:1-events", "µs – äöü 漢字 עברית 🦀", "a'b\"c\\d$(x)`"] {
            assert_eq!(clean(text), text);
        }
    }

    #[test]
    fn of_a_long_text_the_beginning_is_quoted() {
        assert_eq!(excerpt("unknown field\n"), "unknown field\u{fffd}");
        let long = "ä".repeat(EXCERPT + 1);
        assert_eq!(excerpt(&long), format!("{}...", "ä".repeat(EXCERPT)));
        assert_eq!(excerpt(&long[2..]), "ä".repeat(EXCERPT));
    }

    #[test]
    fn a_path_is_a_word_for_the_shell() {
        for (path, word) in [
            ("/var/lib/onbeat/runs/20260101T000000-1", "/var/lib/onbeat/runs/20260101T000000-1"),
            ("-", "-"),
            ("-x", "./-x"),
            ("--help me", "'./--help me'"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", "'it'\\''s'"),
            ("$(reboot);`x`", "'$(reboot);`x`'"),
            ("~", "'~'"),
            ("a\u{1b}[31m'\\\n", "$'a\\033[31m\\'\\\\\\012'"),
            ("\u{202e}gnp.exe", "$'\\342\\200\\256gnp.exe'"),
            ("\u{9b}2J", "$'\\302\\2332J'"),
            ("größe", "'größe'"),
        ] {
            assert_eq!(quoted(path), word, "{path:?}");
        }
        assert_eq!((quoted_value("-1"), quoted_value("a b")), ("-1".to_owned(), "'a b'".to_owned()));
        assert_eq!(quoted(OsStr::from_bytes(b"a\xff1")), "$'a\\3771'");
    }

    /// The shell's result for the word.
    #[allow(clippy::disallowed_methods)] // The judge of a word for a shell is a shell.
    fn read_back(word: &str) -> Vec<u8> {
        let mut bash = std::process::Command::new("bash");
        bash.args(["--norc", "-c", &format!("printf %s {word}")]).output().expect("bash").stdout
    }

    #[test]
    fn a_shell_reads_the_word_back() {
        for bytes in [
            &b"a b"[..],
            b"it's",
            b"$(x) `y` \"z\" \\ ! * ?",
            b"\x1b]0;t\x07\n\r",
            b"\xff\xfe0",
            "\u{9b}9\u{2028}7'".as_bytes(),
        ] {
            let path = PathBuf::from(OsStr::from_bytes(bytes));
            assert_eq!(read_back(&quoted(&path)), bytes, "{}", quoted(&path));
        }
    }

    proptest! {
        #[test]
        fn whatever_the_text_nothing_steers(text in any::<String>(), bytes in any::<Vec<u8>>()) {
            prop_assert!(!clean(&text).chars().any(steers));
            prop_assert_eq!(clean(&text).chars().count(), text.chars().count());
            prop_assert!(!quoted(OsStr::from_bytes(&bytes)).chars().any(steers));
        }

        #[test]
        fn json_keeps_its_values(text in any::<String>(), c in proptest::char::range('\u{0}', '\u{e0fff}')) {
            let text = format!("{text}{c}\u{85}\u{202e}\u{e0041}");
            let json = serde_json::to_string(&[&text]).unwrap();
            let safe = harmless(&json);
            prop_assert_eq!(serde_json::from_str::<Vec<String>>(&safe).unwrap(), vec![text]);
            prop_assert!(!safe.chars().any(steers));
        }
    }
}
