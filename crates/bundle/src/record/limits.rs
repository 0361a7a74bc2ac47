//! How large a record and its files become.

/// What files and the folder may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepLimits {
    /// A segment of this size is followed by another where a span ends,
    pub segment: u64,
    /// one of this size everywhere.
    pub most: u64,
    /// What closed files take at most: the rest is for the tail and for what a step makes before it
    /// removes.
    pub closed: u64,
}

impl KeepLimits {
    /// Those of a folder of that size.
    pub fn of(size: u64) -> KeepLimits {
        KeepLimits { segment: size / 64, most: size / 16, closed: size / 16 * 12 }
    }
}
