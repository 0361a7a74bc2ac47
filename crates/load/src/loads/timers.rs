//! `timers`: short sleeps.

use std::convert::Infallible;
use std::io;

use super::SECOND;
use crate::load::{Count, Load, LoadTask, Needs};
use host::clock;
use host::work::Figure;
use model::units::Nanos;

pub const LOAD: Load = Load {
    name: "timers",
    title: "sleeps for 20 us repeatedly",
    doc: "Each process sets a timer and sleeps until it expires: timer interrupts, wake-ups, programming of \
          the timer. The kernel adds the timer slack, usually 50 us, to each sleep.",
    count: Count { what: "processes", default: None },
    size: None,
    keys: &[],
    unit: "expirations",
    paced: false,
    chunk: |_| 1,
    window: SECOND,
    figure: Figure::Switches,
    needs: |_| Needs { memory: 1 << 20, disk: 0, tasks: 1 },
    run,
};

const SLEEP: Nanos = Nanos(20_000);

fn run(work: &mut LoadTask) -> io::Result<Infallible> {
    work.begin()?;
    loop {
        clock::sleep_for(SLEEP);
        work.done(1);
    }
}
