//! The selection of packages that the gate, `xtask` and its tests build alike.

/// All packages with the features of examples, except the fuzz targets, which need libFuzzer.
/// Another selection would change the features of shared dependencies, and rebuild most of it.
pub const WORKSPACE: [&str; 5] =
    ["--workspace", "--exclude", "onbeat-fuzz", "--features", "onbeat-farm/fixture"];
