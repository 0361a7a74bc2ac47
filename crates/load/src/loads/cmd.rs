//! `cmd`: a user's program.

use std::convert::Infallible;
use std::io;

use super::SECOND;
use crate::load::{Count, Load, LoadTask, Needs};
use host::work::{Figure, become_program};

pub const LOAD: Load = Load {
    name: "cmd",
    title: "runs a program of your choice",
    doc: "Runs a command under the same limits as the other loads: on the CPUs of the load, without \
          real-time priority, and ended together with all processes that it has started. The command is \
          split at blanks outside of quotes, no shell is used, and its output is discarded. Its only proof \
          is processor time, because onbeat does not know what the program does.",
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
        None => Err(io::Error::other("no command was given")),
    }
}
