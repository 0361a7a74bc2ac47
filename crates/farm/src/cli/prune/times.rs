//! Ages of the parts that retention removes.

use crate::store::{KeptBundle, ThinnedPart};

/// Times before which received parts are removed, in seconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct RetentionTimes {
    pub blocks: i64,
    pub windows: i64,
    pub now: i64,
}

impl RetentionTimes {
    /// The old parts of a bundle received at a time, in the order of their removal.
    pub fn old(&self, bundle: &KeptBundle, came: i64) -> Vec<ThinnedPart> {
        let came = came.max(bundle.started);
        let is_old = |part: &ThinnedPart| match part {
            ThinnedPart::Blocks => came < self.blocks,
            ThinnedPart::Windows => came < self.windows && bundle.spikes > 0,
        };
        [ThinnedPart::Windows, ThinnedPart::Blocks].into_iter().filter(is_old).collect()
    }
}
