//! Fields of a record, by index in a list of names: looked up once in the format, then read at an
//! offset.
//!
//! Source: Documentation/trace/events.rst; `__data_loc` and `__rel_loc` in include/trace/stages/.

use super::byte_order::ByteOrder;
use super::event::Address;
use super::fixed_str::FixedStr;
use super::format::{Field, Format, Place};
use model::units::{CPU_LIMIT, Cpu, CpuSet};

/// Limit of fields of an event.
pub const MAX_FIELDS: usize = 8;

/// Slots of the fields of one event, by index; absent ones have no place in any record.
pub type FieldSlots = [Slot; MAX_FIELDS];

/// Bytes from the start of a record, and beyond its end if it is short: numbers and names in it are
/// read without a check of the record's length.
pub const WINDOW: usize = 144;

/// Limit of the offset of a field that is read in the window.
const LAST: u8 = 127;

/// Offset of a field that is not in the window.
const NOWHERE: u8 = u8::MAX;

/// Length of a thread's name.
const NAME: usize = 16;

/// Location of a field in a format. The fast ways to read it, which also depend on the machine, are
/// decided here, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    offset: u32,
    size: u32,
    /// Offset in the window of the eight bytes that end with a little-endian number: one load for
    /// any size.
    word: u8,
    /// Bits of that word that do not belong to the number.
    shift: u8,
    /// Offset in the window of a signed little-endian number of four bytes.
    four: u8,
    /// Offset in the window of a name.
    name: u8,
    place: Place,
    /// Highest bit of a signed number, else 0.
    sign: u64,
}

impl Slot {
    pub const ABSENT: Slot = Slot {
        offset: u32::MAX,
        size: 0,
        word: NOWHERE,
        shift: NOWHERE,
        four: NOWHERE,
        name: NOWHERE,
        place: Place::Inside,
        sign: 0,
    };

    /// Slot of the field with this name.
    pub fn find(format: &Format, name: &str, order: ByteOrder) -> Option<Slot> {
        let &Field { offset, size, signed, place, .. } = format.field(name)?;
        let slot = Slot::new(offset, size, signed, place, order)?;
        // A thread name stored elsewhere in the record is copied first.
        let elsewhere = name.ends_with("comm") && slot.name == NOWHERE;
        Some(if elsewhere { Slot { word: NOWHERE, ..slot } } else { slot })
    }

    fn new(offset: usize, size: usize, signed: bool, place: Place, order: ByteOrder) -> Option<Slot> {
        let (from, length) = (u32::try_from(offset).ok()?, u32::try_from(size).ok()?);
        from.checked_add(length)?;
        let within = |at: Option<u32>| {
            at.and_then(|at| u8::try_from(at).ok()).filter(|&at| at <= LAST && !order.big).unwrap_or(NOWHERE)
        };
        let slot = Slot { offset: from, size: length, place, ..Slot::ABSENT };
        if !matches!(size, 1 | 2 | 4 | 8) {
            let name = within(Some(from).filter(|_| place == Place::Inside && size >= NAME));
            return Some(Slot { name, ..slot });
        }
        let word = within((from + length).checked_sub(8));
        Some(Slot {
            word,
            shift: if word == NOWHERE { NOWHERE } else { 64 - 8 * size as u8 },
            four: within(Some(from).filter(|_| signed && size == 4)),
            sign: if signed { 1 << (8 * size - 1) } else { 0 },
            ..slot
        })
    }

    /// Least length of a record for reading this field in a window; none if that is impossible.
    pub fn reach(&self) -> Option<usize> {
        match (self.word, self.name) {
            _ if *self == Slot::ABSENT => Some(0),
            (NOWHERE, NOWHERE) => (self.size == 0).then_some(0),
            (NOWHERE, name) => Some(usize::from(name) + NAME),
            (..) => Some(self.end()),
        }
    }

