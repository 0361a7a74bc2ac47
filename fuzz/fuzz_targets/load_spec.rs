//! A load as a user writes it: what is printed of it is read as the same, and whether it fits can
//! be said of it.
#![cfg_attr(fuzzing, no_main)]

use std::path::Path;

use entry::fuzz_target;
use load::admission::{Planned, admit};
use load::spec::{LoadSpec, parse};

fuzz_target!(|text: &str| {
    match parse(&[text]) {
        Err(why) => assert!(!why.is_empty()),
        Ok(specs) => {
            let printed: Vec<String> = specs.iter().map(LoadSpec::to_string).collect();
            let again = parse(&printed).map(|specs| specs.iter().map(LoadSpec::to_string).collect());
            assert_eq!(again.as_ref(), Ok(&printed));
            for cpus in [1, 4096] {
                let planned = |spec: &LoadSpec| Planned::new(spec.clone(), cpus, Path::new("/"));
                let loads: Vec<Planned> = specs.iter().map(planned).collect();
                let _ = admit(&loads, Some(8 << 30), |_| Some(8 << 30), |_| Some(1));
            }
        }
    }
});
