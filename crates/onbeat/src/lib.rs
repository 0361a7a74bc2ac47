//! onbeat measures the wake-up latency of a real-time Linux machine, and reports the conditions of
//! the measurement.
//!
//! [`plan`] turns a request and a machine into a plan or a refusal. [`measure`] executes it:
//! `measure::cycle` is the loop. [`probe`] measures delays that a timer does not show. [`hunt`]
//! records kernel events during a measurement and explains each late wake-up. [`top`] shows CPUs
//! and threads live. [`check`] examines a program from outside. [`doctor`] tries the needs of
//! commands. [`cli`] has one file per subcommand: it gathers, calls and prints.
//! ARCHITECTURE.md follows a latency, a number, a setting and a spike through the crates.

pub mod alarm;
pub mod check;
pub mod cli;
pub mod doctor;
pub mod hunt;
pub mod measure;
pub mod plan;
pub mod probe;
pub mod top;
pub mod watch;
