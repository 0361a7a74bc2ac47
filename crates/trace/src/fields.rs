//! A record's fields by their place in a list of names: found once in the format, then read at an
//! offset.
//!
//! Source: Documentation/trace/events.rst; `__data_loc` and `__rel_loc` in include/trace/stages/.

use super::byte_order::ByteOrder;
use super::event::Address;
use super::fixed_str::FixedStr;
use super::format::{Field, Format, Place};
use model::units::{CPU_LIMIT, Cpu, CpuSet};

/// Fields that an event may have.
pub const MAX_FIELDS: usize = 8;

/// The fields of one event by their number; absent ones have no place in any record.
pub type FieldSlots = [Slot; MAX_FIELDS];

/// No record is as long, and eight more bytes are within any number.
const NOWHERE: u32 = u32::MAX / 2;

/// A field of one format, found. Where it can be read at once depends on the machine as well, and
/// is asked here, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    offset: u32,
    size: u32,
    /// Place of the eight bytes that end with a little-endian number: one load, whatever its size.
    word: u32,
    /// Place of a little-endian number of four bytes with a sign.
    four: u32,
    /// Place of bytes in the record's fixed part.
    fixed: u32,
    /// The bits of a word of eight bytes that are not the number's.
    shift: u8,
    place: Place,
    /// The highest bit of a number with a sign, else 0.
    sign: u64,
}

impl Slot {
    pub const ABSENT: Slot = Slot {
        offset: NOWHERE,
        size: 0,
        word: NOWHERE,
        four: NOWHERE,
        fixed: NOWHERE,
        shift: 0,
        place: Place::Inside,
        sign: 0,
    };

    /// The field of that name.
    pub fn find(format: &Format, name: &str, order: ByteOrder) -> Option<Slot> {
        let &Field { offset, size, signed, place, .. } = format.field(name)?;
        Slot::new(offset, size, signed, place, order)
    }

    fn new(offset: usize, size: usize, signed: bool, place: Place, order: ByteOrder) -> Option<Slot> {
        let (from, length) = (u32::try_from(offset).ok()?, u32::try_from(size).ok()?);
        let end = from.checked_add(length).filter(|&end| end < NOWHERE)?;
        let fixed = if place == Place::Inside { from } else { NOWHERE };
        let slot = Slot { offset: from, size: length, fixed, place, ..Slot::ABSENT };
        if !matches!(size, 1 | 2 | 4 | 8) {
            return Some(slot);
        }
        let little = |at: Option<u32>| at.filter(|_| !order.big).unwrap_or(NOWHERE);
        Some(Slot {
            word: little(end.checked_sub(8)),
            four: little(Some(from).filter(|_| signed && size == 4)),
            shift: 64 - 8 * size as u8,
            sign: if signed { 1 << (8 * size - 1) } else { 0 },
            ..slot
        })
    }

    /// A number of its bits with its sign.
    #[inline]
    fn signed(&self, number: u64) -> i64 {
        (number ^ self.sign).wrapping_sub(self.sign) as i64
    }

    fn end(&self) -> usize {
        self.offset as usize + self.size as usize
    }
}

/// The fields of one record, by their number in the list of names that was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    pub data: &'a [u8],
    pub slots: &'a FieldSlots,
    /// How the numbers are written.
    pub order: ByteOrder,
    /// Where the kernel's text begins (`_stext`), or 0 where it is not known.
    pub text: Address,
}

impl<'a> Fields<'a> {
    /// A number of any size and sign.
    #[inline]
    pub fn int(&self, n: usize) -> Option<i64> {
        let slot = &self.slots[n];
        match self.fixed(slot.word) {
            Some(word) => Some(slot.signed(u64::from_le_bytes(*word) >> slot.shift)),
            None => self.other_int(slot),
        }
    }

