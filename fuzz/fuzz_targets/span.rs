//! A span of time: never negative, and its text is never empty.
#![cfg_attr(fuzzing, no_main)]

use entry::fuzz_target;
use model::units::{Bare, Nanos, parse_span};

fuzz_target!(|text: &str| {
    for bare in [Bare::Seconds, Bare::Micros] {
        if let Ok(span) = parse_span(text, bare) {
            assert!(span >= Nanos(0) && !span.to_string().is_empty());
        }
    }
});
