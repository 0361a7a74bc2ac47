//! Runs, comparisons, bounds and audits in readable form: terminal text, one HTML page, SVG, CSV,
//! JSON. Pure: values in, text out; no files, no clock, no environment.
//!
//! A run comes as an [`Input`]: its document, its blocks folded into a [`History`] of bounded size,
//! its block maxima. [`render`] writes it as a page, a plot, a table or its document. Pages are
//! made of parts: `run`, `hunt`, `bounds` and `map` each write their section, `plot` draws, `html`
//! has the frame. `audit`, `check`, `compare`, `rule_pages` and `watch` are separate pages; each of
//! these folders has a `text` for the terminal. `placement` has the lists of threads and
//! interrupts, `proving` the words of an experiment, `curing` the story of a cure.
//!
//! A picture for the page of a run is a file in `plot` and a row in [`run::pictures`]. Strings of a
//! run are hostile input: all go through `maud`'s escaping or through [`words::clean`].

mod aligned;
pub mod audit;
pub mod boundary;
pub mod bounds;
pub mod check;
pub mod compare;
mod condition_words;
pub mod curing;
mod digest;
pub mod doctor;
mod folded;
pub mod html;
pub mod hunt;
pub mod input;
pub mod isolation;
pub mod last_lines;
pub mod load;
pub mod map;
pub mod output;
pub mod palette;
pub mod placement;
pub mod plot;
pub mod prose;
pub mod proving;
pub mod rule_pages;
pub mod run;
pub mod script;
pub mod suite;
pub mod totals;
pub mod tuning;
mod unbroken;
pub mod watch;
pub mod words;

#[cfg(test)]
mod fixture;
#[cfg(test)]
#[path = "hostile/tests.rs"]
mod hostile;

pub use input::Input;
pub use output::{ReportFormat, render};
pub use plot::history::History;
