//! The kernel's types (BTF): any bytes are read or refused, and answer all questions.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| recorder::btf::ask_all(bytes));
