//! Pages of one CPU in blocks that are read at once: chunks if they are compressed.

use super::header::CpuData;
use super::packed::Unpacker;
use crate::foreign_trace::TraceError;
use crate::foreign_trace::input::TraceInput;
use trace::byte_order::ByteOrder;

/// Maximum number of bytes of all CPUs together that are read at once.
const MAX_READ: usize = 16 << 20;

/// Maximum number of blocks of a CPU; as chunks of ten pages they are a hundred gigabytes.
const MAX_BLOCKS: u32 = 1 << 22;

/// Number of pages that are read at once if they are not compressed.
const PAGES_AT_ONCE: usize = 16;

/// A part of the file.
#[derive(Clone, Copy, Debug)]
struct PageBlock {
    offset: u64,
    stored: u32,
    length: u32,
}

/// Places of a CPU's blocks.
#[derive(Clone, Debug)]
pub struct CpuBlocks {
    packed: bool,
    list: Vec<PageBlock>,
}

impl CpuBlocks {
    /// Finds the blocks of one of several CPUs.
    pub fn find(
        input: &TraceInput,
        order: ByteOrder,
        data: CpuData,
        cpus: usize,
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

    /// Reads a block into a reused buffer.
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
            // Filled only when it grows: the file's bytes replace those of the last block.
            into.resize(block.length as usize, 0);
            let read = input.read_at(block.offset, into)?;
            into.truncate(read);
            return Ok(());
        }
        let packed = input.bytes(block.offset, block.stored as usize)?;
        unpacker.unpack(&packed, block.length as usize, into)
    }
}

/// Finds the compressed chunks, each after its two lengths.
fn chunks(
    input: &TraceInput,
    order: ByteOrder,
    data: CpuData,
    most: usize,
) -> Result<Vec<PageBlock>, TraceError> {
    // The field with their number is not counted in the size.
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
