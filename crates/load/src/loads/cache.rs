//! `cache`: lines written in random order.

use std::convert::Infallible;
use std::io;

use super::SECOND;
use crate::load::{Count, Load, LoadSize, LoadTask, Needs};
use host::work::{Figure, Mapping};

pub const LOAD: Load = Load {
    name: "cache",
    title: "writes to cache lines in random order",
    doc: "Each process changes one byte of a line, then of another, chosen so that prefetchers cannot \
          predict it: data of other programs is evicted from the caches, and has to be read from memory \
          again.",
    count: Count { what: "processes", default: None },
    size: Some(LoadSize { what: "bytes per process", default: 16 << 20, least: 64 << 10, most: 1 << 40 }),
    keys: &[],
    unit: "lines",
    paced: true,
    chunk: |_| 1,
    window: SECOND,
    figure: Figure::CpuTime,
    needs: |wanted| Needs { memory: wanted.size + (1 << 20), disk: 0, tasks: 1 },
    run,
};

const LINE: usize = 64;

/// Lines counted at once.
const PORTION: usize = 4096;

fn run(work: &mut LoadTask) -> io::Result<Infallible> {
    let mut memory = Mapping::new(work.size())?;
    let bytes = memory.bytes();
    bytes.fill(1);
    let lines = bytes.len() / LINE;
    let portion = work.portion(PORTION);
    let mut state = 1u64;
    work.begin()?;
    loop {
        for _ in 0..portion {
            // The upper bits of a linear congruential generator (Knuth's MMIX) are random enough.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let line = ((state >> 33) as usize) % lines;
            bytes[line * LINE] = bytes[line * LINE].wrapping_add(1);
        }
        work.done(portion);
    }
}
