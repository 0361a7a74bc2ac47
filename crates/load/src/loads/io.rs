//! `io`: flushing all disks.

use std::convert::Infallible;
use std::io;

use super::FIVE_SECONDS;
use crate::load::{Count, Load, LoadTask, Needs};
use host::work::{Figure, sync_all};

pub const LOAD: Load = Load {
    name: "io",
    title: "flushes written data to all disks",
    doc: "Each process repeatedly calls sync(2): locks and lists of the file systems, and, together with \
          `hdd` or other writers, the disks.",
    count: Count { what: "processes", default: Some(1) },
    size: None,
    keys: &[],
    unit: "syncs",
    paced: true,
    chunk: |_| 1,
    window: FIVE_SECONDS,
    figure: Figure::CpuTime,
    needs: |_| Needs { memory: 1 << 20, disk: 0, tasks: 1 },
    run,
};

fn run(work: &mut LoadTask) -> io::Result<Infallible> {
    work.begin()?;
    loop {
        sync_all();
        work.done(1);
    }
}
