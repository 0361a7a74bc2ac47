//! Records of one page of the ring buffer, as read from `per_cpu/cpu*/trace_pipe_raw`.
//!
//! Source: `struct buffer_data_page`, `rb_event_length`, `rb_event_discard`, `rb_fix_abs_ts` and
//! `ring_buffer_read_page` in kernel/trace/ring_buffer.c, `struct ring_buffer_event` in
//! include/linux/ring_buffer.h. The first word of a record has its type or length in 5 bits and the
//! time since the previous record in 27: the first bit field is the lowest five bits of the word on
//! a little-endian machine, and the highest five on a big-endian one.

use super::byte_order::ByteOrder;
use super::format::PageLayout;
use model::units::Nanos;

/// `RB_MISSED_EVENTS`: records before this page were overwritten.
const MISSED: u64 = 1 << 31;
/// `RB_MISSED_STORED`: their number follows the data.
const MISSED_STORED: u64 = 1 << 30;
/// Mask of the length, below these two bits; no page is longer than a gigabyte.
const LENGTH: u64 = MISSED_STORED - 1;
/// `TS_MSB`: bits of an absolute time that its 59 bits lack, taken from the page's time.
const UPPER: u64 = 0xf8 << 56;

/// Records overwritten before a page could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lost {
    #[default]
    Nothing,
    /// This number of records.
    Records(u64),
    /// An unknown number of records.
    Some,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Time at which it was written.
    pub time: Nanos,
    /// Data, followed by some padding.
    pub data: &'a [u8],
    /// Data and the rest of the page after it.
    pub from: &'a [u8],
}

/// Page whose records are read in order.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    /// Rest of the committed bytes.
    rest: &'a [u8],
    /// Time of the last record.
    now: u64,
    order: ByteOrder,
    /// Time of the page.
    pub start: Nanos,
    /// Records overwritten before it.
    pub lost: Lost,
    /// True if the page ended within a record or had invalid data; the rest is not read.
    pub cut: bool,
}

/// Latest time in the range of [`Nanos`].
const LATEST: u64 = i64::MAX as u64;

/// Kernel time as [`Nanos`], if in range.
fn nanos(time: u64) -> Option<Nanos> {
    i64::try_from(time).ok().map(Nanos)
}

/// Start time of a page.
pub fn start_of(order: ByteOrder, bytes: &[u8]) -> Option<Nanos> {
    order.u64(bytes, 0).and_then(nanos)
}

