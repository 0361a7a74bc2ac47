//! Network interfaces: the one that has an address, and what its driver can stamp.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr;

/// Calls and commands of include/uapi/linux/{sockios,ethtool}.h.
const ETHTOOL: libc::c_ulong = 0x8946;
const STAMPING_STATE: libc::c_ulong = 0x89b1;
const GET_STAMPS: u32 = 0x41;

/// SOF_TIMESTAMPING_TX_HARDWARE, RX_HARDWARE and RAW_HARDWARE.
const ALL: u32 = 1 | 1 << 2 | 1 << 6;

/// State of the hardware time stamps of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HardwareStamps {
    /// The driver has none.
    Missing,
    /// It has them, and they are off, or their state cannot be read.
    Off,
    On,
}

/// `struct ethtool_ts_info`.
#[repr(C)]
#[derive(Default)]
struct StampAbilities {
    command: u32,
    stamps: u32,
    clock: i32,
    send: u32,
    send_reserved: [u32; 3],
    receive: u32,
    receive_reserved: [u32; 3],
}

/// `struct hwtstamp_config`.
#[repr(C)]
#[derive(Default)]
struct StampState {
    flags: i32,
    send: i32,
    receive: i32,
}

/// State of the hardware time stamps of an interface of this network namespace.
pub fn hardware_stamps(interface: &str) -> io::Result<HardwareStamps> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let mut abilities = StampAbilities { command: GET_STAMPS, ..StampAbilities::default() };
    match request(&socket, interface, ETHTOOL, &raw mut abilities) {
        Ok(()) if abilities.stamps & ALL == ALL => {}
        Err(error) if error.raw_os_error() != Some(libc::EOPNOTSUPP) => return Err(error),
        _ => return Ok(HardwareStamps::Missing),
    }
    let mut state = StampState::default();
    let known = request(&socket, interface, STAMPING_STATE, &raw mut state).is_ok();
    let on = known && state.send != 0 && state.receive != 0;
    Ok(if on { HardwareStamps::On } else { HardwareStamps::Off })
}

/// Makes a call about an interface that fills in `answer`.
fn request<T>(socket: &UdpSocket, interface: &str, call: libc::c_ulong, answer: *mut T) -> io::Result<()> {
    // SAFETY: all zeros is a valid request.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // The last byte stays zero.
    let name = interface.bytes().take(libc::IFNAMSIZ - 1);
    request.ifr_name.iter_mut().zip(name).for_each(|(to, from)| *to = from as libc::c_char);
    request.ifr_ifru.ifru_data = answer.cast();
    // SAFETY: the kernel writes the structure that belongs to the call, which `answer` points to.
    match unsafe { libc::ioctl(socket.as_raw_fd(), call as _, &raw mut request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Name of the interface of this network namespace that has an address.
pub fn interface_of(address: IpAddr) -> io::Result<Option<String>> {
    let mut first: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: the call writes a list, or an error.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut entry, mut found) = (first, None);
    while !entry.is_null() && found.is_none() {
        // SAFETY: each entry of the list is valid until it is freed.
        let of = unsafe { &*entry };
        // SAFETY: an address, if there is one, has the structure of its family.
        if unsafe { address_at(of.ifa_addr) } == Some(address) {
            // SAFETY: the name ends with a zero byte.
            let name = unsafe { CStr::from_ptr(of.ifa_name) };
            found = Some(name.to_string_lossy().into_owned());
        }
        entry = of.ifa_next;
    }
    // SAFETY: the list of the call above, which nothing refers to any more.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// # Safety
/// A pointer to the structure of the address's family, or none.
unsafe fn address_at(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: the caller gives a pointer to a structure that begins with its family, which decides
    // on the rest.
    unsafe {
        match i32::from((*address).sa_family) {
            libc::AF_INET => {
                let of = address.cast::<libc::sockaddr_in>().read_unaligned();
                Some(Ipv4Addr::from(of.sin_addr.s_addr.to_ne_bytes()).into())
            }
            libc::AF_INET6 => {
                let of = address.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(Ipv6Addr::from(of.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_has_its_address_and_no_hardware_stamps() {
        let name = interface_of(Ipv4Addr::LOCALHOST.into()).unwrap();
        if let Some(name) = name {
            assert_eq!(hardware_stamps(&name).unwrap(), HardwareStamps::Missing);
        }
        assert_eq!(interface_of(Ipv4Addr::new(192, 0, 2, 77).into()).unwrap(), None);
        assert!(hardware_stamps("none-such").is_err());
    }
}
