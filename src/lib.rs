//! onbeat measures how late a real-time Linux machine wakes its threads, and says under which
//! conditions it did so. The modules in reading order, from the kernel's door to the terminal;
//! ARCHITECTURE.md draws how a sample walks through them.

pub mod error;
pub mod text;
pub mod units;

pub mod bundle;
pub mod cli;
pub mod config;
pub mod facts;
pub mod foreign;
pub mod host;
pub mod hunt;
pub mod measure;
pub mod plan;
pub mod report;
pub mod rules;
pub mod stats;
pub mod timeline;
pub mod trace;
