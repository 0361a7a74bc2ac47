//! `fork`: processes that start and end.

use std::convert::Infallible;
use std::io;

use super::SECOND;
use crate::load::{Count, Load, LoadTask, Needs};
use host::work::{Figure, fork_and_wait};

pub const LOAD: Load = Load {
    name: "fork",
    title: "starts processes that end at once",
    doc: "Each process starts another, which ends, and waits for it: creation and removal of address spaces, \
          the process table, RCU.",
    count: Count { what: "processes", default: None },
    size: None,
    keys: &[],
    unit: "processes",
    paced: true,
    chunk: |_| 1,
    window: SECOND,
    figure: Figure::Forks,
    needs: |_| Needs { memory: 2 << 20, disk: 0, tasks: 2 },
    run,
};

fn run(work: &mut LoadTask) -> io::Result<Infallible> {
    work.begin()?;
    loop {
        fork_and_wait(work.counter)?;
        work.done(1);
    }
}
