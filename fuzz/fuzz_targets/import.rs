//! Another tool's result: what is accepted is consistent and survives being written again.
#![cfg_attr(fuzzing, no_main)]

use bundle::foreign::{self, CyclictestContext, ImportOptions, cyclictest_hist, cyclictest_json};
use entry::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // The first byte chooses: by what the text says, or as one format only.
    let Some((&choice, text)) = bytes.split_first() else { return };
    let formats = foreign::FORMATS;
    let format = formats.get(usize::from(choice)).map(|format| format.id.to_owned());
    match foreign::import(text, &ImportOptions { format, ..ImportOptions::default() }) {
        Ok(results) => {
            for run in results.iter().map(|result| &result.run) {
                assert_eq!(run.check(), Ok(()));
                let json = cyclictest_json::write(run, &CyclictestContext::default())
                    .expect("a run has no odd keys");
                assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
                let _ = cyclictest_hist::write(run);
            }
        }
        Err(error) => assert!(!error.0.contains('\n')),
    }
});