    /// Sign-extends a number of this size.
    #[inline]
    fn signed(&self, number: u64) -> i64 {
        (number ^ self.sign).wrapping_sub(self.sign) as i64
    }

    fn end(&self) -> usize {
        self.offset as usize + self.size as usize
    }
}

/// Fields of one record, by index in the list of requested names.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    pub data: &'a [u8],
    /// Start of the record, or the window that `apart` fills.
    pub window: &'a [u8; WINDOW],
    pub slots: &'a FieldSlots,
    /// Number format of the machine.
    pub order: ByteOrder,
    /// Address of the kernel's text (`_stext`), or 0 if unknown.
    pub text: Address,
}

impl<'a> Fields<'a> {
    /// Number of any size and sign.
    #[inline]
    pub fn int(&self, n: usize) -> Option<i64> {
        let slot = &self.slots[n];
        let word = u64::from_le_bytes(*self.within(slot.word)?);
        Some(slot.signed(word >> (slot.shift & 63)))
    }

    /// Bytes at an offset in the window.
    #[inline(always)]
    fn within<const L: usize>(&self, at: u8) -> Option<&'a [u8; L]> {
        // Both are within the window, which the compiler can prove.
        (at <= LAST).then(|| self.window[usize::from(at & LAST)..].first_chunk())?
    }

    /// Fills a window with the numbers and names of a record that is too short for one, or has
    /// another number format; returns the slots to read them.
    pub fn apart(&self, window: &mut [u8; WINDOW]) -> FieldSlots {
        let mut slots = *self.slots;
        for (n, slot) in slots.iter_mut().enumerate() {
            (slot.word, slot.four, slot.name) = (NOWHERE, NOWHERE, NOWHERE);
            let at = NAME * n;
            let Some(room) = window.get_mut(at..at + NAME) else { continue };
            match self.number(n) {
                Some(number) => {
                    room[..8].copy_from_slice(&number.to_le_bytes());
                    (slot.word, slot.shift, slot.sign) = (at as u8, 0, 0);
                }
                None => {
                    let Some(name) = self.bytes(n) else { continue };
                    room.iter_mut().zip(name).for_each(|(byte, of)| *byte = *of);
                    slot.name = at as u8;
                }
            }
        }
        slots
    }

    /// Number of any format, anywhere in the record.
    fn number(&self, n: usize) -> Option<i64> {
        let slot = &self.slots[n];
        let bytes = self.data.get(slot.offset as usize..slot.end())?;
        let mut word = [0; 8];
        let number = |size| matches!(size, 1 | 2 | 4 | 8) && slot.place == Place::Inside;
        let whole = word.get_mut(..bytes.len()).filter(|_| number(bytes.len()))?;
        whole.copy_from_slice(bytes);
        let unused = 64 - 8 * bytes.len();
        let number =
            if self.order.big { u64::from_be_bytes(word) >> unused } else { u64::from_le_bytes(word) };
        Some(slot.signed(number))
    }

    /// Number, if it fits the type.
    #[inline]
    pub fn small<T: TryFrom<i64>>(&self, n: usize) -> Option<T> {
        T::try_from(self.int(n)?).ok()
    }

    /// Number of the most common type: a thread ID or a priority.
    #[inline]
    pub fn i32(&self, n: usize) -> Option<i32> {
        let word = self.within(self.slots[n].four);
        word.map_or_else(|| self.small(n), |word| Some(i32::from_le_bytes(*word)))
    }

    /// Address or another unsigned number.
    #[inline]
    pub fn address(&self, n: usize) -> Option<Address> {
        let value = self.int(n)? as u64;
        // A pointer may be declared as signed.
        Some(if self.order.long == 4 && self.slots[n].size == 4 { value & 0xffff_ffff } else { value })
    }

    /// Number of a CPU.
    #[inline]
    pub fn cpu(&self, n: usize) -> Option<Cpu> {
        self.small(n).filter(|&cpu| cpu < CPU_LIMIT).map(Cpu)
    }

    /// Bytes of an array or text, anywhere in the record.
    pub fn bytes(&self, n: usize) -> Option<&'a [u8]> {
        let slot = &self.slots[n];
        if slot.place == Place::Inside {
            return self.data.get(slot.offset as usize..slot.end());
        }
        let word = self.order.u32(self.data, slot.offset as usize)?;
        let (at, length) = ((word & 0xffff) as usize, (word >> 16) as usize);
        let from = if slot.place == Place::RelLoc { slot.end() } else { 0 };
        self.data.get(from + at..)?.get(..length)
    }

    /// Bytes from a field up to the first zero or the end of the record: a text whose format gives
    /// no size.
    pub fn rest(&self, n: usize) -> Option<&'a [u8]> {
        let from = self.data.get(self.slots[n].offset as usize..)?;
        Some(from.split(|byte| *byte == 0).next().unwrap_or_default())
    }

    /// Text, cut after `L - 1` bytes.
    pub fn text<const L: usize>(&self, n: usize) -> Option<FixedStr<L>> {
        self.bytes(n).map(FixedStr::new)
    }

    /// Name of a thread.
    #[inline(always)]
    pub fn comm(&self, n: usize) -> Option<FixedStr<NAME>> {
        self.within::<NAME>(self.slots[n].name).map(|name| FixedStr::new(name))
    }

    /// Element of an array of `long`.
    pub fn element(&self, n: usize, at: usize) -> Option<u64> {
        self.order.long(self.bytes(n)?, at * self.order.long)
    }

    /// Mask of CPUs: a bit map in longs.
    pub fn cpus(&self, n: usize) -> Option<CpuSet> {
        let bytes = self.bytes(n)?;
        let bits = 8 * self.order.long;
        let longs = (bytes.len() / self.order.long).min(CPU_LIMIT as usize / bits);
        let word = |at: usize| self.order.long(bytes, at * self.order.long).unwrap_or(0);
        let set = (0..longs * bits).filter(|bit| word(bit / bits) >> (bit % bits) & 1 != 0);
        Some(set.map(|bit| Cpu(bit as u32)).collect())
    }

    /// Up to this number of addresses from a field to the end of the record: a stack, whose format
    /// gives no true size.
    pub fn frames(&self, n: usize, count: usize) -> Option<Vec<Address>> {
        let from = self.data.get(self.slots[n].offset as usize..)?;
        let longs = from.chunks_exact(self.order.long).take(count);
        Some(longs.map(|long| self.order.long(long, 0).unwrap_or(0)).collect())
    }

    /// Address in the kernel's text that a field gives as an offset from its start.
    pub fn in_text(&self, n: usize) -> Option<Address> {
        Some(self.text.wrapping_add_signed(self.int(n)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LITTLE: ByteOrder = ByteOrder { big: false, long: 8 };

    fn slot(offset: usize, size: usize, signed: bool, place: Place) -> Slot {
        Slot::new(offset, size, signed, place, LITTLE).unwrap()
    }

    const UNREAD: Fields<'_> = Fields {
        data: &[],
        window: &[0; WINDOW],
        slots: &[Slot::ABSENT; MAX_FIELDS],
        order: LITTLE,
        text: 0x1000,
    };

    /// Reads a record that is the end of its data.
    fn apart<T>(fields: &Fields, read: impl Fn(&Fields) -> T) -> T {
        let mut window = [0; WINDOW];
        let slots = fields.apart(&mut window);
        read(&Fields { window: &window, slots: &slots, ..*fields })
    }

    #[test]
    fn numbers_texts_and_masks_are_read_within_the_record() {
        let mut data = vec![0xff; 16];
        data.extend([24, 0, 5, 0, 0, 0, 9, 0]); // data_loc 5 bytes at 24; rel_loc 9 bytes right behind it
        data.extend(b"eth0\0\x05\0\0\0\0\0\0\x80");
        let slots = [
            slot(0, 4, true, Place::Inside),
            slot(0, 4, false, Place::Inside),
            slot(16, 4, false, Place::DataLoc),
            slot(20, 4, false, Place::RelLoc),
            Slot::ABSENT,
            slot(36, 8, true, Place::Inside),
            slot(0, 3, true, Place::Inside),
            Slot::ABSENT,
        ];
        let fields = Fields { data: &data, slots: &slots, ..UNREAD };
        let int = |n| apart(&fields, |fields| fields.int(n));
        assert_eq!((int(0), int(1)), (Some(-1), Some(0xffff_ffff)));
        let small = |fields: &Fields| (fields.small::<u8>(1), fields.small::<i32>(0), fields.cpu(0));
        assert_eq!(apart(&fields, small), (None, Some(-1), None));
        assert_eq!(fields.text::<24>(2), Some("eth0".into()));
        assert_eq!(apart(&fields, |fields| fields.comm(2)), Some("eth0".into()));
        assert_eq!(fields.bytes(3).map(<[u8]>::len), Some(9));
        assert_eq!([int(4), int(5), int(6), int(7)], [None; 4]);
        assert_eq!(apart(&fields, |fields| fields.in_text(0)), Some(0xfff));
        // A number may be the end of its record.
        for (end, big, wanted) in
            [(20, false, Some(0x0005_0018)), (20, true, Some(0x1800_0500)), (19, false, None)]
        {
            let order = ByteOrder { big, ..LITTLE };
            let data = data.get(..end).unwrap_or_default();
            let slots = [Slot::new(16, 4, false, Place::Inside, order).unwrap(); MAX_FIELDS];
            let fields = Fields { data, slots: &slots, order, ..fields };
            assert_eq!(apart(&fields, |fields| fields.int(2)), wanted);
        }
        assert_eq!(fields.frames(0, 9).map(|frames| frames.len()), Some(4));
    }

    #[test]
    fn a_mask_is_the_same_in_every_order() {
        let slots = [slot(0, 16, false, Place::Inside); MAX_FIELDS];
        let set = |big, long, data: [u8; 16]| {
            Fields { data: &data, slots: &slots, order: ByteOrder { big, long }, ..UNREAD }
                .cpus(0)
                .map(|set| set.to_string())
        };
        let mut little = [0; 16];
        (little[0], little[4], little[8]) = (0b101, 1, 2);
        let mut big = [0; 16];
        (big[7], big[3], big[15]) = (0b101, 1, 2);
        let mut narrow = [0; 16];
        (narrow[3], narrow[7], narrow[11]) = (0b101, 1, 2);
        for got in [set(false, 8, little), set(false, 4, little), set(true, 8, big), set(true, 4, narrow)] {
            assert_eq!(got.as_deref(), Some("0,2,32,65"));
        }
    }

    proptest! {
        #[test]
        fn a_record_is_the_same_in_its_window_and_apart(
            data in proptest::collection::vec(any::<u8>(), 2 * WINDOW),
            fields in proptest::collection::vec((8usize..150, 0usize..6, any::<bool>()), MAX_FIELDS),
        ) {
            let slots: Vec<_> = fields
                .into_iter()
                .map(|(offset, size, signed)| slot(offset, [1, 2, 4, 8, 16, 24][size], signed, Place::Inside))
                .collect();
            let slots: FieldSlots = slots.try_into().expect("as many");
            let whole = data.as_slice().first_chunk().expect("as long");
            let fields = Fields { data: &data, window: whole, slots: &slots, ..UNREAD };
            for (n, slot) in slots.iter().enumerate() {
                let read = |fields: &Fields| (fields.int(n), fields.i32(n), fields.comm(n), fields.address(n));
                if slot.reach().is_some_and(|reach| reach <= data.len()) {
                    prop_assert_eq!(read(&fields), apart(&fields, read));
                }
            }
        }
    }
}
