//! The built server under requests of boards and users, kills, copies and damage.

#![allow(clippy::disallowed_methods)] // Processes, files and sockets are what is tested here.
#![allow(clippy::unwrap_used)] // Clippy knows unit tests as tests, not helpers of integration tests.

mod analysis;
#[path = "../../src/fixture/cluster.rs"]
mod cluster;
mod database;
mod exactly_once;
#[cfg(feature = "fixture")]
mod in_browser;
mod killed_boards;
mod pushed;
mod scene;
mod server;
mod setup_page;
mod shown_demo;
mod tls;
mod upkeep;
mod users;
