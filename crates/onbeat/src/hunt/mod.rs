//! The flight recorder armed while measuring goes on, and what it caught around each spike.
//!
//! `scope` (whom it looks at), `arm` (events, filters, triggers), `sheets` (pages as far back as needed), `cut` (one
//! spike's window), `names` (no address stays), `recorder` (all of it together), `explainer` (from late to explained),
//! `threshold` (what a spike is), `hunter` (what the measuring loop's housekeeping calls); `victims`, `watch`, `losses`, `blocks`, `room`,
//! `steal` and `chase` do the same for threads that are not onbeat's, `again` for the windows of a bundle;
//! `findings` is what both count.

pub mod again;
pub mod arm;
mod blocks;
pub mod chase;
mod cut;
pub mod explainer;
mod findings;
pub mod found;
pub mod hunter;
pub mod losses;
pub mod names;
pub mod recorder;
pub mod room;
pub mod scope;
mod sheets;
mod steal;
pub mod threshold;
mod ticks;
pub mod victims;
pub mod watch;
