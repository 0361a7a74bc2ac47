//! trace.dat of trace-cmd, file versions 6 and 7: the kernel's pages, merged over the CPUs page by
//! page.
//!
//! Sources: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5).

mod blocks;
mod cursor;
pub(super) mod header;
mod packed;
mod sections;

use std::collections::BTreeMap;

use self::blocks::CpuBlocks;
use self::cursor::{CpuCursor, PageReading, RecordedPages, merge};
pub use self::header::MAGIC;
use self::header::{DatBuffer, DatHeader};
use self::sections::sections;
use super::facts::{TraceClock, TraceFacts};
use super::input::TraceInput;
use super::{ForeignTrace, StepSink, TraceError, TracePart};
use model::run::Host;
use model::units::{CPU_LIMIT, Cpu, Nanos};
use trace::catalog::EventSpec;
use trace::decode::Decoder;
use trace::names::Names;
use trace::symbols::Symbols;

/// A file whose head has been read.
pub struct TraceDat {
    input: TraceInput,
    header: DatHeader,
    buffer: DatBuffer,
    decoder: Decoder,
    /// Decoder of the events that show wake-ups.
    wakeups: Decoder,
    cpus: Vec<(Cpu, CpuBlocks)>,
    facts: TraceFacts,
    /// Number of records by the number of their event.
    seen: BTreeMap<u16, u64>,
    /// Number of records that could not be read.
    unread: u64,
    /// Start times of each CPU's blocks, as far as they were read.
    starts: Vec<Vec<Nanos>>,
}

impl TraceDat {
    /// Reads the head of a file that begins with [`MAGIC`].
    pub fn open(input: TraceInput) -> Result<TraceDat, TraceError> {
        let mut header = DatHeader::read(&input)?;
        sections(&mut header, &input)?;
        let size =
            |buffer: &DatBuffer| buffer.cpus.iter().map(|cpu| cpu.size).fold(0u64, u64::saturating_add);
        let largest = header.buffers.iter().max_by_key(|buffer| size(buffer)).cloned();
        let Some(buffer) = largest.filter(|buffer| size(buffer) > 0) else {
            let has = if header.text_only { "a latency tracer's text in it; give that text" } else { "none" };
            return Err(TraceError::new(format!(
                "invalid trace.dat: expected events, found {has}; record with `trace-cmd record -e sched \
                 -e irq -e timer`"
            )));
        };
        let mut facts = facts_of(&header, &buffer)?;
        if header.buffers.iter().filter(|other| size(other) > 0).count() > 1 {
            let name = if buffer.name.is_empty() { "the top level" } else { &buffer.name };
            facts.notes.push(format!("only the largest of several tracing instances is explained: {name}"));
        }
        let formats: Vec<(&'static EventSpec, &str)> =
            header.formats.iter().map(|(wanted, text)| (*wanted, text.as_str())).collect();
        let unusable = |_| TraceError::corrupt("a page layout that is not known");
        let decoder = Decoder::new(&header.page, header.order.big, &formats).map_err(unusable)?;
        if decoder.layout().data_offset >= buffer.page_size as usize {
            return Err(TraceError::corrupt("pages shorter than their head"));
        }
        let wakeups = decoder.only(super::shows_wakeups);
        let mut cpus = Vec::new();
        for data in &buffer.cpus {
            let (page, count) = (buffer.page_size as usize, buffer.cpus.len());
            let blocks = CpuBlocks::find(&input, header.order, *data, count, page, buffer.packed)?;
            cpus.push((Cpu(data.cpu), blocks));
        }
        header.formats.clear();
        let starts = vec![Vec::new(); cpus.len()];
        Ok(TraceDat {
            input,
            header,
            buffer,
            decoder,
            wakeups,
            cpus,
            facts,
            seen: BTreeMap::new(),
            unread: 0,
            starts,
        })
    }
}

fn facts_of(header: &DatHeader, buffer: &DatBuffer) -> Result<TraceFacts, TraceError> {
    let words: Vec<&str> = header.uname.split_ascii_whitespace().collect();
    let writer = header.writer.split_ascii_whitespace().next().unwrap_or_default();
    let clock =
        if buffer.clock.is_empty() { header::clock_in_use(&header.clocks) } else { buffer.clock.clone() };
    let host = Host {
        release: words.get(2).map_or(String::new(), |word| (*word).to_owned()),
        machine: words.last().filter(|_| words.len() > 3).map_or(String::new(), |word| (*word).to_owned()),
        online: header.cpu_count.filter(|count| (1..=CPU_LIMIT).contains(count)).map_or(
            String::new(),
            |count| {
                if count == 1 { "0".to_owned() } else { format!("0-{}", count - 1) }
            },
        ),
        ..Host::default()
    };
    let clock = match clock.as_str() {
        "mono" => TraceClock::Monotonic,
        "counter" | "uptime" => {
            return Err(TraceError::new(format!(
                "invalid trace.dat: expected times in nanoseconds, found clock '{clock}'; record with `-C \
                 mono`"
            )));
        }
        "x86-tsc" | "ppc-tb" | "s390-tod" if header.scale.is_none() => {
            return Err(TraceError::new(format!(
                "invalid trace.dat: expected times in nanoseconds, found clock '{clock}' without a unit; \
                 record with `-C mono`"
            )));
        }
        _ => TraceClock::Other(clock),
    };
    Ok(TraceFacts {
        source: format!("trace.dat of trace-cmd {writer}, file version {}", header.version)
            .replace("  ", " "),
        host,
        clock,
        lost: header.lost,
        ..TraceFacts::default()
    })
}

impl ForeignTrace for TraceDat {
    fn facts(&self) -> TraceFacts {
        let name = |id: &u16| self.header.events.get(id).cloned();
        let mut facts = self.facts.clone();
        facts.events = self.seen.keys().filter_map(name).collect();
        facts.events.sort_unstable();
        facts.unread = self.unread;
        let refused = self.decoder.refused().iter();
        facts.notes.extend(refused.map(|(wanted, why)| format!("{}:{}: {why}", wanted.system, wanted.event)));
        facts
    }

