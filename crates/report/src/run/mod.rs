//! Run: its table for the terminal, its page, its plot alone, its histograms as CSV.

pub mod answer;
pub mod conditions;
pub mod csv;
pub mod differing;
pub mod hand_overs;
pub mod hwlatdetect;
mod import;
mod inversions;
mod jobs;
pub mod json;
mod migrations;
pub mod next_steps;
mod packets;
pub mod page;
mod picture_tables;
mod pictures;
pub mod policy;
pub mod probes;
pub mod repeat;
mod responses;
pub mod section;
pub mod sentences;
pub mod standalone_svg;
pub mod table;
mod verdicts;
mod what_next;
