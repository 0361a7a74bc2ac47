//! Boards: their list, the page of each, its five minutes, and their data.

pub mod api;
pub mod board_list;
pub mod board_page;
pub mod environment_parts;
pub mod five_minutes;

#[cfg(test)]
pub mod board_tests;
