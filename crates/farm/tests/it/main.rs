//! The built server asked as boards and people would, killed, copied and damaged.

#![allow(clippy::disallowed_methods)] // Processes, files and sockets are what is tested here.

mod exactly_once;
mod pushed;
mod server;
mod upkeep;
