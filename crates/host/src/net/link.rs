//! Pairs of UDP sockets in two network namespaces, joined by a pair of virtual Ethernet devices.
//!
//! The namespaces belong to a thread that ends at once: what keeps them, and the devices in them,
//! are the sockets (network_namespaces(7), veth(4)).

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::thread;

use super::link_message::{new_address, new_veth, outcome, switch_on};
use super::udp::UdpEnd;

/// Devices of the two namespaces.
const VETH: &str = "onbeat0";
const PEER: &str = "onbeat1";

/// Addresses for documentation (RFC 5737), which no machine has.
const OWN_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const PEER_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const PREFIX: u8 = 30;

const STACK: usize = 128 << 10;

/// That many pairs: one socket sends from one namespace, the other answers in the other.
///
/// # Errors
/// EPERM: without CAP_SYS_ADMIN. EOPNOTSUPP: the kernel has no veth. EINVAL, ENOSYS: it has no
/// network namespaces.
pub fn veth_pairs(count: usize) -> io::Result<Vec<(UdpEnd, UdpEnd)>> {
    let maker = thread::Builder::new().name("onbeat/net".into()).stack_size(STACK);
    let made = maker.spawn(move || make(count))?;
    made.join().unwrap_or_else(|_| Err(io::Error::from_raw_os_error(libc::EIO)))
}

fn make(count: usize) -> io::Result<Vec<(UdpEnd, UdpEnd)>> {
    let own = new_namespace()?;
    let peers = new_namespace()?;
    let route = Requests::open()?;
    route.send(&new_veth(PEER, VETH, own.as_raw_fd() as u32))?;
    route.set_up(PEER, PEER_ADDRESS)?;
    let answering = (0..count).map(|_| UdpEnd::bound((PEER_ADDRESS, 0).into()));
    let answering: Vec<UdpEnd> = answering.collect::<io::Result<_>>()?;
    enter(&own)?;
    Requests::open()?.set_up(VETH, OWN_ADDRESS)?;
    let join = |answering: UdpEnd| {
        let sending = UdpEnd::bound((OWN_ADDRESS, 0).into())?;
        sending.connect(answering.address()?)?;
        Ok((sending, answering))
    };
    let pairs = answering.into_iter().map(join).collect();
    drop(peers);
    pairs
}

/// Moves the calling thread to a new network namespace.
fn new_namespace() -> io::Result<File> {
    // SAFETY: it affects the calling thread only, which ends soon.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(io::Error::last_os_error());
    }
    File::open("/proc/thread-self/ns/net")
}

fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: as above; the descriptor is open.
    match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Socket for requests about the devices of the calling thread's namespace.
struct Requests(OwnedFd);

impl Requests {
    fn open() -> io::Result<Requests> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: the call takes numbers only.
        let socket = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and has no other owner.
        Ok(Requests(unsafe { OwnedFd::from_raw_fd(socket) }))
    }

    /// Sends a request and waits for its outcome.
    fn send(&self, message: &[u8]) -> io::Result<()> {
        let socket = self.0.as_raw_fd();
        // SAFETY: the kernel reads that many bytes.
        let sent = unsafe { libc::send(socket, message.as_ptr().cast(), message.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut answer = [0u8; 4096];
        // SAFETY: the kernel writes at most that many bytes.
        let length = unsafe { libc::recv(socket, answer.as_mut_ptr().cast(), answer.len(), 0) };
        let Ok(length) = usize::try_from(length) else { return Err(io::Error::last_os_error()) };
        match outcome(&answer[..length.min(answer.len())]) {
            Some(0) => Ok(()),
            Some(number) => Err(io::Error::from_raw_os_error(number)),
            None => Err(io::Error::from_raw_os_error(libc::EPROTO)),
        }
    }

    fn set_up(&self, device: &str, address: Ipv4Addr) -> io::Result<()> {
        let name = std::ffi::CString::new(device)?;
        // SAFETY: the string ends with a zero byte.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        self.send(&new_address(index, address.octets(), PREFIX))?;
        self.send(&switch_on(index))
    }
}

#[cfg(test)]
mod tests {
    use super::super::udp::ReceivedPacket;
    use super::*;
    use model::units::Nanos;

    #[test]
    fn packets_go_from_one_namespace_to_the_other() {
        let pairs = match veth_pairs(2) {
            Ok(pairs) => pairs,
            Err(error) => {
                // Without the privilege, or in a sandbox, the refusal is all that can be tested.
                assert!(error.raw_os_error().is_some(), "{error}");
                return;
            }
        };
        for (sending, answering) in &pairs {
            sending.set_time_limit(Nanos::SECOND).unwrap();
            answering.set_time_limit(Nanos::SECOND).unwrap();
            sending.send(b"there").unwrap();
            let mut buffer = [0; 16];
            assert!(matches!(answering.answer(&mut buffer, |bytes| bytes == b"there"), Ok(true)));
            let received: ReceivedPacket = sending.receive(&mut buffer).unwrap();
            assert_eq!(&buffer[..received.length], b"there");
        }
    }
}
