//! UDP sockets with the kernel's time stamps, and pairs of them in two network namespaces.

mod interface;
mod link;
mod link_message;
mod stamps;
mod udp;

pub use interface::{HardwareStamps, hardware_stamps, interface_of};
pub use link::veth_pairs;
pub use udp::{ReceivedPacket, StampSource, UdpEnd, loopback_pairs, peer_end, resolve};
