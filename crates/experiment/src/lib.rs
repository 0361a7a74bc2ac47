//! Experiments on one change: pairs of segments with and without it, evaluated as they arrive.
//!
//! [`design`] has the parameters fixed beforehand, [`order`] the order of the arms in a pair,
//! [`length`] the length of a segment, [`settling`] the time ignored after a switch. [`tally`]
//! combines segments to pairs, [`proof`] decides on the end and the result; [`needs`] is the power
//! of the pairs. [`veto`] has the objections to a change that cures, [`carry_over`] and [`drift`]
//! check the assumptions on pairs. [`cure`] decides on the next move of a cure. Pure: `onbeat` runs
//! the segments.

pub mod carry_over;
pub mod cure;
pub mod design;
pub mod drift;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod length;
pub mod needs;
pub mod order;
pub mod proof;
pub mod settling;
pub mod tally;
pub mod veto;
