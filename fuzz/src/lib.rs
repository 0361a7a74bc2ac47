//! The entry point of the fuzz targets: libFuzzer's where `cargo fuzz` sets `fuzzing`. In any other
//! build each target reads the files that its arguments name, so one toolchain compiles all of it
//! and reproduces a failure.

#[cfg(not(fuzzing))]
pub use arbitrary;
#[cfg(fuzzing)]
pub use libfuzzer_sys::fuzz_target;

/// A target's `main`: the same input as libFuzzer's for the bytes of each file.
#[cfg(not(fuzzing))]
#[macro_export]
macro_rules! fuzz_target {
    (|$input:ident: $kind:ty| $body:expr) => {
        fn main() {
            use $crate::arbitrary::{Arbitrary, Unstructured};
            let target = |$input: $kind| $body;
            for path in std::env::args_os().skip(1) {
                let bytes = std::fs::read(&path).expect("a file of input");
                if let Ok(input) = <$kind as Arbitrary>::arbitrary_take_rest(Unstructured::new(&bytes)) {
                    target(input);
                }
            }
        }
    };
}
