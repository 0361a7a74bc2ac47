//! The pages of one CPU in blocks that are read at once: chunks where they are compressed.

use super::header::CpuData;
use super::packed::Unpacker;
use crate::foreign_trace::TraceError;
use crate::foreign_trace::input::TraceInput;
use trace::byte_order::ByteOrder;

/// The most bytes that are read at once of all CPUs together.
const MAX_READ: usize = 16 << 20;

/// CpuBlocks of one CPU; a chunk of ten pages each is a hundred gigabytes.
const MAX_BLOCKS: u32 = 1 << 22;

/// Pages that are read at once where they are not compressed.
const PAGES_AT_ONCE: usize = 16;

/// A part of the file.
#[derive(Clone, Copy, Debug)]
struct PageBlock {
    offset: u64,
    stored: u32,
    length: u32,
}

/// The places of a CPU's blocks.
#[derive(Clone, Debug)]
pub struct CpuBlocks {
    packed: bool,
    list: Vec<PageBlock>,
}

impl CpuBlocks {
    /// Finds the blocks of one of so many CPUs.
    pub fn find(
        input: &TraceInput,
        order: ByteOrder,
        (data, cpus): (CpuData, usize),
        page_size: usize,
        packed: bool,
    ) -> Result<CpuBlocks, TraceError> {
        let most = (MAX_READ / cpus.max(1)).max(page_size);
        let CpuData { offset, size, .. } = data;
        if offset.checked_add(size).is_none_or(|end| end > input.length) {
            return Err(TraceError::cut());
        }
        let list = match (packed, size) {
            (_, 0) => Vec::new(),
            (true, _) => chunks(input, order, data, most)?,
            (false, _) => {
                let whole = (PAGES_AT_ONCE * page_size).min(most / page_size * page_size) as u64;
                let starts = (0..size).step_by(whole as usize);
                let block = |start: u64| {
                    let length = whole.min(size - start) as u32;
                    PageBlock { offset: offset + start, stored: length, length }
                };
                starts.map(block).collect()
            }
        };
        Ok(CpuBlocks { packed, list })
    }

    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Reads a block into a buffer that is used again.
    pub fn read(
        &self,
        number: usize,
        input: &TraceInput,
        unpacker: &mut Unpacker,
        into: &mut Vec<u8>,
    ) -> Result<(), TraceError> {
        let Some(block) = self.list.get(number) else {
            into.clear();
            return Ok(());
        };
        if !self.packed {
            // Filled anew only where it grows: the file's bytes take the place of the last block's.
            into.resize(block.length as usize, 0);
            let read = input.read_at(block.offset, into)?;
            into.truncate(read);
            return Ok(());
        }
        let packed = input.bytes(block.offset, block.stored as usize)?;
        unpacker.unpack(&packed, block.length as usize, into)
    }
}

/// The compressed chunks, each behind its two lengths.
fn chunks(
    input: &TraceInput,
    order: ByteOrder,
    data: CpuData,
    most: usize,
) -> Result<Vec<PageBlock>, TraceError> {
    // Their number is not counted in the size.
    let end = data.offset.saturating_add(data.size).saturating_add(4);
    let count = order.u32(&input.bytes(data.offset, 4)?, 0).unwrap_or_default();
    let (mut at, mut list) = (data.offset + 4, Vec::new());
    for _ in 0..count {
        let lengths = input.bytes(at, 8)?;
        let of = |place| order.u32(&lengths, place).unwrap_or_default();
        let (stored, length) = (of(0), of(4));
        at += 8 + u64::from(stored);
        if at > end || list.len() as u32 == MAX_BLOCKS {
            return Err(TraceError::corrupt("chunks that reach beyond their CPU"));
        }
        if length as usize > most || stored as usize > most {
            return Err(TraceError::corrupt("chunks larger than trace-cmd writes"));
        }
        list.push(PageBlock { offset: at - u64::from(stored), stored, length });
    }
    Ok(list)
}
