//! Output of commands: lines, documents, progress, and the end by a signal.

pub mod document_flags;
pub mod interruption;
pub mod printed_output;
pub mod progress;
