//! JSON results within a log: after a prompt, with prefixes, before or after other lines.

use super::braces::OpenBraces;
use super::source::SourceText;

/// Maximum number of documents from one text.
const MAX_DOCUMENTS: usize = 1024;

/// Keys of which every result in JSON has one.
const KEYS: [&str; 2] = ["\"thread\"", "\"sysinfo\""];

/// True for a line with which an object begins.
fn begins(line: &str) -> bool {
    let behind = line.strip_prefix('{').map(str::trim_start);
    behind.is_some_and(|behind| behind.is_empty() || behind.starts_with('"'))
}

/// Objects that may be results. One that never closes extends to the next, or to the end.
pub(super) fn documents(source: &SourceText) -> Vec<SourceText> {
    let mut documents = Vec::new();
    let mut braces = OpenBraces::default();
    let mut open = OpenDocument::default();
    for (index, line) in source.lines().enumerate() {
        if documents.len() >= MAX_DOCUMENTS {
            break;
        }
        if begins(line.text) && (open.numbers.is_empty() || !line.text.starts_with(char::is_whitespace)) {
            documents.extend(std::mem::take(&mut open).document(source));
            (open.start, braces) = (index, OpenBraces::default());
        } else if open.numbers.is_empty() {
            continue;
        }
        let end = braces.pass(line.text);
        open.text.push_str(&line.text[..end.unwrap_or(line.text.len())]);
        open.text.push('\n');
        open.numbers.push(line.number);
        if end.is_some() {
            documents.extend(std::mem::take(&mut open).document(source));
        }
    }
    documents.extend(open.document(source));
    documents
}

/// Lines of an object so far.
#[derive(Default)]
struct OpenDocument {
    start: usize,
    text: String,
    numbers: Vec<usize>,
}

impl OpenDocument {
    fn document(self, source: &SourceText) -> Option<SourceText> {
        let lines = self.start..self.start + self.numbers.len();
        let is_result = KEYS.iter().any(|key| self.text.contains(key));
        is_result.then(|| SourceText::json(self.text, &self.numbers, source.kernel_lines_within(&lines)))
    }
}

#[cfg(test)]
mod tests {
    use crate::foreign::testing::fixture;
    use crate::foreign::{ImportError, ImportOptions, import};
    use proptest::prelude::*;

    fn results(text: &str) -> Result<Vec<model::run::Run>, ImportError> {
        let all = import(text.as_bytes(), &ImportOptions::default());
        all.map(|all| all.into_iter().map(|one| one.run).collect())
    }

    #[test]
    fn json_is_read_wherever_it_stands_in_a_log() {
        let json = fixture("smp-H60.json");
        let alone = results(json).unwrap();
        let prefixed =
            |prefix: &str| json.lines().map(|line| format!("{prefix}{line}\n")).collect::<String>();
        for text in [
            format!("root@board:~# cat result.json\n{json}root@board:~# "),
            format!("{json}root@board:~# \n"),
            prefixed("2026-01-01T00:00:00.000000000Z stdout F "),
            prefixed("[VM 1] "),
            prefixed("INFO: "),
            prefixed("board-1  | ").replace('\n', "\r\n"),
            json.replace("  \"thread\"", "[   12.345678] usb 1-1: new device\n  \"thread\""),
        ] {
            assert_eq!(results(&text).as_ref(), Ok(&alone), "{text}");
        }
        assert_eq!(results(&format!("{json}{json}")).unwrap().len(), 2);
        let cut = &json[..json.len() / 2];
        let error = results(&format!("$ cat x\n{cut}\n")).unwrap_err();
        assert!(error.0.starts_with("the JSON from line 2 on: expected cyclictest's JSON"), "{error}");
        let both = results(&format!("$ cat x\n{cut}\n$ cat y\n{json}")).unwrap();
        assert_eq!(both, alone);
    }

    proptest! {
        #[test]
        fn any_braces_are_passed(text in "(\\{|\\}|\"|\\\\|\n|\"thread\"|a){0,40}") {
            let _ = results(&format!("$ cat\n{text}"));
            let _ = results(&format!("{{{text}"));
        }
    }
}
