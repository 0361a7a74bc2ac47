//! The pages that were taken from the kernel's buffers, as far back as a spike can need them.
//!
//! Taking a page copies it under a lock that no writer waits for (`reader_lock`, kernel/trace/ring_buffer.c): the CPU
//! whose buffer is read goes on undisturbed.

use std::collections::VecDeque;
use std::io;

use crate::host::tracefs::{Instance, RawPipe};
use crate::trace::decode::Decoder;
use crate::trace::page::Lost;
use crate::units::{Cpu, CpuSet, Nanos};

/// A page as it was taken.
pub struct Sheet {
    /// None of its records is older.
    pub start: Nanos,
    /// As the kernel wrote it.
    pub bytes: Box<[u8]>,
}

/// One CPU's pages.
pub struct Stack {
    /// The CPU.
    pub cpu: Cpu,
    pipe: RawPipe,
    /// Oldest first.
    pub sheets: VecDeque<Sheet>,
    kept: u64,
    /// Whether pages were let go.
    let_go: bool,
    /// How many of the youngest nobody has looked at.
    pub fresh: usize,
    /// Bytes taken in all.
    pub taken: u64,
}

/// All CPUs' pages.
pub struct Sheets {
    /// By CPU, ascending.
    pub stacks: Vec<Stack>,
    page: Box<[u8]>,
    /// Most bytes that are kept per CPU.
    pub most: u64,
}

impl Sheets {
    /// Opens the buffers of these CPUs.
    pub fn open(instance: &Instance, cpus: &CpuSet, page_size: usize) -> io::Result<Sheets> {
        let mut stacks = Vec::new();
        for cpu in cpus.iter() {
            let pipe = instance.pipe(cpu)?;
            stacks.push(Stack {
                cpu,
                pipe,
                sheets: VecDeque::new(),
                kept: 0,
                let_go: false,
                fresh: 0,
                taken: 0,
            });
        }
        Ok(Sheets { stacks, page: vec![0; page_size].into(), most: 1 << 20 })
    }

    /// Takes all there is, without waiting; a buffer that fills as fast as it is read is left after its size twice over.
    pub fn take(&mut self, decoder: &Decoder) -> io::Result<()> {
        // What cannot be read of one CPU keeps nobody from the others.
        let (page, most) = (&mut self.page, self.most);
        self.stacks.iter_mut().map(|stack| stack.take(decoder, page, most)).fold(Ok(()), Result::and)
    }

    /// Forgets what was taken.
    pub fn forget(&mut self) {
        for stack in &mut self.stacks {
            stack.sheets.clear();
            (stack.kept, stack.fresh, stack.taken, stack.let_go) = (0, 0, 0, false);
        }
    }

    /// The CPU's pages.
    pub fn of(&self, cpu: Cpu) -> Option<&Stack> {
        self.stacks.iter().find(|stack| stack.cpu == cpu)
    }
}

impl Stack {
    fn take(&mut self, decoder: &Decoder, page: &mut [u8], most: u64) -> io::Result<()> {
        let mut left = 2 * most;
        while left > 0 {
            let Some(length) = self.pipe.read_page(page)? else { break };
            left = left.saturating_sub(page.len() as u64);
            self.taken += length as u64;
            let Some(start) = decoder.start_of(&page[..length]) else { continue };
            self.kept += length as u64;
            self.fresh += 1;
            self.sheets.push_back(Sheet { start, bytes: page[..length].into() });
            while self.kept > most && self.sheets.len() > 1 {
                self.let_go = true;
                let oldest = self.sheets.pop_front();
                self.kept -= oldest.map_or(0, |sheet| sheet.bytes.len() as u64);
            }
        }
        Ok(())
    }

    /// Whether there were events before the oldest page that is left.
    pub fn lacks_older(&self, decoder: &Decoder) -> bool {
        let lost = |sheet: &Sheet| decoder.page(self.cpu, &sheet.bytes, &mut |_| ()).lost != Lost::Nothing;
        self.let_go || self.sheets.front().is_some_and(lost)
    }

    /// Bytes per second: over what the pages span, where they are many enough to tell that what came before them was
    /// overwritten, else over the time since it began.
    pub fn rate(&self, elapsed: Nanos) -> u64 {
        const MANY: usize = 64;
        let span = match (self.sheets.front(), self.sheets.back()) {
            (Some(first), Some(last)) if self.sheets.len() > MANY => last.start - first.start,
            _ => elapsed,
        };
        (self.kept as f64 / span.as_secs().max(1e-3)) as u64
    }

    /// The number of the page that holds an instant: the last that begins at or before it.
    pub fn holding(&self, instant: Nanos) -> usize {
        self.sheets.partition_point(|sheet| sheet.start <= instant).saturating_sub(1)
    }
}
