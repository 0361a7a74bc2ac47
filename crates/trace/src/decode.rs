//! Decoding of pages to events, by the formats of the kernel that wrote them.
//!
//! Source: Documentation/trace/events.rst for the formats, `trace_print_lat_fmt` in
//! kernel/trace/trace_output.c for the common fields.

use super::byte_order::ByteOrder;
use super::catalog::EventSpec;
use super::event::{Address, Context, Event, Raw, What};
use super::fields::{FieldSlots, Fields, MAX_FIELDS, Slot, WINDOW};
use super::format::{Format, PageLayout};
use super::page::{Lost, Page, start_of};
use model::units::{Cpu, Nanos};

/// Lower half of `common_preempt_count`; the upper half counts how deep migration was disabled.
const PREEMPT: u8 = 0x0f;

/// Statistics of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageNotes {
    /// Time of the page; none of its records is older.
    pub start: Nanos,
    /// Time of its last record; that of the page if it has none.
    pub end: Nanos,
    /// Records with data, including those counted below.
    pub records: u64,
    /// Records of events that were not requested.
    pub unknown: u64,
    /// Records too short for their event, or with invalid fields.
    pub malformed: u64,
    /// Records that the kernel overwrote between the page read before and this one.
    pub lost: Lost,
    /// True if the page ended within a record or had invalid data, so that its rest was not read.
    pub cut: bool,
}

/// The reason for which a record is not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecoded {
    /// The event was not requested.
    Unknown,
    /// The record is too short for its event, or has invalid fields.
    Malformed,
}

const NO_SLOTS: FieldSlots = [Slot::ABSENT; MAX_FIELDS];

/// Plan for reading the records of one event.
#[derive(Clone, Debug)]
struct Plan {
    wanted: &'static EventSpec,
    /// Copy of the event's `decode`, to save an indirection.
    decode: fn(&Fields) -> Option<What<Address>>,
    slots: FieldSlots,
    /// Least length of a record that can be read in a window; `usize::MAX` if none can.
    reach: usize,
}

