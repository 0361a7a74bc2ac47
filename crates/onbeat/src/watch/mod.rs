//! `onbeat watch`: every wake-up of every real-time thread, for months.

pub mod marks;
