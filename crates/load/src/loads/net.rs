//! `net`: packets over the loopback device.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};

use super::SECOND;
use crate::load::{Count, Load, LoadSize, LoadTask, Needs};
use host::work::{Figure, fork_task, watch_tasks};

pub const LOAD: Load = Load {
    name: "net",
    title: "sends packets over the loopback device",
    doc: "In each pair one process sends UDP packets to 127.0.0.1 and another receives them: the network's \
          softirqs, socket buffers, and fragments if a packet with its headers is larger than 64 KiB. \
          Packets that the receiver dropped are not counted. No network card is involved.",
    count: Count { what: "pairs", default: Some(1) },
    size: Some(LoadSize { what: "bytes of a packet", default: 1400, least: 1, most: 65_507 }),
    keys: &[],
    unit: "packets",
    paced: true,
    chunk: |_| 1,
    window: SECOND,
    figure: Figure::LoopbackPackets,
    needs: |_| Needs { memory: 6 << 20, disk: 0, tasks: 3 },
    run,
};

fn run(work: &mut LoadTask) -> io::Result<Infallible> {
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    sender.connect(receiver.local_addr()?)?;
    let packet = vec![0; work.size()];
    // It fails here if there is no loopback device.
    sender.send(&packet)?;
    let counter = work.counter;
    fork_task(counter, || {
        let mut buffer = packet.clone();
        loop {
            receiver.recv(&mut buffer)?;
            counter.add(1);
        }
    })?;
    fork_task(counter, || {
        work.start_pace();
        loop {
            match sender.send(&packet) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock && !is_full(&error) => {
                    return Err(error);
                }
                _ => work.hold_back(1),
            }
        }
    })?;
    work.begin()?;
    watch_tasks(2, counter)
}

/// True for ENOBUFS: the receiver is behind.
fn is_full(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}
