//! Part of a trace.dat before its events: the kernel's formats and names, and the places of each
//! CPU's events.
//!
//! Sources: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5).

use std::collections::HashMap;
use std::io::Read;

use super::packed::Unpacker;
use crate::foreign_trace::TraceError;
use crate::foreign_trace::input::{TraceInput, TraceValues};
use trace::byte_order::ByteOrder;
use trace::catalog::{self, EventSpec};

/// First bytes of the file.
pub const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";

/// Maximum length of a format.
const FORMAT_LIMIT: u64 = 256 << 10;
/// Maximum length of one of the kernel's lists of names.
pub const NAMES_LIMIT: u64 = 32 << 20;
const TEXT_LIMIT: usize = 256;
const SYSTEM_LIMIT: u32 = 4096;
const EVENT_LIMIT: u32 = 1 << 16;
const OPTION_LIMIT: u64 = 1 << 20;
const MAX_INSTANCES: usize = 64;

/// Numbers of options.
pub mod option_number {
    pub const CPU_STATISTICS: u16 = 2;
    pub const BUFFER: u16 = 3;
    pub const CLOCK: u16 = 4;
    pub const UNAME: u16 = 5;
    pub const CPU_COUNT: u16 = 8;
    pub const WRITER: u16 = 9;
    pub const TSC: u16 = 14;
    pub const HEADER_INFO: u16 = 16;
    pub const FTRACE_EVENTS: u16 = 17;
    pub const EVENT_FORMATS: u16 = 18;
    pub const KALLSYMS: u16 = 19;
    pub const PRINTK: u16 = 20;
    pub const BUFFER_TEXT: u16 = 22;
}

/// Place of a CPU's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuData {
    pub cpu: u32,
    pub offset: u64,
    pub size: u64,
}

/// Places of the events of one tracing instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatBuffer {
    /// Name of the instance; `""` is the top one.
    pub name: String,
    /// Clock of its events; `""` if the file does not state it.
    pub clock: String,
    pub page_size: u32,
    /// True if the pages are in compressed chunks.
    pub packed: bool,
    pub cpus: Vec<CpuData>,
}

/// Content of a file's head, as far as it was read.
pub struct DatHeader {
    pub version: u8,
    pub order: ByteOrder,
    pub unpacker: Unpacker,
    /// Text of `events/header_page`.
    pub page: String,
    /// Formats of the wanted events.
    pub formats: Vec<(&'static EventSpec, String)>,
    /// All events whose format the file has, by number.
    pub events: HashMap<u16, String>,
    pub kallsyms: Vec<u8>,
    pub printk: String,
    pub buffers: Vec<DatBuffer>,
    /// System, from an option.
    pub uname: String,
    /// Version of trace-cmd, from an option.
    pub writer: String,
    /// Clocks, from an option.
    pub clocks: String,
    /// Number of CPUs, from an option.
    pub cpu_count: Option<u32>,
    /// Number of events that were overwritten or dropped during the recording.
    pub lost: u64,
    /// Factor and shift from the counter of the clock x86-tsc to nanoseconds.
    pub scale: Option<(u32, u32)>,
    /// True if the file has a text of the kernel's latency tracers instead of events.
    pub text_only: bool,
    pub page_size: u32,
    /// Offset at which the sections of version 7 begin; their content is read later.
    pub first_section: u64,
}

impl DatHeader {
    /// Reads the head of a file that begins with the magic number.
    pub fn read(input: &TraceInput) -> Result<DatHeader, TraceError> {
        let (mut header, version, mut values) = DatHeader::begin(input, 0)?;
        match version.as_str() {
            "6" => header.version_6(&mut values, input)?,
            "7" => {
                header.version = 7;
                header.unpacker = Unpacker::of(&values.text(TEXT_LIMIT)?)?;
                values.text(TEXT_LIMIT)?;
                header.first_section = values.u64()?;
            }
            other => {
                return Err(TraceError::new(format!(
                    "invalid trace.dat: expected file version 6 or 7, not {}; convert it with \
                     `trace-cmd convert`",
                    model::text::quoted_value(other)
                )));
            }
        }
        Ok(header)
    }

    /// Reads the head of a perf.data, which describes events in the form of version 6.
    pub fn of_perf(input: &TraceInput, offset: u64) -> Result<DatHeader, TraceError> {
        let (mut header, _, mut values) = DatHeader::begin(input, offset)?;
        header.descriptions(&mut values)?;
        Ok(header)
    }

