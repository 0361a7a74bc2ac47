//! `tlb`: address translations flushed on all CPUs.

use std::convert::Infallible;
use std::io;
use std::thread::Builder;

use super::SECOND;
use crate::load::{Count, Load, LoadTask, Needs};
use host::rt;
use host::work::{Figure, Mapping};
use model::units::CpuSet;

pub const LOAD: Load = Load {
    name: "tlb",
    title: "flushes TLB entries on all CPUs of the load",
    doc: "A process with a thread on each CPU of the load removes and restores the write permission of a \
          page: each time the kernel interrupts every CPU that runs one of its threads (mprotect(2)).",
    count: Count { what: "processes", default: Some(1) },
    size: None,
    keys: &[],
    unit: "changes",
    paced: true,
    chunk: |_| 2,
    window: SECOND,
    figure: Figure::CpuTime,
    needs: |_| Needs { memory: 2 << 20, disk: 0, tasks: 2 },
    run,
};

fn run(work: &mut LoadTask) -> io::Result<Infallible> {
    let mut page = Mapping::new(host::work::page_size())?;
    page.bytes().fill(1);
    work.begin()?;
    for cpu in work.cpus.iter() {
        let only: CpuSet = [cpu].into_iter().collect();
        Builder::new().stack_size(64 << 10).spawn(move || {
            // If it may not run there, it runs elsewhere.
            let _ = rt::pin(&only);
            loop {
                std::hint::spin_loop();
            }
        })?;
    }
    loop {
        page.toggle_protection()?;
        work.done(2);
    }
}
