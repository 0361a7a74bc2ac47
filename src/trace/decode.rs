//! From pages to events, by the formats of the kernel that wrote them.
//!
//! Source: Documentation/trace/events.rst for the formats, `trace_print_lat_fmt` in kernel/trace/trace_output.c for the common fields.

use super::catalog::Wanted;
use super::event::{Address, Context, Event, Raw};
use super::fields::{Fields, Slot};
use super::format::{Format, PageLayout};
use super::page::{Lost, Page, start_of};
use super::words::Words;
use crate::units::{Cpu, Nanos};

/// `common_preempt_count` has this in its lower half; the upper is how often migration was disabled.
const PREEMPT: u8 = 0x0f;

/// What was found on one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageNotes {
    /// The time of the page: none of its records is older.
    pub start: Nanos,
    /// The time of its last record, or the page's where it has none.
    pub end: Nanos,
    /// Records with data, those counted below included.
    pub records: u64,
    /// Of them, those of an event that nobody asked for.
    pub unknown: u64,
    /// Of them, those too short for their event, or with fields that cannot be.
    pub malformed: u64,
    /// What the kernel overwrote between the page read before and this one.
    pub lost: Lost,
    /// The page ended within a record or had something else than a record: its rest was not read.
    pub cut: bool,
}

/// How the records of one event are read.
#[derive(Clone, Debug)]
struct Plan {
    wanted: &'static Wanted,
    slots: Vec<Option<Slot>>,
}

/// All that is needed to read the pages of one kernel.
#[derive(Clone, Debug)]
pub struct Decoder {
    layout: PageLayout,
    words: Words,
    text: Address,
    /// By the event's number.
    plans: Vec<Option<Plan>>,
    refused: Vec<(&'static Wanted, String)>,
}

impl Decoder {
    /// From the text of `events/header_page` and, for each event, that of its `format`.
    ///
    /// A format that cannot be used costs its event only: see `refused`.
    pub fn new(header: &str, big: bool, formats: &[(&'static Wanted, &str)]) -> Result<Decoder, String> {
        let layout = PageLayout::parse(header)?;
        let words = Words { big, long: layout.commit_size };
        let mut decoder = Decoder { layout, words, text: 0, plans: Vec::new(), refused: Vec::new() };
        for &(wanted, text) in formats {
            if let Err(why) = decoder.add(wanted, text) {
                decoder.refused.push((wanted, why));
            }
        }
        Ok(decoder)
    }

    /// With the address of `_stext`, from which preemptirq's events count; without it their callers are distances.
    pub fn with_text(self, text: Address) -> Decoder {
        Decoder { text, ..self }
    }

    fn add(&mut self, wanted: &'static Wanted, text: &str) -> Result<(), String> {
        let format = Format::parse(text)?;
        check_common(&format)?;
        let slots = |names: &[&str]| names.iter().map(|name| Slot::find(&format, name)).collect::<Vec<_>>();
        let mut found = slots(wanted.needs);
        if let Some(missing) = found.iter().position(Option::is_none) {
            return Err(format!("{} has no field {}", format.name, wanted.needs[missing]));
        }
        found.extend(slots(wanted.may));
        let id = usize::from(format.id);
        if self.plans.len() <= id {
            self.plans.resize(id + 1, None);
        }
        if self.plans[id].is_some() {
            return Err(format!("{}: another event has the number {id}", format.name));
        }
        self.plans[id] = Some(Plan { wanted, slots: found });
        Ok(())
    }

    /// The events whose formats could not be used, and why.
    pub fn refused(&self) -> &[(&'static Wanted, String)] {
        &self.refused
    }

    /// How pages are laid out.
    pub fn layout(&self) -> &PageLayout {
        &self.layout
    }

    /// The time at which a page begins, without reading its records.
    pub fn start_of(&self, bytes: &[u8]) -> Option<Nanos> {
        start_of(self.words, bytes)
    }

    /// Hands out the events of one page in their order; `cpu` is the one whose buffer it was in.
    pub fn page(&self, cpu: Cpu, bytes: &[u8], each: &mut impl FnMut(Raw)) -> PageNotes {
        let Some(mut page) = Page::open(&self.layout, self.words, bytes) else {
            return PageNotes { cut: true, ..PageNotes::default() };
        };
        let mut notes =
            PageNotes { start: page.start, end: page.start, lost: page.lost, ..PageNotes::default() };
        for record in page.by_ref() {
            notes.records += 1;
            notes.end = record.time;
            let Some(head) = self.head(record.data) else {
                notes.malformed += 1;
                continue;
            };
            let Some(plan) = self.plans.get(usize::from(head.id)).and_then(Option::as_ref) else {
                notes.unknown += 1;
                continue;
            };
            let fields = Fields { data: record.data, slots: &plan.slots, words: self.words, text: self.text };
            let Some(what) = (plan.wanted.decode)(&fields) else {
                notes.malformed += 1;
                continue;
            };
            each(Event {
                time: record.time,
                cpu,
                pid: head.pid,
                context: head.context,
                preempt: head.preempt,
                what,
            });
        }
        notes.cut = page.cut;
        notes
    }

    fn head(&self, data: &[u8]) -> Option<Head> {
        let id = self.words.u16(data, 0)?;
        let (context, preempt) = (Context(*data.get(2)?), *data.get(3)? & PREEMPT);
        Some(Head { id, context, preempt, pid: self.words.u32(data, 4)? as i32 })
    }
}

/// `struct trace_entry`, with which all records begin.
struct Head {
    id: u16,
    context: Context,
    preempt: u8,
    pid: i32,
}

/// The common fields have had these places since 2.6.31; a kernel that moved them would be misread.
fn check_common(format: &Format) -> Result<(), String> {
    const COMMON: [(&str, usize, usize); 4] =
        [("common_type", 0, 2), ("common_flags", 2, 1), ("common_preempt_count", 3, 1), ("common_pid", 4, 4)];
    for (name, offset, size) in COMMON {
        if !format.field(name).is_some_and(|field| (field.offset, field.size) == (offset, size)) {
            return Err(format!("{}: {name} is not where it should be", format.name));
        }
    }
    Ok(())
}
