//! Sections and options of a trace.dat of version 7, at any place in the file.
//!
//! Source: trace-cmd.dat.v7(5).

use std::io::Cursor;

use super::header::{CpuData, DatBuffer, DatHeader, NAMES_LIMIT, option_number};
use crate::foreign_trace::TraceError;
use crate::foreign_trace::input::{TraceInput, TraceValues};

/// Flag of a section with compressed content.
const COMPRESSED: u16 = 1;

/// Length of a section's head.
const HEAD: u64 = 16;

/// Maximum number of sections of options, beyond which a file is refused.
const MAX_SECTIONS: usize = 1 << 10;
/// Maximum number of tracing instances, beyond which a file is refused.
const MAX_BUFFERS: usize = 64;

/// Maximum length of names of instances and clocks.
const TEXT_LIMIT: usize = 256;

/// Reads all sections to which options lead, from the first of these on.
pub fn sections(header: &mut DatHeader, input: &TraceInput) -> Result<(), TraceError> {
    let (mut next, mut count) = (header.first_section, 0);
    while next != 0 {
        count += 1;
        if count > MAX_SECTIONS {
            return Err(TraceError::corrupt("more sections than a file has"));
        }
        next = options(header, input, next)?;
    }
    Ok(())
}

/// Reads one section of options; returns the offset of the next one.
fn options(header: &mut DatHeader, input: &TraceInput, offset: u64) -> Result<u64, TraceError> {
    let mut values = section(header, input, offset)?;
    let length = values.reader.get_ref().len() as u64;
    while values.reader.position() < length {
        let (id, size) = (values.u16()?, values.u32()?);
        let data = values.bytes(u64::from(size), NAMES_LIMIT)?;
        let place = header.order.u64(&data, 0);
        match (id, place) {
            (0, next) => return Ok(next.unwrap_or(0)),
            (option_number::BUFFER, _) => buffer(header, input, &data)?,
            (option_number::BUFFER_TEXT, _) => header.text_only = true,
            (option_number::HEADER_INFO, Some(place)) => {
                let mut values = section(header, input, place)?;
                header.header_info(&mut values)?;
            }
            (option_number::FTRACE_EVENTS, Some(place)) => {
                let mut values = section(header, input, place)?;
                header.ftrace_events(&mut values)?;
            }
            (option_number::EVENT_FORMATS, Some(place)) => {
                let mut values = section(header, input, place)?;
                header.event_formats(&mut values)?;
            }
            (option_number::KALLSYMS, Some(place)) => {
                let mut values = section(header, input, place)?;
                header.kallsyms(&mut values)?;
            }
            (option_number::PRINTK, Some(place)) => {
                let mut values = section(header, input, place)?;
                header.printk(&mut values)?;
            }
            _ => header.option(id, &data)?,
        }
    }
    Ok(0)
}

/// Content of a section, unpacked.
fn section(
    header: &mut DatHeader,
    input: &TraceInput,
    offset: u64,
) -> Result<TraceValues<Cursor<Vec<u8>>>, TraceError> {
    let order = header.order;
    let head = input.bytes(offset, HEAD as usize)?;
    let flags = order.u16(&head, 2).unwrap_or_default();
    let size = order.u64(&head, 8).unwrap_or_default();
    let start = offset + HEAD;
    let within = |length: u64| match usize::try_from(length) {
        Ok(fits) if length <= NAMES_LIMIT => Ok(fits),
        _ => Err(TraceError::corrupt("a section that is larger than any kernel's")),
    };
    let content = if flags & COMPRESSED == 0 {
        input.bytes(start, within(size)?)?
    } else {
        let lengths = input.bytes(start, 8)?;
        let of = |at| u64::from(order.u32(&lengths, at).unwrap_or_default());
        let packed = input.bytes(start + 8, within(of(0))?)?;
        let mut content = Vec::new();
        header.unpacker.unpack(&packed, within(of(4))?, &mut content)?;
        content
    };
    Ok(TraceValues { reader: Cursor::new(content), order })
}

/// Reads the places of the events of a tracing instance.
fn buffer(header: &mut DatHeader, input: &TraceInput, data: &[u8]) -> Result<(), TraceError> {
    if header.buffers.len() >= MAX_BUFFERS {
        return Err(TraceError::corrupt("more tracing instances than a file has"));
    }
    let mut values = TraceValues { reader: data, order: header.order };
    let place = values.u64()?;
    let (name, clock) = (values.text(TEXT_LIMIT)?, values.text(TEXT_LIMIT)?);
    let (page_size, count) = (values.u32()?, values.u32()?);
    if !page_size.is_power_of_two() || !(512..=1 << 24).contains(&page_size) {
        return Err(TraceError::corrupt("a page size that no kernel has"));
    }
    if count > model::units::CPU_LIMIT {
        return Err(TraceError::corrupt("more CPUs than a kernel has"));
    }
    let flags = header.order.u16(&input.bytes(place, HEAD as usize)?, 2).unwrap_or_default();
    let packed = flags & COMPRESSED != 0;
    let cpu = |values: &mut TraceValues<&[u8]>| {
        Ok(CpuData { cpu: values.u32()?, offset: values.u64()?, size: values.u64()? })
    };
    let cpus = (0..count).map(|_| cpu(&mut values)).collect::<Result<Vec<_>, TraceError>>()?;
    header.buffers.push(DatBuffer { name, clock, page_size, packed, cpus });
    Ok(())
}