/// Decoder for the pages of one kernel.
#[derive(Clone, Debug)]
pub struct Decoder {
    layout: PageLayout,
    order: ByteOrder,
    text: Address,
    /// Plans by number of the event.
    plans: Vec<Option<Box<Plan>>>,
    refused: Vec<(&'static EventSpec, String)>,
}

impl Decoder {
    /// Creates a decoder from the texts of `events/header_page` and of the events' `format` files.
    ///
    /// An unusable format disables only its event: see `refused`.
    pub fn new(header: &str, big: bool, formats: &[(&'static EventSpec, &str)]) -> Result<Decoder, String> {
        let layout = PageLayout::parse(header)?;
        let order = ByteOrder { big, long: layout.commit_size };
        let mut decoder = Decoder { layout, order, text: 0, plans: Vec::new(), refused: Vec::new() };
        for &(wanted, text) in formats {
            if let Err(why) = decoder.add(wanted, text) {
                decoder.refused.push((wanted, why));
            }
        }
        Ok(decoder)
    }

    /// Sets the address of `_stext`, to which preemptirq's events are relative; without it their
    /// callers are offsets.
    pub fn with_text(self, text: Address) -> Decoder {
        Decoder { text, ..self }
    }

    fn add(&mut self, wanted: &'static EventSpec, text: &str) -> Result<(), String> {
        let format = Format::parse(text)?;
        check_common(&format)?;
        let find = |name: &&str| Slot::find(&format, name, self.order);
        if let Some(missing) = wanted.required.iter().find(|name| find(name).is_none()) {
            return Err(format!("{} has no field {missing}", format.name));
        }
        let mut slots = NO_SLOTS;
        for (slot, name) in slots.iter_mut().zip(wanted.required.iter().chain(wanted.optional)) {
            *slot = find(name).unwrap_or(Slot::ABSENT);
        }
        let id = usize::from(format.id);
        if self.plans.len() <= id {
            self.plans.resize(id + 1, None);
        }
        if self.plans[id].is_some() {
            return Err(format!("{}: another event has the number {id}", format.name));
        }
        let reach =
            slots.iter().try_fold(0, |reach, slot| Some(slot.reach()?.max(reach))).unwrap_or(usize::MAX);
        self.plans[id] = Some(Box::new(Plan { wanted, decode: wanted.decode, slots, reach }));
        Ok(())
    }

    /// Decoder for some of the events; records of the others count as unknown.
    pub fn only(&self, wanted: fn(&EventSpec) -> bool) -> Decoder {
        let keep = |plan: &Option<Box<Plan>>| plan.clone().filter(|plan| wanted(plan.wanted));
        Decoder { plans: self.plans.iter().map(keep).collect(), ..self.clone() }
    }

    /// Events whose formats could not be used, with the reasons.
    pub fn refused(&self) -> &[(&'static EventSpec, String)] {
        &self.refused
    }

    /// Layout of pages.
    pub fn layout(&self) -> &PageLayout {
        &self.layout
    }

    /// Start time of a page, without reading its records.
    pub fn start_of(&self, bytes: &[u8]) -> Option<Nanos> {
        start_of(self.order, bytes)
    }

    /// Passes the events of one page in order to `each`; `cpu` is the one whose buffer it was in.
    pub fn page(&self, cpu: Cpu, bytes: &[u8], each: &mut impl FnMut(Raw)) -> PageNotes {
        self.page_seen(cpu, bytes, &mut |_| (), each)
    }

    /// Like [`Decoder::page`]; `seen` gets the number of each record's event, requested or not.
    pub fn page_seen(
        &self,
        cpu: Cpu,
        bytes: &[u8],
        seen: &mut impl FnMut(u16),
        each: &mut impl FnMut(Raw),
    ) -> PageNotes {
        let Some(mut page) = Page::open(&self.layout, self.order, bytes) else {
            return PageNotes { cut: true, ..PageNotes::default() };
        };
        let (mut records, mut unknown, mut malformed) = (0, 0, 0);
        let mut end = page.start;
        let mut fields = self.fields(&[]);
        page.each(|record| {
            records += 1;
            end = record.time;
            let Some(head) = self.head(record.data) else {
                malformed += 1;
                return;
            };
            seen(head.id());
            let Some(plan) = self.plan(head.id()) else {
                unknown += 1;
                return;
            };
            let what = match record.from.first_chunk() {
                Some(window) if record.data.len() >= plan.reach => {
                    (fields.data, fields.slots, fields.window) = (record.data, &plan.slots, window);
                    (plan.decode)(&fields)
                }
                _ => self.apart(plan, record.data),
            };
            match what {
                Some(what) => each(head.event(cpu, record.time, what)),
                None => malformed += 1,
            }
        });
        PageNotes { start: page.start, end, records, unknown, malformed, lost: page.lost, cut: page.cut }
    }

    /// Decodes one record, from a page or another container.
    pub fn record(&self, cpu: Cpu, time: Nanos, data: &[u8]) -> Result<Raw, Undecoded> {
        let head = self.head(data).ok_or(Undecoded::Malformed)?;
        let plan = self.plan(head.id()).ok_or(Undecoded::Unknown)?;
        let what = self.apart(plan, data).ok_or(Undecoded::Malformed)?;
        Ok(head.event(cpu, time, what))
    }

    #[inline]
    fn plan(&self, id: u16) -> Option<&Plan> {
        self.plans.get(usize::from(id))?.as_deref()
    }

    /// Reads a record at the end of the data, or one that cannot be read in a window.
    #[inline(never)]
    fn apart(&self, plan: &Plan, data: &[u8]) -> Option<What<Address>> {
        let mut window = [0; WINDOW];
        let fields = Fields { slots: &plan.slots, ..self.fields(data) };
        if data.len() < plan.reach {
            let slots = fields.apart(&mut window);
            return (plan.decode)(&Fields { window: &window, slots: &slots, ..fields });
        }
        let begin = data.get(..WINDOW).unwrap_or(data);
        window[..begin.len()].copy_from_slice(begin);
        (plan.decode)(&Fields { window: &window, ..fields })
    }

    /// Fields of a record, without the slots of an event yet.
    fn fields<'a>(&self, data: &'a [u8]) -> Fields<'a> {
        Fields { data, window: &[0; WINDOW], slots: &NO_SLOTS, order: self.order, text: self.text }
    }

    #[inline]
    fn head(&self, data: &[u8]) -> Option<Head> {
        let bytes = data.first_chunk()?;
        Some(if self.order.big { Head::of_big(bytes) } else { Head(u64::from_le_bytes(*bytes)) })
    }
}

/// Start of all records, `struct trace_entry`, in the layout of a little-endian machine: as one
/// word it stays in a register.
#[derive(Clone, Copy)]
struct Head(u64);

impl Head {
    #[cold]
    fn of_big(&[a, b, flags, count, p, q, r, s]: &[u8; 8]) -> Head {
        Head(u64::from_le_bytes([b, a, flags, count, s, r, q, p]))
    }

