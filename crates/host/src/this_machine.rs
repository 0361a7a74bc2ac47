//! Addresses of this machine: data for them leaves it on no network.

use std::net::IpAddr;

/// True if the host of an address is this machine.
pub fn is_this_machine(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_only_look_like_this_machine_are_others() {
        for host in ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["", "localhost.example", "127.0.0.1.example", "10.0.0.1", "[::1", "::2", "0.0.0.0"] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
