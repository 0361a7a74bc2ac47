//! Lines of rows as boards send them: what their decoder promises (`farm::fixture::hostile`).

#![cfg_attr(fuzzing, no_main)]

use entry::fuzz_target;

fuzz_target!(|bytes: &[u8]| farm::fixture::hostile::row_lines(bytes));
