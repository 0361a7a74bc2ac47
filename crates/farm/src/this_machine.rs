//! Which addresses are this machine's: what goes there leaves it on no network.

use std::net::IpAddr;

/// Whether a host in an address is this machine.
pub fn is_this_machine(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
