//! Look for contradictions between tables, as `check` asks for.

pub mod maxima;
pub mod own_faults;
pub mod sums;
pub mod totals;
pub mod upkeep;
