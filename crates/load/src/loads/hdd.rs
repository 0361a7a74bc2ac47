//! `hdd`: files that are written and flushed.

use std::convert::Infallible;
use std::io;

use super::FIVE_SECONDS;
use crate::load::{Count, Load, LoadKey, LoadSize, LoadTask, Needs};
use host::work::{Figure, Scratch};

pub const LOAD: Load = Load {
    name: "hdd",
    title: "writes a file, flushes it and deletes it",
    doc: "Each process repeatedly writes the given number of bytes to an unnamed file, flushes them to the \
          disk (fsync) and frees the space: interrupts and workers of the disk, its file system, writeback. \
          No file remains, however the load ends. The kernel's count is the data sent to a disk: in a file \
          system in memory it is 0, because no disk is loaded.",
    count: Count { what: "processes", default: Some(1) },
    size: Some(LoadSize { what: "bytes of each file", default: 20 << 20, least: 4 << 10, most: 1 << 40 }),
    keys: &[LoadKey { name: "folder", what: "a folder on the disk to load", values: &[] }],
    unit: "bytes",
    paced: true,
    chunk: |_| PAGE,
    window: FIVE_SECONDS,
    figure: Figure::WrittenBytes,
    needs: |wanted| Needs { memory: 2 << 20, disk: wanted.size, tasks: 1 },
    run,
};

/// Unit of the kernel's statistic: pages to be written.
const PAGE: u64 = 4096;

/// Bytes written and counted at once.
const PORTION: usize = 64 << 10;

fn run(work: &mut LoadTask) -> io::Result<Infallible> {
    let content = vec![0x5a; work.portion(PORTION)];
    let mut scratch = Scratch::create(&work.folder)?;
    work.begin()?;
    loop {
        let mut left = work.wanted.size;
        while left > 0 {
            let bytes = content.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            scratch.write(&content[..bytes])?;
            work.done(bytes);
            left -= bytes as u64;
        }
        scratch.flush()?;
        scratch.empty()?;
    }
}
