//! Text of a file: decompressed, decoded, in lines without the prefixes of a log.

use std::borrow::Cow;
use std::io::Read;

use super::FILE_LIMIT;
use super::error::{ImportError, too_large};
use super::log_lines::{FileSpan, LogLines, lines_of, whole_lines};
use super::{braces, markup, shared_prefix};

/// Outer form of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentShape {
    Json,
    Xml,
    Text,
}

/// A line without the prefix that a log gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLine<'a> {
    /// Number of the line in the file, from 1.
    pub number: usize,
    pub text: &'a str,
}

/// A decoded file.
#[derive(Debug)]
pub struct SourceText {
    text: String,
    log: LogLines,
    pub shape: DocumentShape,
    /// JSON documents within the text, whose lines have their numbers in the file.
    pub documents: Vec<SourceText>,
    /// True if the last line has no end: the text may have been cut within it.
    is_open: bool,
    /// Number of lines of the kernel's log that were removed from the document.
    interleaved: usize,
}

impl SourceText {
    /// Decodes a file: gzip, UTF-8, UTF-16, logs in YAML lines, terminal escapes.
    pub fn decode(bytes: &[u8]) -> Result<SourceText, ImportError> {
        let bytes = decompressed(bytes)?;
        let text = clean(decoded(&bytes)?);
        let first = text.trim_start().chars().next();
        let shape = match first {
            Some('{') if !braces::is_log(&text) => DocumentShape::Json,
            Some('<') if is_xml(&text) => DocumentShape::Xml,
            None => return Err(ImportError::new("the file is empty: give the output of a latency tool")),
            _ => return SourceText::of_text(plain(text)),
        };
        let text = text.into_owned();
        let log = whole_lines(&text)?;
        Ok(SourceText { text, log, shape, documents: Vec::new(), is_open: false, interleaved: 0 })
    }

    /// Splits a text or a log into lines.
    fn of_text(text: String) -> Result<SourceText, ImportError> {
        let log = lines_of(&text)?;
        let is_open = !text.ends_with(['\n', '\r']);
        let shape = DocumentShape::Text;
        Ok(SourceText { text, log, shape, documents: Vec::new(), is_open, interleaved: 0 })
    }

    /// Texts that this one may wrap: without its tags, or without a prefix of all lines.
    pub fn unwrapped(&self) -> Vec<SourceText> {
        let texts = match self.shape {
            DocumentShape::Json => Vec::new(),
            DocumentShape::Xml => vec![markup::text_within(&self.text)],
            DocumentShape::Text => shared_prefix::without_prefixes(&self.text),
        };
        texts.into_iter().filter_map(|text| SourceText::of_text(text).ok()).collect()
    }

    /// Texts of several hosts, if each line begins with the name of one; the lines keep their
    /// numbers in the file.
    pub fn by_host(&self) -> Vec<(String, Result<SourceText, ImportError>)> {
        if self.shape != DocumentShape::Text {
            return Vec::new();
        }
        let numbered = |text: String, numbers: &[u32]| {
            let mut source = SourceText::of_text(text)?;
            for span in &mut source.log.spans {
                span.number = numbers.get(span.number as usize - 1).copied().unwrap_or(span.number);
            }
            Ok(source)
        };
        let hosts = shared_prefix::by_host(&self.text).into_iter();
        hosts.map(|host| (host.name, numbered(host.text, &host.numbers))).collect()
    }

    /// A text of the lines with these indices; a document as a whole.
    pub(super) fn excerpt(&self, range: std::ops::Range<usize>) -> SourceText {
        let (texts, numbers): (Vec<&str>, Vec<usize>) =
            self.slice(range).map(|line| (line.text, line.number)).unzip();
        SourceText { shape: self.shape, ..SourceText::json(texts.join("\n"), &numbers, 0) }
    }

    /// A JSON document whose lines have these numbers.
    pub(super) fn json(text: String, numbers: &[usize], interleaved: usize) -> SourceText {
        let mut log = LogLines::default();
        let mut start = 0;
        for (line, &number) in text.split('\n').zip(numbers) {
            log.spans.push(FileSpan::new(number as u32, start, start + line.len()));
            start += line.len() + 1;
        }
        SourceText {
            text,
            log,
            shape: DocumentShape::Json,
            documents: Vec::new(),
            is_open: false,
            interleaved,
        }
    }

