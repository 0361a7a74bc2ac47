//! `rtc`: the clock behind a slow bus.

use std::convert::Infallible;
use std::io;

use super::FIVE_SECONDS;
use crate::load::{Count, Load, LoadTask, Needs};
use host::RereadFile;
use host::work::Figure;

pub const LOAD: Load = Load {
    name: "rtc",
    title: "reads the real-time clock",
    doc: "Reads the time of the first real-time clock, ten times a second unless a rate is given: on many \
          boards it is behind a slow bus, whose driver may keep interrupts disabled; on PCs the firmware is \
          involved. The clock is never set.",
    count: Count { what: "processes", default: Some(1) },
    size: None,
    keys: &[],
    unit: "reads",
    paced: true,
    chunk: |_| 1,
    window: FIVE_SECONDS,
    figure: Figure::CpuTime,
    needs: |_| Needs { memory: 1 << 20, disk: 0, tasks: 1 },
    run,
};

/// Reads per second of Toradex's load.
const RATE: u64 = 10;

fn run(work: &mut LoadTask) -> io::Result<Infallible> {
    let mut clock = RereadFile::open("/sys/class/rtc/rtc0/since_epoch", 64)?;
    clock.read()?;
    work.pace_by_default(RATE);
    work.begin()?;
    loop {
        clock.read()?;
        work.done(1);
    }
}
