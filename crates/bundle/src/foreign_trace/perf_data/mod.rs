//! perf.data of `perf sched record` and of `perf record` with tracepoints.
//!
//! Written here because linux-perf-data allocates any size that a damaged file states, holds rounds
//! of any length in memory and brings a dozen crates.
//!
//! Source: tools/perf/Documentation/perf.data-file-format.txt.

mod header;
mod ordered;
mod records;

use std::collections::BTreeMap;

use self::header::PerfHeader;
use self::ordered::{PerfStep, RecordOrder};
use super::facts::{TraceClock, TraceFacts};
use super::input::TraceInput;
use super::trace_dat::header::DatHeader;
use super::{ForeignTrace, StepSink, TraceError, TracePart, TraceStep};
use model::run::Host;
use model::units::{Cpu, Nanos};
use trace::catalog::EventSpec;
use trace::decode::{Decoder, Undecoded};
use trace::names::Names;

/// Types of the records that are read.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
const FINISHED_ROUND: u32 = 68;
const COMPRESSED: [u32; 2] = [81, 83];

/// Number of bytes that are read at once; no record is longer than 64 KiB.
const AT_ONCE: usize = 256 << 10;

/// Length of the head of a record.
const HEAD: usize = 8;

/// `CLOCK_MONOTONIC`.
const MONOTONIC: i32 = 1;

/// Format of a page for a file without one: only records are read.
const PAGE: &str = "field: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                    field: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                    field: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

/// A file whose head has been read.
pub struct PerfData {
    input: TraceInput,
    header: PerfHeader,
    description: DatHeader,
    decoder: Decoder,
    wakeups: Decoder,
    seen: BTreeMap<u16, u64>,
    unread: u64,
    late: u64,
    without_cpu: u64,
}

/// True for a file that begins like perf's.
pub fn recognise(head: &[u8]) -> bool {
    head.starts_with(header::MAGIC) || head.starts_with(header::MAGIC_SWAPPED)
}

impl PerfData {
    pub fn open(input: TraceInput) -> Result<PerfData, TraceError> {
        let header = PerfHeader::read(&input)?;
        let mut description = DatHeader::of_perf(&input, header.tracing_data)?;
        let formats: Vec<(&'static EventSpec, &str)> =
            description.formats.iter().map(|(wanted, text)| (*wanted, text.as_str())).collect();
        let page = if description.page.contains("field:") { &description.page } else { PAGE };
        let unusable = |_| TraceError::corrupt("a page layout that is not known");
        let decoder = Decoder::new(page, description.order.big, &formats).map_err(unusable)?;
        let wakeups = decoder.only(super::shows_wakeups);
        description.formats.clear();
        let seen = BTreeMap::new();
        Ok(PerfData {
            input,
            header,
            description,
            decoder,
            wakeups,
            seen,
            unread: 0,
            late: 0,
            without_cpu: 0,
        })
    }

    /// Hands out complete steps; true if the sink has enough.
    fn drain(ordered: &mut RecordOrder, sink: &mut StepSink) -> bool {
        while let Some((time, step)) = ordered.pop() {
            let flow = match &step {
                PerfStep::Event(event) => sink(TraceStep::Event(event)),
                PerfStep::Lost(cpu, count) => sink(TraceStep::Lost(*cpu, time, *count)),
            };
            if flow.is_break() {
                return true;
            }
        }
        false
    }
}

/// Counts of one reading that no step has.
#[derive(Default)]
struct Counted {
    seen: BTreeMap<u16, u64>,
    unread: u64,
    without_cpu: u64,
    /// Time of the last record, for lost records without a time.
    last: Nanos,
}

impl Counted {
    /// Adds one record.
    fn take(
        &mut self,
        header: &PerfHeader,
        decoder: &Decoder,
        kind: u32,
        body: &[u8],
        ordered: &mut RecordOrder,
    ) {
        match kind {
            SAMPLE => {
                let Some(sample) = records::sample(header, body) else { return };
                let Some(cpu) = sample.cpu else {
                    self.without_cpu += 1;
                    return;
                };
                if let Some(id) = header.order.u16(sample.raw, 0) {
                    *self.seen.entry(id).or_default() += 1;
                }
                self.last = self.last.max(sample.time);
                match decoder.record(cpu, sample.time, sample.raw) {
                    Ok(event) => ordered.push(sample.time, PerfStep::Event(event)),
                    Err(Undecoded::Unknown) => {}
                    Err(Undecoded::Malformed) => self.unread += 1,
                }
            }
            LOST | LOST_SAMPLES => {
                let (cpu, count) = records::lost(header, kind, body);
                ordered.push(self.last, PerfStep::Lost(cpu.unwrap_or(Cpu(0)), count));
            }
            FINISHED_ROUND => ordered.round(),
            _ => {}
        }
    }
}

impl ForeignTrace for PerfData {
    fn facts(&self) -> TraceFacts {
        let name = |id: &u16| self.description.events.get(id).cloned();
        let mut notes = Vec::new();
        if self.late > 0 {
            notes.push(format!("{} records are out of order and were skipped", self.late));
        }
        if self.without_cpu > 0 {
            notes.push(format!("{} samples do not state their CPU: record with -a", self.without_cpu));
        }
        let PerfHeader { release, version, machine, cpus, clock, .. } = &self.header;
        let online = match cpus {
            0 => String::new(),
            1 => "0".to_owned(),
            more => format!("0-{}", more - 1),
        };
        let host = Host { release: release.clone(), machine: machine.clone(), online, ..Host::default() };
        let clock = match clock {
            Some(MONOTONIC) => TraceClock::Monotonic,
            Some(other) => TraceClock::Other(format!("clock {other}")),
            None => TraceClock::Other("perf".to_owned()),
        };
        let mut events: Vec<String> = self.seen.keys().filter_map(name).collect();
        events.sort_unstable();
        let source = format!("perf.data of perf {version}");
        TraceFacts { source, host, clock, events, unread: self.unread, notes, ..TraceFacts::default() }
    }

