//! `vm`: memory that is mapped, touched and unmapped.

use std::convert::Infallible;
use std::io;

use super::SECOND;
use crate::load::{Count, Load, LoadSize, LoadTask, Needs};
use host::work::{Figure, Mapping, page_size};

pub const LOAD: Load = Load {
    name: "vm",
    title: "maps, touches and unmaps memory",
    doc: "Each process repeatedly maps the given amount of memory, writes to each page, and unmaps it: page \
          faults, the page allocator, clearing of pages, and TLB flushes.",
    count: Count { what: "processes", default: None },
    size: Some(LoadSize { what: "bytes per process", default: 15 << 20, least: 4 << 10, most: 1 << 40 }),
    keys: &[],
    unit: "pages",
    paced: true,
    chunk: |wanted| if wanted.size < HUGE { 1 } else { HUGE / 4096 },
    window: SECOND,
    figure: Figure::MinorFaults,
    needs: |wanted| Needs { memory: wanted.size + (1 << 20), disk: 0, tasks: 1 },
    run,
};

/// Size of a huge page on most machines: one fault with transparent huge pages
/// (Documentation/admin-guide/mm/transhuge.rst).
const HUGE: u64 = 2 << 20;

/// Pages counted at once, because a mapping of gigabytes takes longer than a window.
const COUNTED: usize = 256;

fn run(work: &mut LoadTask) -> io::Result<Infallible> {
    let page = page_size();
    let portion = work.portion(COUNTED) * page;
    // Refused at once if there is not enough memory.
    drop(Mapping::new(work.size())?);
    work.begin()?;
    loop {
        let mut memory = Mapping::new(work.size())?;
        for part in memory.bytes().chunks_mut(portion) {
            part.iter_mut().step_by(page).for_each(|byte| *byte = 1);
            work.done(part.len().div_ceil(page));
        }
    }
}
