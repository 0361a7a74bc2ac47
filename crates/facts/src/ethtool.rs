//! Delays of a network card and sleep of its link, as ethtool prints them.
//!
//! Source: ethtool(8), `-c` and `--show-eee`; `struct ethtool_coalesce` and `struct ethtool_eee` in
//! include/uapi/linux/ethtool.h.

/// Delays of the interrupt of received packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coalescing {
    /// True if the driver chooses the delay.
    pub is_adaptive: bool,
    /// Delay of a packet in microseconds; with some drivers small numbers select an algorithm.
    pub rx_usecs: u64,
    /// Number of packets that ends the delay; 0 for none.
    pub rx_frames: u64,
}

/// Parses `ethtool -c NAME`; none without a delay of received packets.
pub fn parse_coalescing(text: &str) -> Option<Coalescing> {
    let is_adaptive = value(text, "Adaptive RX:").is_some_and(|words| words.starts_with("on"));
    let rx_frames = if value(text, "rx-frames:").is_some() { number(text, "rx-frames:")? } else { 0 };
    Some(Coalescing { is_adaptive, rx_usecs: number(text, "rx-usecs:")?, rx_frames })
}

/// Energy-Efficient Ethernet on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eee {
    NotSupported,
    Disabled,
    /// The other end of the link has not agreed.
    Inactive,
    Active,
}

/// Parses `ethtool --show-eee NAME`.
pub fn parse_eee(text: &str) -> Option<Eee> {
    match value(text, "EEE status:")?.split_whitespace().collect::<Vec<_>>()[..] {
        ["not", "supported"] => Some(Eee::NotSupported),
        ["disabled"] => Some(Eee::Disabled),
        ["enabled", "-", "inactive"] => Some(Eee::Inactive),
        ["enabled", "-", "active"] => Some(Eee::Active),
        _ => None,
    }
}

/// A number; 0 for the `n/a` of a driver that lacks it.
fn number(text: &str, name: &str) -> Option<u64> {
    match value(text, name)? {
        "n/a" => Some(0),
        word => word.parse().ok(),
    }
}

fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim().strip_prefix(name)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_ways_of_printing_are_read() {
        let own = "Adaptive RX: off  TX: off\nrx-usecs: 50\nrx-frames: 0\n";
        let expected = Coalescing { is_adaptive: false, rx_usecs: 50, rx_frames: 0 };
        assert_eq!(parse_coalescing(own), Some(expected));
        let printed = "Coalesce parameters for eth0:\nAdaptive RX: on  TX: n/a\nstats-block-usecs:\tn/a\n\n\
                       rx-usecs:\t3\nrx-frames:\tn/a\nrx-usecs-irq:\t9\n";
        let expected = Coalescing { is_adaptive: true, rx_usecs: 3, rx_frames: 0 };
        assert_eq!(parse_coalescing(printed), Some(expected));
        assert_eq!((parse_coalescing("Adaptive RX: on"), parse_coalescing("rx-usecs: x")), (None, None));
        let none = Coalescing { is_adaptive: false, rx_usecs: 0, rx_frames: 4 };
        assert_eq!(parse_coalescing("rx-usecs: n/a\nrx-frames: 4"), Some(none));
    }

    #[test]
    fn the_status_of_a_link_is_read() {
        let of = |status: &str| parse_eee(&format!("EEE settings for eth0:\n\tEEE status: {status}\n"));
        assert_eq!(of("enabled - active"), Some(Eee::Active));
        assert_eq!(of("enabled - inactive"), Some(Eee::Inactive));
        assert_eq!(of("disabled"), Some(Eee::Disabled));
        assert_eq!(of("not supported"), Some(Eee::NotSupported));
        assert_eq!((of("enabled"), parse_eee("")), (None, None));
    }

    proptest! {
        #[test]
        fn parsers_are_total(text in "(EEE status:|rx-usecs:|[a-z0-9: \n\\PC]){0,12}") {
            let _ = (parse_eee(&text), parse_coalescing(&text));
        }
    }
}
