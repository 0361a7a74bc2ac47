//! Time stamps of packets in the control data of a message (the kernel's
//! Documentation/networking/timestamping.rst).

#![allow(unsafe_code)]

use model::units::Nanos;

/// SO_TIMESTAMPING_NEW, whose stamps have 64 bits on every machine.
pub const OPTION: libc::c_int = 65;

const SEND_HARDWARE: u32 = 1;
const SEND_SOFTWARE: u32 = 1 << 1;
const RECEIVE_HARDWARE: u32 = 1 << 2;
const RECEIVE_SOFTWARE: u32 = 1 << 3;
const SOFTWARE: u32 = 1 << 4;
const RAW_HARDWARE: u32 = 1 << 6;
/// Number each sent packet from 0.
const NUMBERED: u32 = 1 << 7;
/// Return the stamp of a sent packet without its content.
const STAMP_ONLY: u32 = 1 << 11;

/// Flags for stamps by the kernel when it hands a packet to the driver and takes it from there.
pub const BY_KERNEL: u32 = SEND_SOFTWARE | RECEIVE_SOFTWARE | SOFTWARE | NUMBERED | STAMP_ONLY;

/// Flags for stamps by the network card, in the time of its clock.
pub const BY_HARDWARE: u32 = SEND_HARDWARE | RECEIVE_HARDWARE | RAW_HARDWARE | NUMBERED | STAMP_ONLY;

/// Room for control data: stamps and the report of a sent packet.
pub const ROOM: usize = 256;

/// Aligned room for control data.
#[repr(align(8))]
pub struct ControlRoom(pub [u8; ROOM]);

/// Control data of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlData {
    /// Stamp by the kernel, in CLOCK_REALTIME.
    pub software: Option<Nanos>,
    /// Stamp by the network card.
    pub hardware: Option<Nanos>,
    /// Number of the sent packet that the stamp is of.
    pub number: Option<u32>,
}

/// Reads the control data that a call has filled in.
pub fn read(message: &libc::msghdr) -> ControlData {
    let mut control = ControlData::default();
    // SAFETY: the kernel has written the control data of the message, whose buffer lives.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: the macros return a header within the buffer, or none.
        let (kind, length, data) = unsafe {
            let of = &*header;
            let empty = libc::CMSG_LEN(0) as usize;
            let length = (of.cmsg_len as usize).saturating_sub(empty);
            ((of.cmsg_level, of.cmsg_type), length, libc::CMSG_DATA(header))
        };
        // SAFETY: the kernel has written `length` bytes from there.
        let bytes = unsafe { std::slice::from_raw_parts(data, length) };
        match kind {
            (libc::SOL_SOCKET, OPTION) => {
                (control.software, control.hardware) = (stamp_at(bytes, 0), stamp_at(bytes, 2));
            }
            (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR) => {
                control.number = number_of(bytes);
            }
            _ => {}
        }
        // SAFETY: as above.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    control
}

/// Stamp number `at` of the three; zeros mean that there is none.
fn stamp_at(bytes: &[u8], at: usize) -> Option<Nanos> {
    let word = |from: usize| Some(i64::from_ne_bytes(bytes.get(from..from + 8)?.try_into().ok()?));
    let (seconds, nanos) = (word(at * 16)?, word(at * 16 + 8)?);
    let stamp = seconds.checked_mul(Nanos::SECOND.0)?.checked_add(nanos)?;
    (stamp != 0).then_some(Nanos(stamp))
}

/// `ee_data` of `struct sock_extended_err`, if it reports a time stamp (SO_EE_ORIGIN_TIMESTAMPING).
fn number_of(bytes: &[u8]) -> Option<u32> {
    const TIMESTAMPING: u8 = 4;
    let data = u32::from_ne_bytes(bytes.get(12..16)?.try_into().ok()?);
    (bytes.get(4) == Some(&TIMESTAMPING)).then_some(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_and_numbers_are_read_and_bad_ones_are_not() {
        let words = [5i64, 7, 0, 0, i64::MAX, 1];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(stamp_at(&bytes, 0), Some(Nanos(5_000_000_007)));
        assert_eq!((stamp_at(&bytes, 1), stamp_at(&bytes, 2), stamp_at(&bytes, 3)), (None, None, None));
        assert_eq!((stamp_at(&bytes[..9], 0), number_of(&bytes[..9])), (None, None));
        let mut report = [0u8; 16];
        report[12..].copy_from_slice(&9u32.to_ne_bytes());
        assert_eq!(number_of(&report), None);
        report[4] = 4;
        assert_eq!(number_of(&report), Some(9));
    }
}