    /// Reads the part that is common to all versions.
    fn begin(
        input: &TraceInput,
        offset: u64,
    ) -> Result<(DatHeader, String, TraceValues<impl Read + '_>), TraceError> {
        let order = ByteOrder { big: false, long: 8 };
        let mut values = TraceValues { reader: input.from(offset), order };
        if values.exact::<10>()? != *MAGIC {
            return Err(TraceError::corrupt("no description of its events"));
        }
        let version = values.text(TEXT_LIMIT)?;
        let big = values.u8()? == 1;
        values.order = ByteOrder { big, long: usize::from(values.u8()?) };
        let page_size = values.u32()?;
        if !page_size.is_power_of_two() || !(512..=1 << 24).contains(&page_size) {
            return Err(TraceError::corrupt("a page size that no kernel has"));
        }
        let header = DatHeader {
            version: 6,
            order: values.order,
            unpacker: Unpacker::of("none")?,
            page: String::new(),
            formats: Vec::new(),
            events: HashMap::new(),
            kallsyms: Vec::new(),
            printk: String::new(),
            buffers: Vec::new(),
            uname: String::new(),
            writer: String::new(),
            clocks: String::new(),
            cpu_count: None,
            lost: 0,
            scale: None,
            text_only: false,
            page_size,
            first_section: 0,
        };
        Ok((header, version, values))
    }

    /// Reads the formats of events and the kernel's names, in their order.
    fn descriptions(&mut self, values: &mut TraceValues<impl Read>) -> Result<(), TraceError> {
        self.header_info(values)?;
        self.ftrace_events(values)?;
        self.event_formats(values)?;
        self.kallsyms(values)?;
        self.printk(values)
    }

    fn version_6(
        &mut self,
        values: &mut TraceValues<impl Read>,
        input: &TraceInput,
    ) -> Result<(), TraceError> {
        self.descriptions(values)?;
        let cmdlines = values.u64()?;
        values.skip(cmdlines)?;
        let cpus = values.u32()?;
        self.cpu_count = Some(cpus);
        let mut instances = Vec::new();
        loop {
            match &values.exact::<10>()? {
                b"options  \0" => loop {
                    let id = values.u16()?;
                    if id == 0 {
                        break;
                    }
                    let length = values.u32()?;
                    let data = values.bytes(u64::from(length), OPTION_LIMIT)?;
                    match self.order.u64(&data, 0) {
                        Some(place) if id == option_number::BUFFER && instances.len() < MAX_INSTANCES => {
                            let name = data.get(8..).unwrap_or_default();
                            instances.push((place, String::from_utf8_lossy(name).into_owned()));
                        }
                        _ => self.option(id, &data)?,
                    }
                },
                b"flyrecord\0" => break,
                b"latency  \0" => {
                    self.text_only = true;
                    return Ok(());
                }
                _ => return Err(TraceError::corrupt("no place of its events")),
            }
        }
        let top = self.buffer_6(values, "", cpus)?;
        self.buffers.push(top);
        for (place, name) in instances {
            let mut values = TraceValues { reader: input.from(place), order: self.order };
            if values.exact::<10>()? == *b"flyrecord\0" {
                let instance = self.buffer_6(&mut values, name.trim_end_matches('\0'), cpus)?;
                self.buffers.push(instance);
            }
        }
        Ok(())
    }

    /// Reads a list of places, followed by the clock, which the first versions did not write.
    fn buffer_6(
        &self,
        values: &mut TraceValues<impl Read>,
        name: &str,
        cpus: u32,
    ) -> Result<DatBuffer, TraceError> {
        let cpus = cpu_places(values, cpus)?;
        let clock = sized_text(values, FORMAT_LIMIT).map(|text| clock_in_use(&text)).unwrap_or_default();
        Ok(DatBuffer { name: name.to_owned(), clock, page_size: self.page_size, packed: false, cpus })
    }

    /// Reads an option that both versions share.
    pub fn option(&mut self, id: u16, data: &[u8]) -> Result<(), TraceError> {
        let text = || String::from_utf8_lossy(data).trim_end_matches('\0').trim().to_owned();
        match id {
            option_number::CPU_STATISTICS => self.lost = self.lost.saturating_add(lost_in(&text())),
            option_number::CLOCK => self.clocks = text(),
            option_number::UNAME => self.uname = text(),
            option_number::CPU_COUNT => self.cpu_count = self.order.u32(data, 0),
            option_number::WRITER => self.writer = text(),
            option_number::TSC => {
                self.scale =
                    self.order.u32(data, 0).zip(self.order.u32(data, 4)).filter(|scale| scale.1 < 64);
            }
            _ => {}
        }
        Ok(())
    }

