//! What a report can be written as.

use super::input::Input;
use super::run::{csv::csv, json::json, page::html, standalone_svg::svg};
use model::error::Outcome;

/// What a report can be written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One self-contained page.
    Html,
    /// The latency plot alone.
    Svg,
    /// The histograms.
    Csv,
    /// The run's own document.
    Json,
}

impl Format {
    /// The format that a file name asks for by its ending.
    pub fn of_name(name: &str) -> Option<Format> {
        let (_, ending) = name.rsplit_once('.')?;
        Some(match ending.to_ascii_lowercase().as_str() {
            "html" | "htm" => Format::Html,
            "svg" => Format::Svg,
            "csv" => Format::Csv,
            "json" => Format::Json,
            _ => return None,
        })
    }
}

/// The runs in the format.
pub fn render(inputs: &[Input], format: Format) -> Outcome<String> {
    match format {
        Format::Html => html(inputs),
        Format::Svg => Ok(svg(inputs)),
        Format::Csv => Ok(inputs.iter().map(|input| csv(input.run)).collect::<Vec<_>>().join("\n")),
        Format::Json => json(inputs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use model::run::Run;

    #[test]
    fn formats_follow_the_ending() {
        for (name, format) in [
            ("a.html", Some(Format::Html)),
            ("a.b.SVG", Some(Format::Svg)),
            ("x/y.csv", Some(Format::Csv)),
            ("-", None),
            ("html", None),
            ("a.pdf", None),
        ] {
            assert_eq!(Format::of_name(name), format, "{name}");
        }
    }

    #[test]
    fn json_of_one_run_reads_back_as_that_run() {
        let sample = fixture::quiet();
        let text = render(&[sample.input()], Format::Json).unwrap();
        assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), sample.run);
        let text = render(&[sample.input(), sample.input()], Format::Json).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Run>>(&text).unwrap().len(), 2);
    }
}