    /// Number of the event.
    #[inline]
    fn id(self) -> u16 {
        self.0 as u16
    }

    #[inline]
    fn event(self, cpu: Cpu, time: Nanos, what: What<Address>) -> Raw {
        let (context, preempt) = (Context((self.0 >> 16) as u8), (self.0 >> 24) as u8 & PREEMPT);
        Event { time, cpu, pid: (self.0 >> 32) as i32, context, preempt, what }
    }
}

/// Checks the offsets of the common fields, which have not changed since 2.6.31.
fn check_common(format: &Format) -> Result<(), String> {
    const COMMON: [(&str, usize, usize); 4] =
        [("common_type", 0, 2), ("common_flags", 2, 1), ("common_preempt_count", 3, 1), ("common_pid", 4, 4)];
    for (name, offset, size) in COMMON {
        if format.field(name).is_none_or(|field| (field.offset, field.size) != (offset, size)) {
            return Err(format!("{}: {name} is not where it should be", format.name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::catalog::find;
    use super::super::event::Task;
    use super::super::fixture::{RingItem, Writer, format};
    use super::*;
    use proptest::prelude::*;

    fn wanted(system: &str, event: &str) -> &'static EventSpec {
        find(system, event).unwrap()
    }

    /// Decoder of four events that are read in four ways.
    fn decoder(writer: Writer) -> Decoder {
        let long = writer.order.long;
        let switch = format(
            "sched_switch",
            300,
            &[
                ("char prev_comm[16]", 16, false),
                ("pid_t prev_pid", 4, true),
                ("int prev_prio", 4, true),
                ("long prev_state", long, true),
                ("char next_comm[16]", 16, false),
                ("pid_t next_pid", 4, true),
                ("int next_prio", 4, true),
            ],
        );
        let irq =
            format("irq_handler_entry", 40, &[("int irq", 4, true), ("__data_loc char[] name", 4, false)]);
        let stack = format("kernel_stack", 4, &[("int size", 4, true), ("unsigned long caller[]", 0, false)]);
        let end = format("workqueue_execute_end", 41, &[("void * work", long, false)]);
        let formats = [
            (wanted("sched", "sched_switch"), switch.as_str()),
            (wanted("irq", "irq_handler_entry"), &irq),
            (wanted("ftrace", "kernel_stack"), &stack),
            (wanted("workqueue", "workqueue_execute_end"), &end),
        ];
        Decoder::new(&writer.header(), writer.order.big, &formats).unwrap()
    }

    fn decode(decoder: &Decoder, bytes: &[u8]) -> (Vec<Raw>, PageNotes) {
        let mut events = Vec::new();
        let notes = decoder.page(Cpu(3), bytes, &mut |event| events.push(event));
        (events, notes)
    }

    fn comm(text: &str) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        bytes
    }

    fn switch(writer: Writer, prev: i32, next: i32, state: i64) -> Vec<u8> {
        let pid = prev;
        let (prev, next) = (writer.u32(prev as u32), writer.u32(next as u32));
        let (low, high) = (writer.u32(-1i32 as u32), writer.u32(120));
        let state = writer.long(state as u64);
        writer.record(300, 0x05, 0x21, pid, &[&comm("a"), &prev, &low, &state, &comm("b b"), &next, &high])
    }

    #[test]
    fn records_become_events_on_every_machine() {
        for (big, long) in [(false, 8), (true, 8), (false, 4), (true, 4)] {
            let writer = Writer::new(big, long, 8192);
            let irq =
                writer.record(40, 0x08, 0, 0, &[&writer.u32(17), &writer.u32(5 << 16 | 16), b"eth0\0\0\0\0"]);
            let stack = writer.record(
                4,
                0,
                0,
                9,
                &[&writer.u32(2), &writer.long(7), &writer.long(8), &writer.long(9)],
            );
            let end = writer.record(41, 0, 0, 9, &[&writer.long(1)]);
            let alien = writer.record(42, 0, 0, 9, &[]);
            let short = writer.record(300, 0, 0, 9, &[&[0; 8]]);
            let items: Vec<_> = [switch(writer, 10, 11, 256), irq, stack, end, alien, short]
                .into_iter()
                .map(|data| RingItem::Data(100, data))
                .collect();
            let (bytes, _) = writer.page(5000, &items, Some(Some(6)));
            let decoder = decoder(writer);
            assert!(decoder.refused().is_empty(), "{:?}", decoder.refused());
            let (events, notes) = decode(&decoder, &bytes);
            let whats: Vec<_> = events.iter().map(|event| event.what.clone()).collect();
            let task = |comm: &str, pid, prio| Task { comm: comm.into(), pid, prio };
            assert_eq!(
                whats,
                [
                    What::Switch { prev: task("a", 10, -1), state: 256, next: task("b b", 11, 120) },
                    What::IrqEntry { irq: 17, name: "eth0".into() },
                    What::Stack { frames: vec![7, 8], enables: None },
                    What::WorkExit { function: 0 },
                ]
            );
            let first = &events[0];
            assert_eq!((first.time, first.cpu, first.pid), (Nanos(5100), Cpu(3), 10));
            assert_eq!((first.preempt, first.context), (1, Context(5)));
            let expected = PageNotes {
                start: Nanos(5000),
                end: Nanos(5600),
                records: 6,
                unknown: 1,
                malformed: 1,
                lost: Lost::Records(6),
                cut: false,
            };
            assert_eq!((notes, decoder.start_of(&bytes)), (expected, Some(Nanos(5000))));
        }
    }

    #[test]
    fn a_format_that_cannot_be_used_costs_its_event_only() {
        let writer = Writer::new(false, 8, 4096);
        let lacking = format("sched_switch", 1, &[("char prev_comm[16]", 16, false)]);
        let moved =
            format("softirq_exit", 2, &[("unsigned int vec", 4, false)]).replace("offset:4;", "offset:5;");
        let good = format("softirq_raise", 3, &[("unsigned int vec", 4, false)]);
        let again = format("softirq_entry", 3, &[("unsigned int vec", 4, false)]);
        let formats = [
            (wanted("sched", "sched_switch"), lacking.as_str()),
            (wanted("irq", "softirq_exit"), &moved),
            (wanted("irq", "softirq_raise"), &good),
            (wanted("irq", "softirq_entry"), &again),
            (wanted("irq", "irq_handler_exit"), ""),
        ];
        let decoder = Decoder::new(&writer.header(), false, &formats).unwrap();
        let refused: Vec<_> = decoder.refused().iter().map(|refused| refused.0.event).collect();
        assert_eq!(refused, ["sched_switch", "softirq_exit", "softirq_entry", "irq_handler_exit"]);
        assert!(decoder.refused()[0].1.contains("prev_pid"), "{}", decoder.refused()[0].1);
        let record = writer.record(3, 0, 0, 1, &[&writer.u32(9)]);
        let (events, _) = decode(&decoder, &writer.page(1, &[RingItem::Data(0, record)], None).0);
        assert_eq!(events[0].what, What::SoftirqRaise { vec: 9 });
        assert!(Decoder::new("", false, &[]).is_err());
    }

    #[test]
    fn a_caller_is_counted_from_the_start_of_the_text() {
        let writer = Writer::new(false, 8, 4096);
        let text = format("irq_disable", 7, &[("s32 caller_offs", 4, true), ("s32 parent_offs", 4, true)]);
        let decoder = Decoder::new(&writer.header(), false, &[(wanted("preemptirq", "irq_disable"), &text)]);
        let decoder = decoder.unwrap().with_text(0xffff_ffff_8100_0000);
        let record = writer.record(7, 0, 0, 1, &[&writer.u32(-16i32 as u32), &writer.u32(0)]);
        let (events, _) = decode(&decoder, &writer.page(1, &[RingItem::Data(0, record)], None).0);
        assert_eq!(events[0].what, What::Toggle { irqs: true, off: true, caller: 0xffff_ffff_80ff_fff0 });
    }

    proptest! {
        #[test]
        fn switches_are_read_as_written(
            which in 0usize..4,
            all in proptest::collection::vec((any::<i32>(), any::<i32>(), 0i64..1000, 0u32..1 << 27), 0..80),
        ) {
            let writer = Writer::new(which & 1 != 0, if which & 2 == 0 { 8 } else { 4 }, 4096);
            let items: Vec<_> =
                all.iter().map(|s| RingItem::Data(s.3, switch(writer, s.0, s.1, s.2))).collect();
            let (bytes, taken) = writer.page(1, &items, None);
            let (events, notes) = decode(&decoder(writer), &bytes);
            let found: Vec<_> = events
                .iter()
                .map(|event| match &event.what {
                    What::Switch { prev, state, next } => (prev.pid, next.pid, *state),
                    _ => (0, 0, -1),
                })
                .collect();
            let written: Vec<_> = all[..taken].iter().map(|s| (s.0, s.1, s.2)).collect();
            prop_assert_eq!(found, written);
            prop_assert_eq!((notes.records, notes.malformed, notes.cut), (taken as u64, 0, false));
        }

        #[test]
        fn damaged_pages_do_no_harm(
            which in 0usize..4, damage in proptest::collection::vec((0usize..4096, any::<u8>()), 0..30),
        ) {
            let writer = Writer::new(which & 1 != 0, if which & 2 == 0 { 8 } else { 4 }, 4096);
            let stack = writer.record(4, 0, 0, 9, &[&writer.u32(1 << 30), &[1; 64]]);
            let irq = writer.record(40, 0, 0, 9, &[&[1; 4], &writer.u32(0xffff_ffff), &[1; 64]]);
            let items = [
                RingItem::Data(1, stack),
                RingItem::Data(1, irq),
                RingItem::Data(1, switch(writer, 1, 2, 0)),
                RingItem::Extend(1 << 58),
            ];
            let (mut bytes, _) = writer.page(1, &[&items[..]; 12].concat(), None);
            for (at, byte) in damage {
                bytes[at] = byte;
            }
            let (events, notes) = decode(&decoder(writer), &bytes);
            prop_assert_eq!(events.len() as u64 + notes.unknown + notes.malformed, notes.records);
            prop_assert!(notes.records < 4096 && notes.start <= notes.end);
            prop_assert!(events.iter().all(|event| event.time >= notes.start && event.time <= notes.end));
        }
    }
}
