//! onbeat measures how late a real-time Linux machine wakes its threads, and says under which
//! conditions it did so. The modules in reading order, from the kernel's door to the terminal;
//! ARCHITECTURE.md draws how a sample walks through them.

#[path = "../../model/src/error.rs"]
pub mod error;
#[path = "../../model/src/text.rs"]
pub mod text;
#[path = "../../model/src/units.rs"]
pub mod units;

#[path = "../../bundle/src/lib.rs"]
pub mod bundle;
pub mod cli;
pub mod config;
#[path = "../../facts/src/lib.rs"]
pub mod facts;
#[path = "../../bundle/src/foreign/mod.rs"]
pub mod foreign;
#[path = "../../host/src/lib.rs"]
pub mod host;
pub mod hunt;
pub mod measure;
pub mod plan;
#[path = "../../report/src/lib.rs"]
pub mod report;
#[path = "../../rules/src/lib.rs"]
pub mod rules;
#[path = "../../stats/src/lib.rs"]
pub mod stats;
#[path = "../../trace/src/timeline/mod.rs"]
pub mod timeline;
#[path = "../../trace/src/lib.rs"]
pub mod trace;
