//! The loads, one file each.
//!
//! Adding one: write its file with its record `LOAD`; list the module and the record here; run
//! `cargo test -p load`; run `cargo xtask docs`.

pub mod cache;
pub mod cmd;
pub mod cpu;
pub mod fork;
pub mod hdd;
pub mod io;
pub mod mem;
pub mod messaging;
pub mod net;
pub mod proc;
pub mod rtc;
pub mod timers;
pub mod tlb;
pub mod vm;

use crate::load::Load;
use model::units::Nanos;

/// All loads, in the order of listings.
pub const LOADS: [&Load; 14] = [
    &cpu::LOAD,
    &vm::LOAD,
    &mem::LOAD,
    &cache::LOAD,
    &hdd::LOAD,
    &io::LOAD,
    &fork::LOAD,
    &messaging::LOAD,
    &timers::LOAD,
    &net::LOAD,
    &tlb::LOAD,
    &proc::LOAD,
    &rtc::LOAD,
    &cmd::LOAD,
];

/// Names for several loads. `full` is the full load of Enea's study of PREEMPT_RT, table 3.5.
pub const MIXES: [(&str, &str); 1] = [("full", "cpu:4 io:4 vm:4x15M hdd:4x20M")];

/// Window of most loads.
const SECOND: Nanos = Nanos::SECOND;

/// Window of loads with operations that may take seconds, on a disk or a slow bus.
const FIVE_SECONDS: Nanos = Nanos(5_000_000_000);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec;

    #[test]
    fn every_record_is_whole_and_its_name_is_its_own() {
        for (at, load) in LOADS.iter().enumerate() {
            assert!(LOADS[..at].iter().all(|other| other.name != load.name), "{}", load.name);
            assert!(
                !load.title.is_empty() && load.doc.ends_with('.') && load.window >= SECOND,
                "{}",
                load.name
            );
            assert!(load.name == "cmd" || !load.unit.is_empty(), "{}", load.name);
            if let Some(size) = load.size {
                assert!((size.least..=size.most).contains(&size.default), "{}", load.name);
            }
        }
    }

    #[test]
    fn every_mix_is_made_of_loads() {
        for (name, mix) in MIXES {
            assert!(spec::parse(&[mix]).is_ok_and(|specs| !specs.is_empty()), "{name}");
            assert!(LOADS.iter().all(|load| load.name != name), "{name}");
        }
    }
}
