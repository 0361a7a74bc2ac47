//! `mem`: copying beyond the caches.

use std::convert::Infallible;
use std::io;

use super::SECOND;
use crate::load::{Count, Load, LoadSize, LoadTask, Needs};
use host::work::{Figure, Mapping};

pub const LOAD: Load = Load {
    name: "mem",
    title: "copies memory beyond the last-level cache",
    doc: "Each process copies one half of its memory to the other, and back: memory bandwidth, which all \
          CPUs share, and the shared cache. It requests huge pages. Copied bytes are counted; each is read \
          and written once.",
    count: Count { what: "processes", default: None },
    size: Some(LoadSize { what: "bytes per process", default: 256 << 20, least: 64 << 10, most: 1 << 40 }),
    keys: &[],
    unit: "bytes",
    paced: true,
    chunk: |_| 1,
    window: SECOND,
    figure: Figure::CpuTime,
    needs: |wanted| Needs { memory: wanted.size + (1 << 20), disk: 0, tasks: 1 },
    run,
};

/// Bytes copied and counted at once.
const PORTION: usize = 1 << 20;

fn run(work: &mut LoadTask) -> io::Result<Infallible> {
    let mut memory = Mapping::new(work.size())?;
    memory.prefer_large_pages();
    let (one, other) = memory.bytes().split_at_mut(work.size() / 2);
    let portion = work.portion(PORTION);
    // Pages are allocated at the first write: the first copies would read the shared zero page.
    one.fill(0x55);
    other.fill(0xaa);
    work.begin()?;
    loop {
        copy(work, portion, one, other);
        copy(work, portion, other, one);
    }
}

fn copy(work: &mut LoadTask, portion: usize, from: &[u8], to: &mut [u8]) {
    for (from, to) in from.chunks(portion).zip(to.chunks_mut(portion)) {
        let bytes = from.len().min(to.len());
        to[..bytes].copy_from_slice(&from[..bytes]);
        work.done(bytes);
    }
}
