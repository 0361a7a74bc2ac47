//! The kernel's types (BTF): any bytes are read or refused, and answer all questions.

#![cfg_attr(fuzzing, no_main)]

use entry::fuzz_target;

fuzz_target!(|bytes: &[u8]| recorder::btf::ask_all(bytes));
