//! Size limits of a record and its files.

/// Size limits of the files and of the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepLimits {
    /// Size of a segment that is followed by another at the end of a span.
    pub segment: u64,
    /// Size of a segment that is followed by another at any time.
    pub most: u64,
    /// Maximum size of closed files: the rest is for the tail and for files that a step writes
    /// before it removes others.
    pub closed: u64,
}

impl KeepLimits {
    /// Limits for a folder of that size.
    pub fn of(size: u64) -> KeepLimits {
        KeepLimits { segment: size / 64, most: size / 16, closed: size / 16 * 12 }
    }
}
