//! The refusal of a text that is of no format: its heading by name, and the candidates.

use super::error::ImportError;
use super::format::{Confidence, Reader};
use super::recognised::Recognised;
use super::source::{DocumentShape, SourceText};
use super::{FORMATS, quoted};

/// The most lines that are searched for a heading.
const SEARCHED: usize = 10_000;

/// The reason for which nothing is read, with the candidates that `--as` would try.
pub(super) fn refusal(source: &SourceText, weak: &[Recognised]) -> ImportError {
    let heading = heading(source);
    let named = heading.map(|(line, text)| format!("line {line}: unknown heading {}", quoted(text)));
    let mut ids: Vec<&str> = weak
        .iter()
        .filter(|one| one.finding.confidence == Confidence::Weak)
        .map(|one| one.format.id)
        .collect();
    ids.dedup();
    let remedy = match ids.as_slice() {
        [] => {
            let readable = FORMATS.iter().filter(|format| matches!(format.reader, Reader::Run(_)));
            let mut tools: Vec<&str> =
                readable.filter_map(|format| format.tool.split("'s ").next()).collect();
            tools.sort_unstable();
            tools.dedup();
            format!("expected the whole output of {}", tools.join(", "))
        }
        ids => {
            let tried: Vec<String> = ids.iter().map(|id| format!("--as {id}")).collect();
            format!(
                "the rows alone do not say what they are: give the whole output, or {}",
                tried.join(" or ")
            )
        }
    };
    let what = match source.shape {
        DocumentShape::Json if named.is_none() => "unknown JSON".to_owned(),
        DocumentShape::Xml if named.is_none() => "unknown XML".to_owned(),
        _ => named.unwrap_or_else(|| "no result of a known tool".to_owned()),
    };
    ImportError(format!("{what}: {remedy}"))
}

/// The last line with a letter before the first row of numbers.
fn heading(source: &SourceText) -> Option<(usize, &str)> {
    if source.shape != DocumentShape::Text {
        return None;
    }
    let mut last = None;
    for line in source.lines().take(SEARCHED) {
        let text = line.text.trim();
        let numbers = text.split([' ', '\t', ',', ';', '|']).filter(|word| !word.is_empty());
        if !text.is_empty() && numbers.clone().all(|word| word.parse::<f64>().is_ok()) {
            return last;
        }
        if text.chars().any(char::is_alphabetic) {
            last = Some((line.number, text));
        }
    }
    None
}
