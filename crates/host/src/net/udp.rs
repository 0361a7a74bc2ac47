//! UDP sockets of `probe net`.

#![allow(unsafe_code)]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use super::stamps::{self, BY_HARDWARE, BY_KERNEL, ControlData, ControlRoom, ROOM};
use model::units::Nanos;

/// Source of the time stamps of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampSource {
    Kernel,
    Hardware,
}

/// A socket of a pair.
pub struct UdpEnd {
    socket: UdpSocket,
    stamped: Option<StampSource>,
}

/// A packet that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedPacket {
    pub length: usize,
    /// Its time stamp; that of the kernel is in CLOCK_REALTIME.
    pub stamp: Option<Nanos>,
}

impl UdpEnd {
    /// A socket with this address.
    pub fn bound(address: SocketAddr) -> io::Result<UdpEnd> {
        Ok(UdpEnd { socket: UdpSocket::bind(address)?, stamped: None })
    }

    /// Sends to this address only, and receives from there only.
    pub fn connect(&self, to: SocketAddr) -> io::Result<()> {
        self.socket.connect(to)
    }

    /// Its own address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Longest time for which a call waits for a packet.
    pub fn set_time_limit(&self, limit: Nanos) -> io::Result<()> {
        self.socket.set_read_timeout(Some(Duration::from_nanos(limit.0.max(1) as u64)))
    }

    /// Requests time stamps of sent and received packets; the packets sent from now on are numbered
    /// from 0.
    pub fn stamp(&mut self, by: StampSource) -> io::Result<()> {
        let flags = if by == StampSource::Kernel { BY_KERNEL } else { BY_HARDWARE };
        self.set_option(stamps::OPTION, flags)?;
        self.stamped = Some(by);
        Ok(())
    }

    /// Lets a call that waits for a packet poll the device for that time (SO_BUSY_POLL).
    pub fn busy_poll(&self, time: Nanos) -> io::Result<()> {
        self.set_option(libc::SO_BUSY_POLL, (time.0 / Nanos::MICRO.0).clamp(1, 1_000_000) as u32)
    }

    fn set_option(&self, option: libc::c_int, value: u32) -> io::Result<()> {
        let (socket, size) = (self.socket.as_raw_fd(), size_of::<u32>() as libc::socklen_t);
        let value: *const u32 = &value;
        // SAFETY: the kernel reads a value of that size.
        match unsafe { libc::setsockopt(socket, libc::SOL_SOCKET, option, value.cast(), size) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Sends a packet to the address that it is connected to.
    #[inline(always)]
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.socket.send(packet).map(drop)
    }

    /// Receives a packet.
    ///
    /// # Errors
    /// `WouldBlock` after the time limit, `Interrupted` by a signal.
    #[inline(always)]
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<ReceivedPacket> {
        let (length, control) = self.message(buffer, 0)?;
        Ok(ReceivedPacket { length, stamp: self.of_source(&control) })
    }

    /// Stamp of the sent packet with that number, if it has come; older ones are dropped.
    pub fn sent_stamp(&self, number: u32) -> Option<Nanos> {
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        let mut found = None;
        while let Ok((_, control)) = self.message(&mut [0; 8], flags) {
            if control.number == Some(number) {
                found = self.of_source(&control);
            }
        }
        found
    }

    fn of_source(&self, control: &ControlData) -> Option<Nanos> {
        match self.stamped {
            Some(StampSource::Kernel) => control.software,
            Some(StampSource::Hardware) => control.hardware,
            None => None,
        }
    }

    fn message(&self, buffer: &mut [u8], flags: libc::c_int) -> io::Result<(usize, ControlData)> {
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let mut room = ControlRoom([0; ROOM]);
        // SAFETY: all zeros is a valid message without an address.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = room.0.as_mut_ptr().cast();
        message.msg_controllen = ROOM as _;
        // SAFETY: the kernel writes within the two buffers, whose lengths the message states.
        let length = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, flags) };
        match usize::try_from(length) {
            Ok(length) => Ok((length, stamps::read(&message))),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    /// Waits for a packet and returns it to its sender if it is one that is answered; true if it
    /// was.
    pub fn answer(&self, buffer: &mut [u8], is_answered: impl Fn(&[u8]) -> bool) -> io::Result<bool> {
        let (length, sender) = self.socket.recv_from(buffer)?;
        let packet = &buffer[..length];
        if !is_answered(packet) {
            return Ok(false);
        }
        self.socket.send_to(packet, sender).map(|_| true)
    }
}

/// Pairs of sockets that are connected by the loopback device.
pub fn loopback_pairs(count: usize) -> io::Result<Vec<(UdpEnd, UdpEnd)>> {
    let pair = |_| {
        let answering = UdpEnd::bound((Ipv4Addr::LOCALHOST, 0).into())?;
        let sending = UdpEnd::bound((Ipv4Addr::LOCALHOST, 0).into())?;
        sending.connect(answering.address()?)?;
        Ok((sending, answering))
    };
    (0..count).map(pair).collect()
}

/// Socket that sends to a peer.
pub fn peer_end(peer: SocketAddr) -> io::Result<UdpEnd> {
    let any: IpAddr =
        if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let end = UdpEnd::bound((any, 0).into())?;
    end.connect(peer)?;
    Ok(end)
}

/// Address of `HOST`, `HOST:PORT`, `ADDRESS` or `[ADDRESS]:PORT`.
pub fn resolve(text: &str, port: u16) -> io::Result<SocketAddr> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok((address, port).into());
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(Ok(address)) = bare.map(str::parse::<IpAddr>) {
        return Ok((address, port).into());
    }
    let has_port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let mut found = if has_port { text.to_socket_addrs()? } else { (text, port).to_socket_addrs()? };
    found.next().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_answered_and_stamped() {
        let mut pairs = loopback_pairs(1).unwrap();
        let (sending, answering) = &mut pairs[0];
        for end in [&*sending, &*answering] {
            end.set_time_limit(Nanos::SECOND).unwrap();
        }
        let stamps = sending.stamp(StampSource::Kernel).is_ok();
        let mut buffer = [0; 32];
        for number in 0..3 {
            sending.send(b"ask").unwrap();
            assert!(answering.answer(&mut buffer, |bytes| bytes.starts_with(b"ask")).unwrap());
            let received = sending.receive(&mut buffer).unwrap();
            assert_eq!(received.length, 3);
            let sent = sending.sent_stamp(number);
            if let (true, Some(sent), Some(stamp)) = (stamps, sent, received.stamp) {
                assert!(sent <= stamp && sent.0 > 1_600_000_000 * Nanos::SECOND.0);
            }
        }
        sending.send(b"other").unwrap();
        assert!(!answering.answer(&mut buffer, |bytes| bytes.starts_with(b"ask")).unwrap());
        sending.set_time_limit(Nanos::MILLI).unwrap();
        assert_eq!(sending.receive(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(sending.sent_stamp(99), None);
    }

    #[test]
    fn an_address_has_a_port_or_gets_one() {
        let of = |text: &str| resolve(text, 9).map(|address| address.to_string()).ok();
        assert_eq!(of("127.0.0.1").as_deref(), Some("127.0.0.1:9"));
        assert_eq!(of("127.0.0.1:7").as_deref(), Some("127.0.0.1:7"));
        assert_eq!(of("::1").as_deref(), Some("[::1]:9"));
        assert_eq!((of("[::1]").as_deref(), of("[::1]:7").as_deref()), (Some("[::1]:9"), Some("[::1]:7")));
        assert_eq!((of(""), of("127.0.0.1:x")), (None, None));
    }
}
