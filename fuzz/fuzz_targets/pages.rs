//! A page of a trace buffer, read by the formats of a recorded kernel, or by the input's own.

#![cfg_attr(fuzzing, no_main)]

use entry::fuzz_target;
use model::units::Cpu;
use trace::catalog;
use trace::decode::Decoder;

const HEADER: &str = include_str!("../../tests/pages/debian-6.12-rt/header_page");
const FORMATS: &str = include_str!("../../tests/pages/debian-6.12-rt/formats");

fuzz_target!(|input: (bool, bool, String, Vec<u8>)| {
    let (big, own, text, bytes) = input;
    let all = if own { text.as_str() } else { FORMATS };
    let Ok(decoder) = Decoder::new(HEADER, big, &catalog::formats(all)) else { return };
    let mut events = 0;
    let notes = decoder.page(Cpu(0), &bytes, &mut |event| {
        events += 1;
        assert!(event.time.0 >= 0);
    });
    assert_eq!(events + notes.unknown + notes.malformed, notes.records);
    assert!(notes.start <= notes.end);
});
