//! Another tool's result: what is accepted is consistent and survives being written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use bundle::foreign::{self, CyclictestContext, cyclictest_hist, cyclictest_json};

fuzz_target!(|bytes: &[u8]| {
    match foreign::import(bytes) {
        Ok(run) => {
            assert_eq!(run.check(), Ok(()));
            let json = cyclictest_json::write(&run, &CyclictestContext::default()).expect("a run has no odd keys");
            assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
            cyclictest_hist::write(&run);
        }
        Err(error) => assert!(!error.contains('\n')),
    }
});
