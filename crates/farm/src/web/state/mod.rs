//! State that all requests share, and the task that takes rows in.

pub mod app;
pub mod attempts;
pub mod board_changes;
pub mod board_quota;
pub mod clones;
pub mod folder_turn;
pub mod found_changes;
pub mod intake;
pub mod known_verdicts;
pub mod last_write;
pub mod made_reports;
pub mod refusals;