    /// Whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// All lines; those of one source of a log are consecutive.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = TextLine<'_>> + Clone {
        self.log.spans.iter().map(|&line| self.at(line))
    }

    /// Lines with these indices.
    pub fn slice(
        &self,
        range: std::ops::Range<usize>,
    ) -> impl ExactSizeIterator<Item = TextLine<'_>> + Clone {
        self.log.spans.get(range).unwrap_or_default().iter().map(|&line| self.at(line))
    }

    /// Line with this index.
    pub fn line(&self, index: usize) -> Option<TextLine<'_>> {
        self.log.spans.get(index).map(|&line| self.at(line))
    }

    /// True for the line with this index if the text ends within it.
    pub fn is_cut_at(&self, index: usize) -> bool {
        let last = || self.log.spans.iter().map(|span| span.start).max();
        self.is_open && self.log.spans.get(index).is_some_and(|span| Some(span.start) == last())
    }

    /// Number of the first `T:` line among these whose last number continues in the next line: no
    /// tool prints a line of digits alone after one.
    pub(super) fn wrapped_within(&self, range: &std::ops::Range<usize>) -> Option<usize> {
        let goes_on = |index: &usize| {
            let next = self.line(index + 1).map_or("", |line| line.text);
            !next.is_empty() && next.bytes().all(|byte| byte.is_ascii_digit())
        };
        let is_line = |index: &usize| self.line(*index).is_some_and(|line| line.text.starts_with("T:"));
        let index = range.clone().filter(is_line).find(goes_on)?;
        self.line(index).map(|line| line.number)
    }

    /// Number of lines of the kernel's log between the first and the last of these indices.
    pub fn kernel_lines_within(&self, range: &std::ops::Range<usize>) -> usize {
        let spans = &self.log.spans;
        let kernel = spans.get(self.log.kernel.clone()).unwrap_or_default();
        let (Some(first), Some(last)) = (spans.get(range.start), spans.get(range.end.wrapping_sub(1))) else {
            return self.interleaved;
        };
        if kernel.is_empty() || self.log.kernel.contains(&range.start) {
            return self.interleaved;
        }
        let before = |number: u32| kernel.partition_point(|span| span.number < number);
        before(last.number).saturating_sub(before(first.number))
    }

    fn at(&self, span: FileSpan) -> TextLine<'_> {
        let text = self.text.get(span.start as usize..span.end as usize).unwrap_or_default();
        TextLine { number: span.number as usize, text }
    }
}

/// True for a text that opens with an element; a line of the kernel's log opens with `<6>`, and one
/// of LAVA's with its signal.
fn is_xml(text: &str) -> bool {
    !text.trim_start().starts_with("<LAVA_SIGNAL_")
        && text
            .trim_start()
            .trim_start_matches('<')
            .starts_with(|c: char| c == '?' || c.is_ascii_alphabetic())
}

pub(super) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

fn decompressed(bytes: &[u8]) -> Result<Cow<'_, [u8]>, ImportError> {
    if !is_gzip(bytes) {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut content = Vec::new();
    let limit = FILE_LIMIT as u64 + 1;
    flate2::read::MultiGzDecoder::new(bytes)
        .take(limit)
        .read_to_end(&mut content)
        .map_err(|error| ImportError(format!("invalid gzip data ({error}): give the whole file")))?;
    if content.len() > FILE_LIMIT {
        return Err(too_large());
    }
    Ok(Cow::Owned(content))
}

fn decoded(bytes: &[u8]) -> Result<Cow<'_, str>, ImportError> {
    let wide = |order: fn([u8; 2]) -> u16| {
        let units = bytes[2..].chunks_exact(2).map(|pair| order([pair[0], pair[1]]));
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect::<String>()
    };
    let text = match bytes {
        [0xff, 0xfe, ..] => Cow::Owned(wide(u16::from_le_bytes)),
        [0xfe, 0xff, ..] => Cow::Owned(wide(u16::from_be_bytes)),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest),
        _ => String::from_utf8_lossy(bytes),
    };
    if text.len() > 2 * FILE_LIMIT {
        return Err(too_large());
    }
    // A log may hold a damaged byte; a file full of them is not a text.
    let odd = text.chars().filter(|&c| c == '\0' || c == char::REPLACEMENT_CHARACTER).count();
    if odd * 10 > text.chars().count() {
        return Err(ImportError::new("the file is not text: give the output of a latency tool"));
    }
    Ok(text)
}

