//! A bundle's run.json: what parses is refused by its check or fit for the functions that read it.
#![cfg_attr(fuzzing, no_main)]

use entry::fuzz_target;
use model::run::Run;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut run) = serde_json::from_slice::<Run>(bytes) else { return };
    if run.check().is_ok() {
        run.cpus.iter_mut().for_each(|cpu| cpu.fill_quantiles());
    }
});
