//! The built server asked as boards and people would, killed, copied and damaged.

#![allow(clippy::disallowed_methods)] // Processes, files and sockets are what is tested here.
#![allow(clippy::unwrap_used)] // Clippy knows unit tests as tests, not helpers of integration tests.

#[path = "../../src/fixture/cluster.rs"]
mod cluster;
mod database;
mod exactly_once;
mod people;
mod pushed;
mod server;
mod upkeep;
