//! A list of CPUs: what is accepted prints as a list that means the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::units::CpuSet;

fuzz_target!(|text: &str| {
    if let Ok(set) = CpuSet::parse(text) {
        assert_eq!(CpuSet::parse(&set.to_string()), Ok(set));
    }
});
