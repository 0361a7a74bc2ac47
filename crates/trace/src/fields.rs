//! A record's fields by their place in a list of names: found once in the format, then read at an
//! offset.
//!
//! Source: Documentation/trace/events.rst; `__data_loc` and `__rel_loc` in include/trace/stages/.

use super::byte_order::ByteOrder;
use super::event::Address;
use super::fixed_str::FixedStr;
use super::format::{Field, Format, Place};
use model::units::{CPU_LIMIT, Cpu, CpuSet};

/// A field of one format, found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    offset: u32,
    size: u32,
    /// The bits of a word of 64 that are not the number's; nothing where it is not a number.
    shift: Option<u8>,
    signed: bool,
    place: Place,
}

impl Slot {
    /// The field of that name.
    pub fn find(format: &Format, name: &str) -> Option<Slot> {
        let &Field { offset, size, signed, place, .. } = format.field(name)?;
        Slot::new(offset, size, signed, place)
    }

    fn new(offset: usize, size: usize, signed: bool, place: Place) -> Option<Slot> {
        let shift = matches!(size, 1 | 2 | 4 | 8).then(|| 64 - 8 * size as u8);
        let (offset, size) = (offset.try_into().ok()?, size.try_into().ok()?);
        Some(Slot { offset, size, shift, signed, place })
    }

    fn end(&self) -> usize {
        self.offset as usize + self.size as usize
    }
}

/// The fields of one record, by their number in the list of names that was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    pub data: &'a [u8],
    /// What was found of the list; nothing where this kernel has no such field.
    pub slots: &'a [Option<Slot>],
    /// How the numbers are written.
    pub order: ByteOrder,
    /// Where the kernel's text begins (`_stext`), or 0 where it is not known.
    pub text: Address,
}

impl<'a> Fields<'a> {
    #[inline]
    fn slot(&self, n: usize) -> Option<&'a Slot> {
        self.slots.get(n)?.as_ref()
    }

    /// A number of any size and sign.
    #[inline]
    pub fn int(&self, n: usize) -> Option<i64> {
        let slot = self.slot(n)?;
        let shift = slot.shift?;
        // The eight bytes that end with it: one load, whatever its size.
        let word = match slot.end().checked_sub(8) {
            Some(from) => *self.data.get(from..)?.first_chunk()?,
            None => self.first_word(slot)?,
        };
        let upper = if self.order.big { u64::from_be_bytes(word) << shift } else { u64::from_le_bytes(word) };
        Some(if slot.signed { upper as i64 >> shift } else { (upper >> shift) as i64 })
    }

    /// Eight bytes that end with a field which ends before the eighth byte of its record.
    #[cold]
    fn first_word(&self, slot: &Slot) -> Option<[u8; 8]> {
        let mut word = [0; 8];
        let bytes = self.data.get(..slot.end())?;
        word.get_mut(8 - bytes.len()..)?.copy_from_slice(bytes);
        Some(word)
    }

    /// A number that fits.
    #[inline]
    pub fn small<T: TryFrom<i64>>(&self, n: usize) -> Option<T> {
        T::try_from(self.int(n)?).ok()
    }

    /// An address or another number without sign.
    pub fn address(&self, n: usize) -> Option<Address> {
        let value = self.int(n)? as u64;
        // A pointer that the format calls signed is still one.
        Some(if self.order.long == 4 && self.slot(n)?.size == 4 { value & 0xffff_ffff } else { value })
    }

    /// The number of a CPU.
    #[inline]
    pub fn cpu(&self, n: usize) -> Option<Cpu> {
        self.small(n).filter(|&cpu| cpu < CPU_LIMIT).map(Cpu)
    }

    /// The bytes of an array or text, wherever they are.
    #[inline]
    pub fn bytes(&self, n: usize) -> Option<&'a [u8]> {
        let slot = self.slot(n)?;
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
        let from = self.data.get(self.slot(n)?.offset as usize..)?;
        Some(from.split(|byte| *byte == 0).next().unwrap_or_default())
    }

    #[inline]
    pub fn text<const L: usize>(&self, n: usize) -> Option<FixedStr<L>> {
        self.bytes(n).map(FixedStr::new)
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
        let from = self.data.get(self.slot(n)?.offset as usize..)?;
        let count = count.min(from.len() / self.order.long);
        Some((0..count).filter_map(|at| self.order.long(from, at * self.order.long)).collect())
    }

    /// The place in the kernel's text that a field gives as an offset from its own start.
    pub fn in_text(&self, n: usize) -> Option<Address> {
        Some(self.text.wrapping_add_signed(self.int(n)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(offset: usize, size: usize, signed: bool, place: Place) -> Option<Slot> {
        Slot::new(offset, size, signed, place)
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
            None,
            slot(36, 8, true, Place::Inside),
            slot(0, 3, true, Place::Inside),
        ];
        let order = ByteOrder { big: false, long: 8 };
        let fields = Fields { data: &data, slots: &slots, order, text: 0x1000 };
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
            let data = data.get(..end).unwrap_or_default();
            let fields = Fields { data, order: ByteOrder { big, long: 8 }, ..fields };
            assert_eq!(fields.int(2), wanted);
        }
        assert_eq!(fields.frames(0, 9).map(|frames| frames.len()), Some(4));
    }

    #[test]
    fn a_mask_is_the_same_in_every_order() {
        let slots = [slot(0, 16, false, Place::Inside)];
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
