//! The name of a board as ssh takes it: a host, or a user and a host.

use std::net::Ipv6Addr;

use model::text::quoted_value;

use crate::ingest::find::board_key;

/// No name is longer (RFC 1035, section 2.3.4).
const LONGEST: usize = 253;

/// A host that is asked for its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullHost {
    /// As ssh takes it.
    pub target: String,
    /// Whose runs they are, where nothing else is said.
    pub board: String,
}

impl PullHost {
    /// Reads one. What begins with `-` would be an option of ssh's, and what else is no name might
    /// be one to a shell in somebody's configuration of it.
    pub fn parse(text: &str) -> Result<PullHost, String> {
        let (user, host) = text.rsplit_once('@').map_or((None, text), |(user, host)| (Some(user), host));
        let plain = |name: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            (1..=LONGEST).contains(&name.len()) && name.chars().all(fits) && !name.starts_with(['-', '.'])
        };
        let is_host = plain(host) || host.parse::<Ipv6Addr>().is_ok();
        if !is_host || !user.is_none_or(plain) {
            return Err(format!(
                "{} is no host: name it as press-3 or user@press-3; ports and keys go to ~/.ssh/config",
                quoted_value(text)
            ));
        }
        Ok(PullHost { target: text.to_owned(), board: board_key(host) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_are_handed_to_ssh() {
        for (text, board) in [
            ("press-3", "press-3"),
            ("root@10.0.0.7", "10.0.0.7"),
            ("a.b@press_3.lab", "press_3.lab"),
            ("2001:db8::1", "2001-db8-1"),
            ("user@::1", "1"),
        ] {
            assert_eq!(PullHost::parse(text).unwrap().board, board, "{text}");
        }
        for text in [
            "",
            "-oProxyCommand=x",
            "user@-oProxyCommand=x",
            "-l@host",
            "host;reboot",
            "host name",
            "$(reboot)",
            "`x`",
            "host\nx",
            "a@b@c",
            "@host",
            "user@",
            "host:22",
            "[::1]",
            "fe80::1%eth0",
            ".",
            "../x",
            "ssh:/x",
            "h\u{f6}st",
            &"x".repeat(300),
        ] {
            assert!(PullHost::parse(text).is_err(), "{text:?}");
        }
    }
}
