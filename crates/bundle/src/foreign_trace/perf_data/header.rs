//! Parts of a perf.data before and after its records: the layout of samples, and the machine.
//!
//! Source: tools/perf/Documentation/perf.data-file-format.txt, include/uapi/linux/perf_event.h.

use std::collections::BTreeMap;

use crate::foreign_trace::TraceError;
use crate::foreign_trace::input::TraceInput;
use trace::byte_order::ByteOrder;

/// First bytes of the file, in either byte order.
pub const MAGIC: &[u8; 8] = b"PERFILE2";
pub const MAGIC_SWAPPED: &[u8; 8] = b"2ELIFREP";

/// Length of the head of a file.
const HEAD: u64 = 104;
/// Length of the head of a stream.
const STREAM_HEAD: u64 = 16;

const MAX_ATTRIBUTES: u64 = 4096;
const MAX_IDS: usize = 1 << 20;
const MAX_ATTRIBUTE: u64 = 1 << 12;
const MAX_TEXT: u64 = 1 << 12;

/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;

/// Bit of an event's attributes: ids with all records.
const SAMPLE_ID_ALL: u64 = 1 << 18;
/// Bit of an event's attributes: a separate clock.
const USE_CLOCKID: u64 = 1 << 25;

/// Parts of the file after the records.
const TRACING_DATA: u32 = 1;
const RELEASE: u32 = 4;
const VERSION: u32 = 5;
const MACHINE: u32 = 6;
const CPU_COUNT: u32 = 7;
const COMPRESSED: u32 = 27;

/// Layout of an event's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleLayout {
    pub fields: u64,
    pub read_format: u64,
    pub tracepoint: bool,
    /// True if other records end with the fields that state thread, time and CPU.
    pub id_all: bool,
}

/// Head of a file.
pub struct PerfHeader {
    pub order: ByteOrder,
    /// Offset and size of the records.
    pub data: (u64, u64),
    pub layouts: Vec<SampleLayout>,
    /// Layout of a sample by its id.
    pub by_id: BTreeMap<u64, usize>,
    /// Offset of the description of the events.
    pub tracing_data: u64,
    /// Number of the clock, if it is not perf's.
    pub clock: Option<i32>,
    pub release: String,
    pub version: String,
    pub machine: String,
    pub cpus: u32,
}

impl PerfHeader {
    /// Reads the head of a file that begins with the magic number.
    pub fn read(input: &TraceInput) -> Result<PerfHeader, TraceError> {
        let head = input.bytes(0, STREAM_HEAD as usize)?;
        let order = ByteOrder { big: head.starts_with(MAGIC_SWAPPED), long: 8 };
        let at = |bytes: &[u8], place| order.u64(bytes, place).unwrap_or_default();
        if at(&head, 8) == STREAM_HEAD {
            return Err(TraceError::new(
                "invalid perf.data: expected a file, found the stream that perf writes to a pipe; record to \
                 a file with `perf record -o perf.data`",
            ));
        }
        let head = input.bytes(0, HEAD as usize)?;
        let data = (at(&head, 40), at(&head, 48));
        if data.0.checked_add(data.1).is_none_or(|end| end > input.length) {
            return Err(TraceError::cut());
        }
        let mut header = PerfHeader {
            order,
            data,
            layouts: Vec::new(),
            by_id: BTreeMap::new(),
            tracing_data: 0,
            clock: None,
            release: String::new(),
            version: String::new(),
            machine: String::new(),
            cpus: 0,
        };
        header.attributes(input, at(&head, 16), at(&head, 24), at(&head, 32))?;
        // The places of the parts follow the records, in the order of their bits.
        let mut place = data.0 + data.1;
        for bit in 0..256 {
            if at(&head, 72 + bit as usize / 64 * 8) >> (bit % 64) & 1 != 0 {
                let entry = input.bytes(place, 16)?;
                header.part(input, bit, at(&entry, 0), at(&entry, 8))?;
                place += 16;
            }
        }
        if header.tracing_data == 0 {
            return Err(TraceError::new(
                "invalid perf.data: expected events of the kernel, found none; record with `perf sched \
                 record` or `perf record -a -e sched:*,irq:*`",
            ));
        }
        Ok(header)
    }

    fn attributes(
        &mut self,
        input: &TraceInput,
        length: u64,
        offset: u64,
        size: u64,
    ) -> Result<(), TraceError> {
        if !(80..=MAX_ATTRIBUTE).contains(&length) || size / length > MAX_ATTRIBUTES {
            return Err(TraceError::corrupt("attributes that perf does not write"));
        }
        let order = self.order;
        let long = |bytes: &[u8], place| order.u64(bytes, place).unwrap_or_default();
        for at in 0..size / length {
            let bytes = input.bytes(offset.saturating_add(at * length), length as usize)?;
            let word = |place| order.u32(&bytes, place).unwrap_or_default();
            let flags = long(&bytes, 40);
            let tracepoint = word(0) == TRACEPOINT;
            if tracepoint && flags & USE_CLOCKID != 0 && length >= 96 + 16 {
                self.clock = Some(word(92) as i32);
            }
            let number = self.layouts.len();
            self.layouts.push(SampleLayout {
                fields: long(&bytes, 24),
                read_format: long(&bytes, 32),
                tracepoint,
                id_all: flags & SAMPLE_ID_ALL != 0,
            });
            let (ids, ids_size) =
                (long(&bytes, length as usize - 16), long(&bytes, length as usize - 8) as usize);
            if ids_size > 8 * MAX_IDS || self.by_id.len() + ids_size / 8 > MAX_IDS {
                return Err(TraceError::corrupt("more ids than perf writes"));
            }
            let ids = input.bytes(ids, ids_size)?;
            self.by_id.extend(ids.chunks_exact(8).map(|id| (long(id, 0), number)));
        }
        Ok(())
    }

    fn part(&mut self, input: &TraceInput, bit: u32, offset: u64, size: u64) -> Result<(), TraceError> {
        let text = || {
            let bytes = input.bytes(offset, size.min(MAX_TEXT) as usize).unwrap_or_default();
            let end = |text: &[u8]| text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
            let text = bytes.get(4..).unwrap_or_default();
            String::from_utf8_lossy(&text[..end(text)]).into_owned()
        };
        match bit {
            TRACING_DATA => self.tracing_data = offset,
            RELEASE => self.release = text(),
            VERSION => self.version = text(),
            MACHINE => self.machine = text(),
            CPU_COUNT => self.cpus = self.order.u32(&input.bytes(offset, 4)?, 0).unwrap_or_default(),
            COMPRESSED => {
                return Err(TraceError::new(
                    "invalid perf.data: expected uncompressed records; record without -z",
                ));
            }
            _ => {}
        }
        Ok(())
    }
}
