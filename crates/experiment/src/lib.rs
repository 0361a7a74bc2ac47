//! One change, proven or not: pairs of segments with it and without it, decided as they come.
//!
//! [`design`] is what is fixed beforehand, [`order`] which arm of a pair comes first, [`length`]
//! how long a segment is, [`settling`] what is left out behind a switch. [`tally`] puts the
//! segments into pairs, [`proof`] decides: whether to go on, and what the pairs show; [`needs`] is
//! what they could have found. [`veto`] is what speaks against a change that cures, [`carry_over`]
//! and [`drift`] whether the pairs are what they are meant to be. [`cure`] is what a cure does
//! next. Pure: what runs segments is `onbeat`.

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
