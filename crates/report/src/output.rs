//! Output formats of a report.

use super::boundary::for_viewer;
use super::input::Input;
use super::run::{csv::csv, json::json, page::html, standalone_svg::svg};
use model::error::{Failure, Result};
use model::text::clean;

/// Formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    Html,
    /// Latency plot only.
    Svg,
    Csv,
    /// Document of the run.
    Json,
}

impl ReportFormat {
    /// Format that the extension of a file name selects.
    pub fn of_name(name: &str) -> Option<ReportFormat> {
        let (_, ending) = name.rsplit_once('.')?;
        Some(match ending.to_ascii_lowercase().as_str() {
            "html" | "htm" => ReportFormat::Html,
            "svg" => ReportFormat::Svg,
            "csv" => ReportFormat::Csv,
            "json" => ReportFormat::Json,
            _ => return None,
        })
    }
}

/// Renders the runs in the format.
pub fn render(inputs: &[Input], format: ReportFormat) -> Result<String> {
    match format {
        ReportFormat::Html => html(inputs),
        ReportFormat::Svg => with_histograms(inputs).map(svg).map(for_viewer),
        ReportFormat::Csv => {
            let tables = with_histograms(inputs)?.iter().map(|input| csv(input.run));
            Ok(for_viewer(tables.collect::<Vec<_>>().join("\n")))
        }
        ReportFormat::Json => json(inputs),
    }
}

/// Checks that each of the runs has a histogram.
fn with_histograms<'a, 'b>(inputs: &'a [Input<'b>]) -> Result<&'a [Input<'b>]> {
    for input in inputs {
        input.run.require_histogram().map_err(|failure| Failure {
            message: match inputs {
                [_] => failure.message,
                _ => format!("{}: {}", clean(input.title), failure.message),
            },
            ..failure
        })?;
    }
    Ok(inputs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use model::run::Run;

    #[test]
    fn formats_follow_the_ending() {
        for (name, format) in [
            ("a.html", Some(ReportFormat::Html)),
            ("a.b.SVG", Some(ReportFormat::Svg)),
            ("x/y.csv", Some(ReportFormat::Csv)),
            ("-", None),
            ("html", None),
            ("a.pdf", None),
        ] {
            assert_eq!(ReportFormat::of_name(name), format, "{name}");
        }
    }

    #[test]
    fn json_of_one_run_reads_back_as_that_run() {
        let sample = fixture::quiet();
        let text = render(&[sample.input()], ReportFormat::Json).unwrap();
        assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), sample.run);
        let text = render(&[sample.input(), sample.input()], ReportFormat::Json).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Run>>(&text).unwrap().len(), 2);
    }
}
