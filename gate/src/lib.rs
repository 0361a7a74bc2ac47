//! The selection of packages that the gate, `xtask` and its tests build alike.

/// All packages with the features of examples. Another selection would change the features of
/// shared dependencies, and rebuild most of it.
pub const WORKSPACE: [&str; 3] = ["--workspace", "--features", "onbeat-farm/fixture"];