    pub fn header_info(&mut self, values: &mut TraceValues<impl Read>) -> Result<(), TraceError> {
        if values.text(TEXT_LIMIT)? != "header_page" {
            return Err(TraceError::corrupt("no header_page"));
        }
        self.page = sized_text(values, FORMAT_LIMIT)?;
        if values.text(TEXT_LIMIT)? != "header_event" {
            return Err(TraceError::corrupt("no header_event"));
        }
        sized_text(values, FORMAT_LIMIT).map(drop)
    }

    pub fn ftrace_events(&mut self, values: &mut TraceValues<impl Read>) -> Result<(), TraceError> {
        for _ in 0..counted(values, EVENT_LIMIT)? {
            let format = sized_text(values, FORMAT_LIMIT)?;
            self.add("ftrace", format);
        }
        Ok(())
    }

    pub fn event_formats(&mut self, values: &mut TraceValues<impl Read>) -> Result<(), TraceError> {
        for _ in 0..counted(values, SYSTEM_LIMIT)? {
            let system = values.text(TEXT_LIMIT)?;
            for _ in 0..counted(values, EVENT_LIMIT)? {
                let format = sized_text(values, FORMAT_LIMIT)?;
                self.add(&system, format);
            }
        }
        Ok(())
    }

    pub fn kallsyms(&mut self, values: &mut TraceValues<impl Read>) -> Result<(), TraceError> {
        let length = values.u32()?;
        self.kallsyms = values.bytes(u64::from(length), NAMES_LIMIT)?;
        Ok(())
    }

    pub fn printk(&mut self, values: &mut TraceValues<impl Read>) -> Result<(), TraceError> {
        let length = values.u32()?;
        let text = values.bytes(u64::from(length), NAMES_LIMIT)?;
        self.printk = String::from_utf8_lossy(&text).into_owned();
        Ok(())
    }

    /// Adds an event's format; of unwanted ones only the name and the number.
    fn add(&mut self, system: &str, format: String) {
        let value = |key: &str| format.lines().take(4).find_map(|line| line.strip_prefix(key)).map(str::trim);
        let (Some(name), Some(id)) = (value("name:"), value("ID:").and_then(|id| id.parse::<u16>().ok()))
        else {
            return;
        };
        let wanted = match (system, name) {
            ("ftrace", "print") => Some(&catalog::MARK),
            _ => catalog::find(system, name),
        };
        self.events.insert(id, format!("{system}:{name}"));
        self.formats.extend(wanted.map(|wanted| (wanted, format)));
    }
}

/// Reads the places of the data of CPUs numbered from 0.
fn cpu_places(values: &mut TraceValues<impl Read>, cpus: u32) -> Result<Vec<CpuData>, TraceError> {
    if cpus > model::units::CPU_LIMIT {
        return Err(TraceError::corrupt("more CPUs than a kernel has"));
    }
    (0..cpus).map(|cpu| Ok(CpuData { cpu, offset: values.u64()?, size: values.u64()? })).collect()
}

fn counted(values: &mut TraceValues<impl Read>, limit: u32) -> Result<u32, TraceError> {
    let count = values.u32()?;
    if count <= limit { Ok(count) } else { Err(TraceError::corrupt("more events than a kernel has")) }
}

fn sized_text(values: &mut TraceValues<impl Read>, limit: u64) -> Result<String, TraceError> {
    let length = values.u64()?;
    Ok(String::from_utf8_lossy(&values.bytes(length, limit)?).into_owned())
}

/// Clock in brackets in a list of all.
pub fn clock_in_use(clocks: &str) -> String {
    let begun = clocks.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    begun.map_or(String::new(), |(clock, _)| clock.to_owned())
}

/// Number of events that a CPU's `stats` counts as lost.
fn lost_in(text: &str) -> u64 {
    let count = |key: &str| -> u64 {
        let value = text.lines().find_map(|line| line.strip_prefix(key));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    count("overrun:").saturating_add(count("dropped events:"))
}