    /// So many bytes at a place.
    #[inline]
    fn fixed<const L: usize>(&self, at: u32) -> Option<&'a [u8; L]> {
        let at = at as usize;
        self.data.get(at..at + L)?.first_chunk()
    }

    /// A number of a big-endian machine, or at the very begin of a record.
    #[cold]
    fn other_int(&self, slot: &Slot) -> Option<i64> {
        let bytes = self.data.get(slot.offset as usize..slot.end())?;
        let mut word = [0; 8];
        let whole = word.get_mut(..bytes.len()).filter(|_| matches!(bytes.len(), 1 | 2 | 4 | 8))?;
        whole.copy_from_slice(bytes);
        let number =
            if self.order.big { u64::from_be_bytes(word) >> slot.shift } else { u64::from_le_bytes(word) };
        Some(slot.signed(number))
    }

    /// A number that fits.
    #[inline]
    pub fn small<T: TryFrom<i64>>(&self, n: usize) -> Option<T> {
        T::try_from(self.int(n)?).ok()
    }

    /// A number such as most are: of a thread, or a priority.
    #[inline]
    pub fn i32(&self, n: usize) -> Option<i32> {
        let word = self.fixed(self.slots[n].four);
        word.map_or_else(|| self.small(n), |word| Some(i32::from_le_bytes(*word)))
    }

    /// An address or another number without sign.
    #[inline]
    pub fn address(&self, n: usize) -> Option<Address> {
        let value = self.int(n)? as u64;
        // A pointer that the format calls signed is still one.
        Some(if self.order.long == 4 && self.slots[n].size == 4 { value & 0xffff_ffff } else { value })
    }

    /// The number of a CPU.
    #[inline]
    pub fn cpu(&self, n: usize) -> Option<Cpu> {
        self.small(n).filter(|&cpu| cpu < CPU_LIMIT).map(Cpu)
    }

    /// The bytes of an array or text, wherever they are.
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

    /// The bytes from a field on, up to the first zero or the record's end: a text whose format
    /// gives no size.
    pub fn rest(&self, n: usize) -> Option<&'a [u8]> {
        let from = self.data.get(self.slots[n].offset as usize..)?;
        Some(from.split(|byte| *byte == 0).next().unwrap_or_default())
    }

    #[inline]
    pub fn text<const L: usize>(&self, n: usize) -> Option<FixedStr<L>> {
        match self.fixed::<L>(self.slots[n].fixed).filter(|_| self.slots[n].size as usize >= L) {
            Some(whole) => Some(FixedStr::new(whole)),
            None => self.bytes(n).map(FixedStr::new),
        }
    }

    /// An element of an array of `long`.
    pub fn element(&self, n: usize, at: usize) -> Option<u64> {
        self.order.long(self.bytes(n)?, at * self.order.long)
    }

    /// A mask of CPUs: a bit map in longs.
    pub fn cpus(&self, n: usize) -> Option<CpuSet> {
        let bytes = self.bytes(n)?;
        let bits = 8 * self.order.long;
        let longs = (bytes.len() / self.order.long).min(CPU_LIMIT as usize / bits);
        let word = |at: usize| self.order.long(bytes, at * self.order.long).unwrap_or(0);
        let set = (0..longs * bits).filter(|bit| word(bit / bits) >> (bit % bits) & 1 != 0);
        Some(set.map(|bit| Cpu(bit as u32)).collect())
    }

    /// Up to this number of addresses from a field on, up to the record's end: a stack, whose
    /// format gives no true size.
    pub fn frames(&self, n: usize, count: usize) -> Option<Vec<Address>> {
        let from = self.data.get(self.slots[n].offset as usize..)?;
        let longs = from.chunks_exact(self.order.long).take(count);
        Some(longs.map(|long| self.order.long(long, 0).unwrap_or(0)).collect())
    }

    /// The place in the kernel's text that a field gives as an offset from its own start.
    pub fn in_text(&self, n: usize) -> Option<Address> {
        Some(self.text.wrapping_add_signed(self.int(n)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: ByteOrder = ByteOrder { big: false, long: 8 };

    fn slot(offset: usize, size: usize, signed: bool, place: Place) -> Slot {
        Slot::new(offset, size, signed, place, LITTLE).unwrap()
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
        let fields = Fields { data: &data, slots: &slots, order: LITTLE, text: 0x1000 };
        assert_eq!((fields.int(0), fields.int(1)), (Some(-1), Some(0xffff_ffff)));
        assert_eq!((fields.small::<u8>(1), fields.small::<i32>(0), fields.cpu(0)), (None, Some(-1), None));
        assert_eq!(fields.text::<24>(2), Some("eth0".into()));
        assert_eq!(fields.bytes(3).map(<[u8]>::len), Some(9));
        assert_eq!((fields.int(4), fields.int(5), fields.int(6), fields.int(7)), (None, None, None, None));
        assert_eq!(fields.in_text(0), Some(0xfff));
        // A number may end with its record.
        for (end, big, wanted) in
            [(20, false, Some(0x0005_0018)), (20, true, Some(0x1800_0500)), (19, false, None)]
        {
            let order = ByteOrder { big, ..LITTLE };
            let data = data.get(..end).unwrap_or_default();
            let slots = [Slot::new(16, 4, false, Place::Inside, order).unwrap(); MAX_FIELDS];
            assert_eq!(Fields { data, slots: &slots, order, ..fields }.int(2), wanted);
        }
        assert_eq!(fields.frames(0, 9).map(|frames| frames.len()), Some(4));
    }

    #[test]
    fn a_mask_is_the_same_in_every_order() {
        let slots = [slot(0, 16, false, Place::Inside); MAX_FIELDS];
        let set = |big, long, data: [u8; 16]| {
            Fields { data: &data, slots: &slots, order: ByteOrder { big, long }, text: 0 }
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
}