    fn names(&mut self) -> Names {
        let symbols = Symbols::parse(&std::mem::take(&mut self.header.kallsyms)).ok();
        if symbols.is_none() {
            self.facts.notes.push("the file has no names of functions: record as root".to_owned());
        }
        let text = symbols.as_ref().and_then(|symbols| symbols.address_of("_stext")).unwrap_or(0);
        self.decoder = self.decoder.clone().with_text(text);
        Names::new(symbols, &self.header.printk, &self.facts.host.machine, None)
    }

    fn each(&mut self, part: TracePart, sink: &mut StepSink) -> Result<(), TraceError> {
        let first = part == TracePart::Wakeups;
        let TraceDat { input, header, cpus, starts, .. } = self;
        let decoder = if first { &self.wakeups } else { &self.decoder };
        let page_size = self.buffer.page_size as usize;
        let recorded = RecordedPages { input, decoder, page_size, scale: header.scale };
        let mut reading = PageReading { unpacker: &mut header.unpacker, seen: Box::new([0; 1 << 16]) };
        let mut cursors = Vec::new();
        for ((cpu, blocks), starts) in cpus.iter().zip(&*starts) {
            let mut cursor = CpuCursor::new(*cpu, blocks);
            if let TracePart::From(from) = part {
                cursor.go_to(&recorded, &mut reading, starts, from)?;
            }
            cursors.push(cursor);
        }
        merge(&recorded, &mut reading, &mut cursors, sink)?;
        if first {
            self.seen = counted(&reading.seen[..]);
            for (cursor, starts) in cursors.into_iter().zip(starts) {
                self.unread += cursor.unread;
                *starts = cursor.starts;
            }
        }
        Ok(())
    }
}

/// Events that occur, by id; a damaged file may hold every possible id.
fn counted(by_id: &[u64]) -> BTreeMap<u16, u64> {
    (0..=u16::MAX).zip(by_id.iter().copied()).filter(|counted| counted.1 > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_may_occur() {
        let all = counted(&[1; 1 << 16]);
        assert_eq!((all.len(), all.get(&u16::MAX)), (1 << 16, Some(&1)));
        assert_eq!(counted(&[0, 5]), BTreeMap::from([(1, 5)]));
    }
}