    fn has_index(&self) -> bool {
        false
    }

    fn names(&mut self) -> Names {
        // perf omits the kernel's names.
        Names::new(None, &self.description.printk, &self.header.machine, None)
    }

    fn each(&mut self, part: TracePart, sink: &mut StepSink) -> Result<(), TraceError> {
        let first = part == TracePart::Wakeups;
        let PerfData { input, header, .. } = self;
        let decoder = if first { &self.wakeups } else { &self.decoder };
        let (mut place, end) = (header.data.0, header.data.0 + header.data.1);
        let (mut counted, mut ordered) = (Counted::default(), RecordOrder::default());
        let mut bytes = vec![0; AT_ONCE];
        let mut enough = false;
        while place < end && !enough {
            let read = input.read_at(place, &mut bytes)?.min((end - place) as usize);
            let mut at = 0;
            while let Some(head) = bytes[..read].get(at..at + HEAD) {
                let kind = header.order.u32(head, 0).unwrap_or_default();
                let length = usize::from(header.order.u16(head, 6).unwrap_or_default());
                if length < HEAD {
                    return Err(TraceError::corrupt("a record without a length"));
                }
                if COMPRESSED.contains(&kind) {
                    return Err(TraceError::corrupt("compressed records"));
                }
                let Some(body) = bytes[..read].get(at + HEAD..at + length) else { break };
                counted.take(header, decoder, kind, body, &mut ordered);
                at += length;
                // If a round has too many records, some are handed out early.
                enough = PerfData::drain(&mut ordered, sink);
                if enough {
                    break;
                }
            }
            if at == 0 {
                break;
            }
            place += at as u64;
        }
        if !enough {
            ordered.end();
            PerfData::drain(&mut ordered, sink);
        }
        if first {
            counted.unread += u64::from(place < end);
            (self.seen, self.unread) = (counted.seen, counted.unread);
            (self.late, self.without_cpu) = (ordered.late, counted.without_cpu);
        }
        Ok(())
    }
}
