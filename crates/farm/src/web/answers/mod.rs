//! The writing of answers: in parts, in turn, packed, and without names for the public.

pub mod answer_parts;
pub mod answer_turns;
pub mod data;
pub mod files;
pub mod histogram_parts;
pub mod known;
pub mod protection;
pub mod slot_parts;
pub mod tables;
pub mod unnamed;
