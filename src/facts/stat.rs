//! placeholder until the facts room arrives
use crate::units::Cpu;
/// steal
pub fn steal_ticks(_text: &[u8], _f: impl FnMut(Cpu, u64)) {}
