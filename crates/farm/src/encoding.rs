//! Histograms and maxima of several CPUs as one blob of the store.
//!
//! The first byte is the number of the layout, so that there can be another; then LEB128 numbers
//! (DWARF 5, section 7.6) and the bytes of `model::rows`. Total: any bytes are a value or a
//! refusal.

use model::rows::RowCounts;
use model::units::{Cpu, Nanos};

use crate::records::{CpuRows, SlotPeak};

const LAYOUT: u8 = 1;

/// No machine has more CPUs.
const MOST_CPUS: usize = 1 << 16;

/// The histograms of CPUs.
pub fn pack_rows(cpus: &[CpuRows]) -> Vec<u8> {
    let mut bytes = vec![LAYOUT];
    for one in cpus {
        let rows = one.rows.bytes();
        varint(&mut bytes, u64::from(one.cpu.0));
        varint(&mut bytes, rows.len() as u64);
        bytes.extend_from_slice(rows);
    }
    bytes
}

/// Decodes such a blob; `None` if it is invalid.
pub fn unpack_rows(bytes: &[u8]) -> Option<Vec<CpuRows>> {
    let mut left = bytes.strip_prefix(&[LAYOUT])?;
    let mut cpus = Vec::new();
    while !left.is_empty() && cpus.len() < MOST_CPUS {
        let cpu = Cpu(u32::try_from(take(&mut left)?).ok()?);
        let length = usize::try_from(take(&mut left)?).ok()?;
        let (rows, rest) = left.split_at_checked(length)?;
        cpus.push(CpuRows { cpu, rows: RowCounts::of_bytes(rows).ok()? });
        left = rest;
    }
    left.is_empty().then_some(cpus)
}

/// The maxima of CPUs.
pub fn pack_peaks(cpus: &[SlotPeak]) -> Vec<u8> {
    let mut bytes = vec![LAYOUT];
    for one in cpus {
        varint(&mut bytes, u64::from(one.cpu.0));
        varint(&mut bytes, one.n);
        varint(&mut bytes, one.missed);
        for value in [one.max_ns.map(|max| max.0), one.max_at] {
            varint(&mut bytes, value.map_or(0, |value| zigzag(value).saturating_add(1)));
        }
    }
    bytes
}

/// The same, read.
pub fn unpack_peaks(bytes: &[u8]) -> Option<Vec<SlotPeak>> {
    let mut left = bytes.strip_prefix(&[LAYOUT])?;
    let mut cpus = Vec::new();
    while !left.is_empty() && cpus.len() < MOST_CPUS {
        let cpu = Cpu(u32::try_from(take(&mut left)?).ok()?);
        let (n, missed) = (take(&mut left)?, take(&mut left)?);
        let value = |left: &mut &[u8]| Some(take(left)?.checked_sub(1).map(straight));
        let (max_ns, max_at) = (value(&mut left)?.map(Nanos), value(&mut left)?);
        cpus.push(SlotPeak { cpu, n, missed, max_ns, max_at });
    }
    left.is_empty().then_some(cpus)
}

/// Small numbers of either sign are small.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn straight(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Appends a number, seven bits a byte, the lowest first.
fn varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(left: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = left.split_first()?;
        *left = rest;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            return None;
        }
        number |= part << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_is_read_again(
            cpus in prop::collection::vec((0u32..4096, prop::collection::vec((0usize..1800, 1u64..1 << 40),
                0..50)), 0..9),
            peaks in prop::collection::vec((0u32..4096, any::<u64>(), any::<u64>(), any::<Option<i32>>(),
                any::<Option<i32>>()), 0..9),
        ) {
            let cpus: Vec<CpuRows> =
                cpus.into_iter().map(|(cpu, rows)| CpuRows { cpu: Cpu(cpu), rows: RowCounts::of_rows(rows)
                    }).collect();
            prop_assert_eq!(unpack_rows(&pack_rows(&cpus)), Some(cpus));
            let wide = |value: Option<i32>| value.map(|value| i64::from(value) << 30);
            let peaks: Vec<SlotPeak> = peaks
                .into_iter()
                .map(|(cpu, n, missed, max, at)| SlotPeak { cpu: Cpu(cpu), n, missed, max_ns:
                    wide(max).map(Nanos), max_at: wide(at) })
                .collect();
            prop_assert_eq!(unpack_peaks(&pack_peaks(&peaks)), Some(peaks));
        }

        #[test]
        fn any_bytes_are_a_value_or_a_refusal(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (unpack_rows(&bytes), unpack_peaks(&bytes));
            bytes.insert(0, LAYOUT);
            let _ = (unpack_rows(&bytes), unpack_peaks(&bytes));
        }
    }
}
