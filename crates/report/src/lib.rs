//! A run as pictures and tables: values in, text out. No files, no clock, no environment.
//!
//! A [`Run`] carries the histograms; what happened when comes from the blocks, which are streamed
//! into a [`History`] of bounded size before anything is drawn. Strings of a run are hostile input:
//! everything goes through `maud`'s escaping or through [`words::clean`].

pub mod alone;
pub mod audit;
pub mod audit_page;
pub mod axis;
pub mod bounds;
pub mod clock;
pub mod columns;
pub mod compare;
pub mod conditions;
pub mod csv;
pub mod curve;
pub mod exceedance;
pub mod heatmap;
pub mod history;
pub mod html;
pub mod hunt;
pub mod ink;
pub mod junit;
pub mod label;
pub mod latency;
pub mod line;
pub mod map;
pub mod map_svg;
pub mod map_text;
pub mod marks;
pub mod outlook;
pub mod overlay;
pub mod page;
pub mod peaks;
pub mod perfetto;
pub mod prose;
pub mod rates;
pub mod rules;
pub mod rules_text;
pub mod shift;
pub mod supports;
pub mod svg;
pub mod table;
pub mod theme;
pub mod timeline;
pub mod versus;
pub mod words;

#[cfg(test)]
mod asked;
#[cfg(test)]
mod fixture;
#[cfg(test)]
#[path = "hostile/tests.rs"]
mod hostile;

use serde::Serialize;

pub use alone::svg;
pub use csv::csv;
pub use history::History;
pub use html::html;
use model::error::{self, Outcome};
use model::run::Run;
use model::units::Nanos;
use stats::bounds::Bounds;
use stats::series::Series;

/// Columns of time that the pictures are made for: as many as can be told apart.
pub const COLUMNS: usize = 240;

/// One run as it is to be shown.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The numbers.
    pub run: &'a Run,
    /// Its blocks, folded into columns.
    pub history: &'a History,
    /// Its block maxima; empty where only a histogram was kept.
    pub series: &'a Series,
    /// What it supports, where that was asked and there is something to answer with.
    pub bounds: Option<&'a Bounds>,
    /// What was traced around its spikes, for a hunt.
    pub windows: Option<&'a hunt::windows::Windows>,
    /// What reading the bundle had to repair or leave out.
    pub remarks: &'a [String],
    /// What to call it, usually the bundle's name.
    pub title: &'a str,
}

impl Input<'_> {
    /// The limit that was asked about, or else the run's own.
    pub fn limit(&self) -> Option<Nanos> {
        let asked = self.bounds.and_then(|bounds| bounds.claim).map(|claim| claim.limit_ns);
        asked.or(self.run.plan.limit_ns)
    }
}

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

/// One run is a document, several are an array.
#[derive(Serialize)]
#[serde(untagged)]
enum Document<'a> {
    One(&'a Run),
    Several(Vec<&'a Run>),
}

impl<'a> Document<'a> {
    fn new(inputs: &[Input<'a>]) -> Document<'a> {
        match inputs {
            [one] => Document::One(one.run),
            several => Document::Several(several.iter().map(|input| input.run).collect()),
        }
    }
}

/// The document of a single run, an array of several.
pub fn json(inputs: &[Input]) -> Outcome<String> {
    error::json_pretty(&Document::new(inputs))
}

/// As [`json`], on one line.
fn json_compact(inputs: &[Input]) -> Outcome<String> {
    error::json(&Document::new(inputs))
}

#[cfg(test)]
mod tests {
    use super::*;

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
