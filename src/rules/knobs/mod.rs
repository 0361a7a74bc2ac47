//! The knobs: one file per setting that can be judged, and the list of them all.

pub mod sources;

mod fair_server;
mod preemption_model;
mod rt_throttling;

use super::Knob;

/// Every knob, in the alphabet's order: findings keep it.
pub static ALL: &[&Knob] = &[&fair_server::KNOB, &preemption_model::KNOB, &rt_throttling::KNOB];
