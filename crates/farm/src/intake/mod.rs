//! The intake: a bundle or a record is read, checked, kept and stored, whether it is from a folder
//! of `import` and `serve --runs` or from its board.

mod copies;
mod kept_copy;
mod scan;
mod take;
mod take_record;

pub use copies::BundleCopies;
pub use kept_copy::bundle_fault;
pub use scan::{RecordOutcome, ScanOptions, ScanOutcome, ScanProgress, SeenRuns, scan};
pub use take::{IntakeOutcome, IntakeRun, Keeping, PARSER_FAILED, Rejection, SentRun, take};
