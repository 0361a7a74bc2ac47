//! Histograms of a run's five minutes: what their decoder promises (`farm::fixture::hostile`).

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| farm::fixture::hostile::run_rows(bytes));
