//! onbeat measures how late a real-time Linux machine wakes its threads, and reports under which
//! conditions it did so.
//!
//! [`plan`] turns what was asked for and what the machine is into a plan or a refusal. [`measure`]
//! carries it out: `measure::cycle` is the loop. [`probe`] has other threads do what a timer does
//! not show. [`hunt`] records the kernel's events meanwhile and explains each late wake-up.
//! [`check`] looks at a program from outside. [`cli`] has one file per subcommand: it gathers,
//! calls and prints. ARCHITECTURE.md follows a latency, a number, a setting and a spike through the
//! crates.

pub mod alarm;
pub mod check;
pub mod cli;
pub mod hunt;
pub mod measure;
pub mod plan;
pub mod probe;
pub mod watch;
