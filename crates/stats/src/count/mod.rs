//! Bounds that counting alone supports: no law of the latencies is assumed, only that blocks are
//! exchangeable.

pub mod climb;
pub mod order;
pub mod rate;
pub mod record;
pub mod sequential;
