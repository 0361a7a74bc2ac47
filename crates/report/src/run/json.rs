//! The documents of runs, as they were read.

use serde::Serialize;

use crate::input::Input;
use model::error::{self, Result};
use model::run::Run;

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
pub fn json(inputs: &[Input]) -> Result<String> {
    error::json_pretty(&Document::new(inputs))
}

/// As [`json`], on one line.
pub fn json_compact(inputs: &[Input]) -> Result<String> {
    error::json(&Document::new(inputs))
}
