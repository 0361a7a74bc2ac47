//! Documents of runs, as they were read.

use serde::Serialize;
use serde_json::Value;

use crate::hunt::parts::by_latency;
use crate::hunt::windows::KEPT_LANES;
use crate::input::Input;
use model::error::{self, Result};
use model::run::{Run, Slice};

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

/// Document of a single run, an array of several.
pub fn json(inputs: &[Input]) -> Result<String> {
    error::json_pretty(&Document::new(inputs))
}

/// Compact JSON for a page, on one line. The slices of thousands of spikes would be most of it:
/// only the latest spikes keep them, without fields that have their default. The page has all parts
/// of every spike in another form.
pub fn json_compact(inputs: &[Input]) -> Result<String> {
    let mut document = error::json_value(&Document::new(inputs))?;
    let plain = error::json_value(&Slice::default())?;
    let documents = match &mut document {
        Value::Array(runs) => runs.iter_mut().collect(),
        run => vec![run],
    };
    for (input, run) in inputs.iter().zip(documents) {
        let Some(spikes) = run.get_mut("spikes").and_then(Value::as_array_mut) else { continue };
        for at in by_latency(input.run).into_iter().skip(KEPT_LANES) {
            spikes[at].as_object_mut().and_then(|spike| spike.remove("slices"));
        }
        let slices = spikes.iter_mut().filter_map(|spike| spike.get_mut("slices")?.as_array_mut());
        slices.flatten().for_each(|slice| leave_out(slice, &plain));
    }
    error::json(&document)
}

/// Removes fields that equal those of another object.
fn leave_out(value: &mut Value, plain: &Value) {
    let (Value::Object(fields), Value::Object(plain)) = (value, plain) else { return };
    fields.retain(|name, field| {
        let Some(plain) = plain.get(name) else { return true };
        leave_out(field, plain);
        field != plain && field.as_object().is_none_or(|inner| !inner.is_empty())
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;

    #[test]
    fn a_page_has_the_slices_of_the_latest_spikes_as_they_were() {
        let (sample, run) = (crate::fixture::quiet(), fixture::run());
        let text = json_compact(&[Input { run: &run, ..sample.input() }]).unwrap();
        assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), run);
        let mut many = run.clone();
        many.spikes = (0..KEPT_LANES + 50).map(|at| run.spikes[at % run.spikes.len()].clone()).collect();
        let text = json_compact(&[Input { run: &many, ..sample.input() }]).unwrap();
        let read = serde_json::from_str::<Run>(&text).unwrap();
        assert_eq!(read.spikes.iter().filter(|spike| !spike.slices.is_empty()).count(), KEPT_LANES);
        assert_eq!(read.spikes.len(), many.spikes.len());
    }
}
