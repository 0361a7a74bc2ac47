//! Lines of rows as boards send them: what their decoder promises (`farm::fixture::hostile`).

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| farm::fixture::hostile::row_lines(bytes));
