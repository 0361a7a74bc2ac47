//! `proc`: files of /proc.

use std::convert::Infallible;
use std::io;

use super::SECOND;
use crate::load::{Count, Load, LoadTask, Needs};
use host::RereadFile;
use host::work::Figure;

pub const LOAD: Load = Load {
    name: "proc",
    title: "reads the kernel's status files",
    doc: "Each process reads files of /proc, as monitoring programs do: the kernel walks lists under locks, \
          some with interrupts disabled, and slabinfo those of the memory allocator. Files that are missing \
          or not readable are skipped.",
    count: Count { what: "processes", default: Some(1) },
    size: None,
    keys: &[],
    unit: "bytes",
    paced: true,
    chunk: |_| LARGE,
    window: SECOND,
    figure: Figure::CpuTime,
    needs: |_| Needs { memory: 4 << 20, disk: 0, tasks: 1 },
    run,
};

/// Usual upper limit of the size of these files.
const LARGE: u64 = 64 << 10;

const FILES: [&str; 8] = [
    "/proc/stat",
    "/proc/interrupts",
    "/proc/meminfo",
    "/proc/vmstat",
    "/proc/zoneinfo",
    "/proc/slabinfo",
    "/proc/self/smaps",
    "/proc/self/mountinfo",
];

fn run(work: &mut LoadTask) -> io::Result<Infallible> {
    let mut files: Vec<RereadFile> =
        FILES.into_iter().filter_map(|path| RereadFile::whole(path).ok()).collect();
    if files.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    work.begin()?;
    loop {
        for file in &mut files {
            let bytes = file.read()?.len();
            work.done(bytes);
        }
    }
}
