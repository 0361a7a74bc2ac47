//! The kernel's command line, parsed as the kernel does.
//!
//! Source: `next_arg()` and `parse_args()` of the kernel, described in
//! Documentation/admin-guide/kernel-parameters.rst: double quotes protect blanks, `-` and `_` in
//! names are equal, and the words after `--` belong to init.

use model::text::several;
/// Limit in bytes, beyond any architecture's.
const CMDLINE_LIMIT: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// The name, as written.
    pub name: String,
    /// Text after the `=`; none without one.
    pub value: Option<String>,
}

/// A parsed command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cmdline {
    /// The full line, trimmed.
    pub text: String,
    /// The kernel's parameters in their order, without init's.
    pub params: Vec<Param>,
    /// True if it is built in, and the kernel ignores the boot loader's.
    pub is_built_in: bool,
    /// True if it comes from a text that a Raspberry Pi's firmware reads, which starts no EFI.
    pub is_without_efi: bool,
}

impl Cmdline {
    /// Values of a parameter in their order; for most parameters the last one counts.
    pub fn values<'a>(&'a self, name: &str) -> impl DoubleEndedIterator<Item = &'a str> {
        let named = self.params.iter().filter(move |param| same_name(&param.name, name));
        named.filter_map(|param| param.value.as_deref())
    }

    /// Last value of a parameter.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values(name).next_back()
    }

    /// Value in effect, and its meaning: the last one that the kernel accepts, as a refused value
    /// leaves the one before it. `read` returns none for a refused value.
    pub fn in_effect<'a, T>(
        &'a self,
        name: &str,
        read: impl Fn(&'a str) -> Option<T>,
    ) -> Option<(&'a str, T)> {
        self.values(name).rev().find_map(|value| Some((value, read(value)?)))
    }

    /// True if the parameter is present, with or without a value.
    pub fn has(&self, name: &str) -> bool {
        self.params.iter().any(|param| same_name(&param.name, name))
    }
}

/// Parses `/proc/cmdline`.
pub fn parse_cmdline(text: &str) -> Result<Cmdline, String> {
    if text.len() > CMDLINE_LIMIT {
        return Err(format!(
            "expected a command line, found {}",
            several(text.len() as u64, "byte", "bytes")
        ));
    }
    let text = text.trim_matches(is_blank);
    let mut params = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (word, after) = split_word(rest);
        rest = after.trim_start_matches(is_blank);
        if word == "--" {
            break;
        }
        params.push(parse_param(word));
    }
    Ok(Cmdline { text: text.to_owned(), params, ..Cmdline::default() })
}

/// Splits off the first word; blanks in double quotes do not end it.
fn split_word(text: &str) -> (&str, &str) {
    let mut quoted = false;
    let end = text.find(|c| {
        quoted ^= c == '"';
        is_blank(c) && !quoted
    });
    text.split_at(end.unwrap_or(text.len()))
}

/// Parses a word; quotes may enclose all of it (`"name=a b"`) or the value (`name="a b"`).
fn parse_param(word: &str) -> Param {
    let (word, whole) = word.strip_prefix('"').map_or((word, false), |inner| (inner, true));
    let word = if whole { word.strip_suffix('"').unwrap_or(word) } else { word };
    // The kernel does not treat a leading `=` as a separator.
    let equals = word.char_indices().skip(1).find(|&(_, c)| c == '=').map(|(at, _)| at);
    let Some(equals) = equals else { return Param { name: word.to_owned(), value: None } };
    let value = &word[equals + 1..];
    let value = value.strip_prefix('"').map_or(value, |inner| inner.strip_suffix('"').unwrap_or(inner));
    Param { name: word[..equals].to_owned(), value: Some(value.to_owned()) }
}

fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b' || c == '\0'
}

/// True if two names are the same parameter to the kernel.
pub fn same_name(a: &str, b: &str) -> bool {
    let plain = |b: u8| if b == b'-' { b'_' } else { b };
    a.len() == b.len() && a.bytes().zip(b.bytes()).all(|(a, b)| plain(a) == plain(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: &str) {
        let cmdline = parse_cmdline(text).unwrap();
        let words: Vec<String> = cmdline
            .params
            .iter()
            .map(|p| p.value.as_ref().map_or(p.name.clone(), |v| format!("{}<{v}>", p.name)))
            .collect();
        assert_eq!(words.join(" "), expected, "{text}");
    }

    #[test]
    fn words_as_the_kernel_splits_them() {
        check("quiet  isolcpus=2-3\n", "quiet isolcpus<2-3>");
        check(r#"dyndbg="file a.c +p" quiet"#, "dyndbg<file a.c +p> quiet");
        check(r#""dyndbg=file a.c +p" quiet"#, "dyndbg<file a.c +p> quiet");
        check(r#"a="unterminated b c"#, "a<unterminated b c>");
        check("preempt=full -- preempt=none --flag", "preempt<full>");
        check("=x a= \"", "=x a< > ".replace("< >", "<>").as_str());
        check("", "");
    }

    #[test]
    fn names_are_loose_and_the_last_value_counts() {
        let cmdline = parse_cmdline("rcu-nocbs=1 rcu_nocbs=2 nohz").unwrap();
        assert_eq!(cmdline.value("rcu_nocbs"), Some("2"));
        assert_eq!(cmdline.values("rcu-nocbs").collect::<Vec<_>>(), ["1", "2"]);
        assert!(cmdline.has("nohz") && !cmdline.has("noh"));
        assert_eq!(cmdline.value("nohz"), None);
        let cmdline = parse_cmdline("a=1 a=2 a=x").unwrap();
        assert_eq!(cmdline.in_effect("a", |value| value.parse().ok()), Some(("2", 2)));
        assert_eq!(cmdline.in_effect("a", |_| None::<u8>), None);
    }

    #[test]
    fn a_huge_line_is_refused() {
        assert!(parse_cmdline(&"a ".repeat(CMDLINE_LIMIT)).is_err());
    }

    proptest! {
        #[test]
        fn parser_is_total(text in "[\\PC\" =\n-]{0,80}") {
            let cmdline = parse_cmdline(&text).unwrap();
            let _ = cmdline.value("preempt");
        }
    }
}