impl<'a> Page<'a> {
    /// Parses the head of a page; none if it is too short.
    pub fn open(layout: &PageLayout, order: ByteOrder, bytes: &'a [u8]) -> Option<Page<'a>> {
        let start = start_of(order, bytes)?;
        let commit = order.long(bytes, layout.commit_offset)?;
        let data = bytes.get(layout.data_offset..)?;
        let length = (commit & LENGTH) as usize;
        let lost = match (commit & MISSED != 0, commit & MISSED_STORED != 0) {
            (false, _) => Lost::Nothing,
            (true, false) => Lost::Some,
            (true, true) => order.long(data, length).filter(|&n| n > 0).map_or(Lost::Some, Lost::Records),
        };
        let rest = data.get(..length);
        Some(Page {
            rest: rest.unwrap_or(data),
            now: start.0 as u64,
            order,
            start,
            lost,
            cut: rest.is_none(),
        })
    }

    /// Type or length of the next record, and the time since the previous one.
    #[inline]
    fn head(&self) -> Option<(u32, u64)> {
        Some(self.split(self.order.u32(self.rest, 0)?))
    }

    #[inline]
    fn split(&self, word: u32) -> (u32, u64) {
        if self.order.big {
            (word >> 27, u64::from(word & ((1 << 27) - 1)))
        } else {
            (word & 31, u64::from(word >> 5))
        }
    }

    /// Passes the records to `each`, in order.
    #[inline]
    pub fn each(&mut self, mut each: impl FnMut(Record<'a>)) {
        // Nearly all are short records with data: the state stays in registers.
        let (mut rest, mut now) = (self.rest, self.now);
        loop {
            let record = match self.short(rest, now) {
                Some((record, after)) => {
                    rest = after;
                    record
                }
                None => {
                    (self.rest, self.now) = (rest, now);
                    let Some(record) = self.other() else { return };
                    rest = self.rest;
                    record
                }
            };
            now = record.time.0 as u64;
            each(record);
        }
    }

    /// First record and the rest after it, if it is a short one with data.
    #[inline]
    fn short(&self, rest: &'a [u8], now: u64) -> Option<(Record<'a>, &'a [u8])> {
        let (head, rest) = rest.split_first_chunk::<4>()?;
        let word = if self.order.big { u32::from_be_bytes(*head) } else { u32::from_le_bytes(*head) };
        let (kind, delta) = self.split(word);
        // 0 has a separate length word, and types above 28 have no data.
        if kind.wrapping_sub(1) >= 28 {
            return None;
        }
        let (data, after) = rest.split_at_checked(kind as usize * 4)?;
        let now = now.wrapping_add(delta);
        (now <= LATEST).then_some((Record { time: Nanos(now as i64), data, from: rest }, after))
    }

    /// Next record with data; skips time records and discarded ones, whose times count.
    fn step(&mut self) -> Option<Record<'a>> {
        loop {
            let (kind, delta) = self.head()?;
            match kind {
                1..=28 => {
                    let data = self.take(4, kind as usize * 4)?;
                    return self.record(delta, data);
                }
                0 => {
                    // The length includes its own word.
                    let length = self.order.u32(self.rest, 4)?.checked_sub(4)? as usize;
                    let data = self.take(8, length.checked_next_multiple_of(4)?)?;
                    return self.record(delta, data);
                }
                29 => {
                    if delta == 0 {
                        // The rest of the page was never written.
                        self.rest = &[];
                        return None;
                    }
                    let length = self.order.u32(self.rest, 4)? as usize;
                    self.take(4, length.max(4).checked_next_multiple_of(4)?)?;
                    // The time of a discarded record counts for its successors; 1 means none,
                    // because 0 marks the end.
                    self.advance(if delta == 1 { 0 } else { delta })?;
                }
                _ => {
                    let time = u64::from(self.order.u32(self.rest, 4)?) << 27 | delta;
                    self.take(8, 0)?;
                    match kind {
                        30 => self.advance(time)?,
                        _ => self.set(time)?,
                    }
                }
            }
        }
    }

    fn record(&mut self, delta: u64, data: &'a [u8]) -> Option<Record<'a>> {
        self.advance(delta)?;
        Some(Record { time: Nanos(self.now as i64), data, from: data })
    }

    /// Splits off a head and the bytes after it.
    fn take(&mut self, head: usize, length: usize) -> Option<&'a [u8]> {
        let (data, rest) = self.rest.get(head..)?.split_at_checked(length)?;
        self.rest = rest;
        Some(data)
    }

    #[inline]
    fn advance(&mut self, delta: u64) -> Option<()> {
        // The sum of a time in range and a delta of 59 bits fits into 64 bits.
        let now = self.now.wrapping_add(delta);
        if now > LATEST {
            return None;
        }
        self.now = now;
        Some(())
    }

    /// Sets an absolute time, whose upper bits are those of the page, if any; it never goes back.
    fn set(&mut self, time: u64) -> Option<()> {
        let upper = self.now & UPPER;
        let mut time = time & !UPPER | upper;
        if upper != 0 && time < self.now {
            time = time.checked_add(1 << 59)?;
        }
        self.now = Some(time).filter(|&time| time >= self.now && nanos(time).is_some())?;
        Some(())
    }
}

impl<'a> Page<'a> {
    /// Next record of any kind; notes the end of the page.
    #[inline(never)]
    fn other(&mut self) -> Option<Record<'a>> {
        let record = self.step();
        if record.is_none() && !self.rest.is_empty() {
            self.cut = true;
            self.rest = &[];
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{RingItem, Writer};
    use super::*;
    use proptest::prelude::*;

    fn read(writer: Writer, bytes: &[u8]) -> (Vec<(i64, Vec<u8>)>, Page<'_>) {
        let mut page = Page::open(&writer.layout(), writer.order, bytes).unwrap();
        let mut records = Vec::new();
        page.each(|record| records.push((record.time.0, record.data.to_vec())));
        (records, page)
    }

    const WRITERS: [(bool, usize, usize); 4] =
        [(false, 8, 4096), (true, 8, 4096), (false, 4, 4096), (true, 4, 65536)];

    #[test]
    fn times_add_up_and_padding_is_passed_over() {
        for (big, long, size) in WRITERS {
            let writer = Writer::new(big, long, size);
            let items = [
                RingItem::Data(5, vec![1; 8]),
                RingItem::Extend(1 << 40),
                RingItem::Data(7, vec![2; 200]),
                RingItem::Gone(1, 12),
                RingItem::Gone(100, 8),
                RingItem::Stamp(5 << 40),
                RingItem::Long(3, vec![3; 12]),
                RingItem::Empty,
                RingItem::Data(9, vec![4; 8]),
            ];
            let (bytes, count) = writer.page(1000, &items, None);
            assert_eq!(count, items.len());
            let (records, page) = read(writer, &bytes);
            let times: Vec<_> = records.iter().map(|record| record.0).collect();
            assert_eq!(times, [1005, 1012 + (1 << 40), (5 << 40) + 3]);
            let lengths: Vec<_> = records.iter().map(|record| record.1.len()).collect();
            assert_eq!((lengths, page.cut, page.lost), (vec![8, 200, 12], false, Lost::Nothing));
        }
    }

    #[test]
    fn lost_records_have_their_number_where_there_was_room() {
        for (big, long, size) in WRITERS {
            let writer = Writer::new(big, long, size);
            for (lost, expected) in
                [(None, Lost::Nothing), (Some(None), Lost::Some), (Some(Some(77)), Lost::Records(77))]
            {
                let (bytes, _) = writer.page(1, &[RingItem::Data(1, vec![0; 8])], lost);
                let (records, page) = read(writer, &bytes);
                assert_eq!((records.len(), page.lost, page.cut), (1, expected, false));
            }
        }
    }

    #[test]
    fn an_absolute_time_takes_the_upper_bits_of_the_page() {
        let writer = Writer::new(false, 8, 4096);
        let start = (1 << 59) + 500;
        let (bytes, _) = writer.page(start, &[RingItem::Stamp(700), RingItem::Data(1, vec![0; 8])], None);
        assert_eq!(read(writer, &bytes).0[0].0, (1 << 59) + 701);
        let (bytes, _) = writer.page(start, &[RingItem::Stamp(400), RingItem::Data(1, vec![0; 8])], None);
        assert_eq!(read(writer, &bytes).0[0].0, (2 << 59) + 401);
        let (bytes, _) = writer.page(500, &[RingItem::Stamp(400), RingItem::Data(1, vec![0; 8])], None);
        let (records, page) = read(writer, &bytes);
        assert!(records.is_empty() && page.cut, "time went back");
    }

    #[test]
    fn a_page_that_ends_early_is_reported() {
        let writer = Writer::new(false, 8, 4096);
        let (bytes, _) =
            writer.page(1, &[RingItem::Data(1, vec![0; 8]), RingItem::Data(1, vec![0; 8])], None);
        for (length, records) in [(40, 2), (39, 1), (28, 1), (27, 0), (16, 0)] {
            let (found, page) = read(writer, &bytes[..length]);
            assert_eq!((found.len(), page.cut), (records, length < 40), "{length} bytes");
        }
        assert!(Page::open(&writer.layout(), writer.order, &bytes[..15]).is_none());
    }

    fn item() -> impl Strategy<Value = RingItem> {
        let delta = 2u32..1 << 27;
        prop_oneof![
            4 => (delta.clone(), proptest::collection::vec(any::<u8>(), 0..300))
                .prop_map(|(delta, data)| RingItem::Data(delta, data)),
            1 => (delta.clone(), proptest::collection::vec(any::<u8>(), 0..300))
                .prop_map(|(delta, data)| RingItem::Long(delta, data)),
            1 => (delta, 0usize..100).prop_map(|(delta, length)| RingItem::Gone(delta, length)),
            1 => (0u64..1 << 50).prop_map(RingItem::Extend),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            which in 0usize..4, start in 0u64..1 << 60, items in proptest::collection::vec(item(), 0..60),
        ) {
            let (big, long, size) = WRITERS[which];
            let writer = Writer::new(big, long, size);
            let (bytes, taken) = writer.page(start, &items, None);
            let (mut now, mut expected) = (start, Vec::new());
            for item in &items[..taken] {
                match item {
                    RingItem::Data(delta, data) | RingItem::Long(delta, data) => {
                        now += u64::from(*delta);
                        let mut data = data.clone();
                        data.resize(data.len().next_multiple_of(4), 0);
                        expected.push((now as i64, data));
                    }
                    RingItem::Gone(delta, _) => now += u64::from(*delta),
                    RingItem::Extend(delta) => now += delta,
                    RingItem::Stamp(_) | RingItem::Empty => {}
                }
            }
            let (records, page) = read(writer, &bytes);
            prop_assert_eq!(records, expected);
            prop_assert!(!page.cut);
        }

        #[test]
        fn damage_is_bounded_and_time_advances(
            which in 0usize..4, items in proptest::collection::vec(item(), 0..60),
            damage in proptest::collection::vec((0usize..65536, any::<u8>()), 0..20), cut in 0usize..65536,
        ) {
            let (big, long, size) = WRITERS[which];
            let writer = Writer::new(big, long, size);
            let (mut bytes, _) = writer.page(1 << 50, &items, None);
            for (at, byte) in damage {
                bytes[at % size] = byte;
            }
            bytes.truncate(cut.max(16));
            // A header without a valid time is not a page.
            prop_assume!(Page::open(&writer.layout(), writer.order, &bytes).is_some());
            let (records, page) = read(writer, &bytes);
            prop_assert!(records.len() <= bytes.len() / 4);
            prop_assert!(records.iter().map(|record| record.1.len()).sum::<usize>() <= bytes.len());
            let times: Vec<_> = records.iter().map(|record| record.0).collect();
            prop_assert!(times.is_sorted() && times.iter().all(|&time| time >= page.start.0));
        }

        #[test]
        fn any_bytes_do(bytes in proptest::collection::vec(any::<u8>(), 0..300), which in 0usize..4) {
            let (big, long, size) = WRITERS[which];
            let writer = Writer::new(big, long, size);
            if let Some(mut page) = Page::open(&writer.layout(), writer.order, &bytes) {
                let mut count = 0;
                page.each(|_| count += 1);
                prop_assert!(count <= bytes.len());
            }
        }
    }
}