/// Replaces or removes signs without meaning: a page's no-break blanks, the zeros of a serial line,
/// carriage returns that a terminal spelt out.
fn clean(text: Cow<'_, str>) -> Cow<'_, str> {
    let is_odd = |c: char| matches!(c, '\0' | '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{c}');
    if !text.contains(is_odd) && !text.contains("^M\n") {
        return text;
    }
    let text_chars = text.chars().filter(|&c| c != '\0').map(|c| if is_odd(c) { ' ' } else { c });
    Cow::Owned(text_chars.collect::<String>().replace("^M\n", "\n"))
}

/// The text without terminal escapes, and only the messages of a log in lines of YAML or JSON.
fn plain(text: Cow<'_, str>) -> String {
    let text = if text.contains('\x1b') { Cow::Owned(without_escapes(&text)) } else { text };
    let first = text.trim_start().lines().next().unwrap_or_default();
    if !first.starts_with("- {\"dt\":") && (!first.starts_with('{') || message(first) == first) {
        return text.into_owned();
    }
    let mut messages = text.lines().map(message).collect::<Vec<_>>().join("\n");
    if text.ends_with('\n') {
        messages.push('\n');
    }
    if messages.contains('\x1b') { without_escapes(&messages) } else { messages }
}

/// Message of a line of a log in YAML or JSON: LAVA's `- {"dt": "...", "msg": "..."}`, a
/// container's `{"log": "...\n"}`, `journalctl -o json`'s `{"MESSAGE": "..."}`.
fn message(line: &str) -> String {
    const KEYS: [&str; 5] = ["msg", "log", "MESSAGE", "message", "line"];
    let line = line.trim();
    let value = serde_json::from_str::<serde_json::Value>(line.strip_prefix("- ").unwrap_or(line)).ok();
    let message = value.as_ref().and_then(|value| KEYS.iter().find_map(|key| value.get(key)?.as_str()));
    message.map_or_else(|| line.to_owned(), |message| message.trim_end().replace('\n', " "))
}

/// The text without sequences like `ESC [ 2 A`, with which a display moves the cursor.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\x1b' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            // ECMA-48: parameters and intermediates up to a final byte.
            Some('[') => while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
            // An operating system command ends with BEL or ESC \.
            Some(']') => while chars.next().is_some_and(|c| c != '\x07' && c != '\x1b') {},
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn texts(bytes: &[u8]) -> Vec<String> {
        SourceText::decode(bytes).unwrap().lines().map(|line| line.text.to_owned()).collect()
    }

    #[test]
    fn encodings_give_the_same_lines() {
        let text = "T: 0\r\nT: 1\n";
        let expected = ["T: 0", "T: 1"];
        let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        zip.write_all(text.as_bytes()).unwrap();
        assert_eq!(texts(&zip.finish().unwrap()), expected);
        let units: Vec<u16> = "\u{feff}".encode_utf16().chain(text.encode_utf16()).collect();
        assert_eq!(texts(&units.iter().flat_map(|unit| unit.to_le_bytes()).collect::<Vec<_>>()), expected);
        assert_eq!(texts(&units.iter().flat_map(|unit| unit.to_be_bytes()).collect::<Vec<_>>()), expected);
        assert_eq!(texts(b"\xef\xbb\xbfT: 0\nT: 1\n"), expected);
    }

    #[test]
    fn sources_of_a_log_are_separated() {
        let log = b"[VM 1] T: 0\n[VM 2] T: 0 b\n[VM 1] T: 1\n";
        assert_eq!(texts(log), ["T: 0", "T: 1", "T: 0 b"]);
    }

    #[test]
    fn lava_s_messages_and_escapes_are_read() {
        let log = b"- {\"dt\": \"2026-01-01T00:00:00\", \"lvl\": \"target\", \"msg\": \"T: 0 \\\"x\\\"\"}\n";
        assert_eq!(texts(log)[0], "T: 0 \"x\"");
        let log = b"{\"log\": \"T: 0 x\\n\", \"stream\": \"stdout\"}\n{\"log\": \"T: 1\\n\"}\n";
        assert_eq!(texts(log), ["T: 0 x", "T: 1"]);
        assert_eq!(texts(b"\x1b[2AT: 0\x1b[K\rT: 1\n"), ["T: 0", "T: 1"]);
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for bytes in [&b""[..], b" \n", &[0u8; 40], &[0x1f, 0x8b, 1, 2]] {
            assert!(SourceText::decode(bytes).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(source) = SourceText::decode(&bytes) {
                source.lines().for_each(drop);
            }
        }
    }
}
