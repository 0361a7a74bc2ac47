//! A list of CPUs: what is accepted prints as a list that means the same.
#![cfg_attr(fuzzing, no_main)]

use entry::fuzz_target;
use model::units::CpuSet;

fuzz_target!(|text: &str| {
    if let Ok(set) = CpuSet::parse(text) {
        assert_eq!(CpuSet::parse(&set.to_string()), Ok(set));
    }
});
