//! `cmd`: a user's program.

use std::convert::Infallible;
use std::io;

use super::SECOND;
use crate::load::{Count, Load, LoadTask, Needs};
use host::work::{Figure, become_program};

pub const LOAD: Load = Load {
    name: "cmd",
    title: "runs another program",
    doc: "Runs a command in the same cage as the other loads: on the CPUs of the load, without real-time \
          priority, ended with all processes that it started. Its words are split at blanks unless quoted, \
          without a shell, and its output is discarded. Its proof is processor time only.",
    count: Count { what: "", default: Some(1) },
    size: None,
    keys: &[],
    unit: "",
    paced: false,
    chunk: |_| 1,
    window: SECOND,
    figure: Figure::FamilyTime,
    needs: |_| Needs { memory: 0, disk: 0, tasks: 1 },
    run,
};

fn run(work: &mut LoadTask) -> io::Result<Infallible> {
    let command = work.command();
    match command.split_first() {
        Some((program, arguments)) => Err(become_program(program, arguments)),
        None => Err(io::Error::other("a command is missing")),
    }
}
