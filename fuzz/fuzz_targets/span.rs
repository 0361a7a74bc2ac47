//! A span of time: never negative, and its text is never empty.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::units::{Bare, Nanos, parse_span};

fuzz_target!(|text: &str| {
    for bare in [Bare::Seconds, Bare::Micros] {
        if let Ok(span) = parse_span(text, bare) {
            assert!(span >= Nanos(0) && !span.to_string().is_empty());
        }
    }
});
