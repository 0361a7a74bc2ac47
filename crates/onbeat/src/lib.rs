//! onbeat measures how late a real-time Linux machine wakes its threads, and reports under which
//! conditions it did so. The modules, from the measuring loop to the terminal; ARCHITECTURE.md
//! draws how a sample walks through them.

pub mod cli;
pub mod hunt;
pub mod measure;
pub mod plan;
