//! The name of a board as ssh takes it: a host, or a user and a host.

use std::net::Ipv6Addr;

use model::text::quoted_value;

use crate::ingest::board_key::{board_of, plain_key};
use crate::store::FarmStore;

/// No name is longer (RFC 1035, section 2.3.4).
const LONGEST: usize = 253;

/// A host that is asked for its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullHost {
    /// As ssh takes it.
    pub target: String,
    /// Whose runs they are: the key, and what the board is called. By itself it is the host's name.
    pub board: String,
    pub name: String,
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
        let (board, name) = board_of(host);
        Ok(PullHost { target: text.to_owned(), board, name })
    }

    /// Has its runs be those of a board of another name.
    pub fn call(&mut self, name: &str) {
        (self.board, self.name) = board_of(name);
    }

    /// The board as the store has it. Before each name had a key of its own, the board of an
    /// address was called what its key was.
    pub async fn settle(&mut self, store: &FarmStore) -> model::error::Result<()> {
        let host = self.target.rsplit_once('@').map_or(self.target.as_str(), |(_, host)| host);
        let before = if host == self.name { plain_key(host) } else { self.name.clone() };
        self.board = store.settled_key(self.board.clone(), &before).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::engines::on_each_engine;

    #[test]
    fn only_names_are_handed_to_ssh() {
        for (text, board) in
            [("press-3", "press-3"), ("root@10.0.0.7", "10.0.0.7"), ("a.b@press_3.lab", "press_3.lab")]
        {
            let host = PullHost::parse(text).unwrap();
            assert_eq!((host.board.as_str(), host.name.as_str()), (board, board), "{text}");
        }
        // Of both the colons and nothing else are lost.
        let [one, other] = ["2001:db8::1:1", "user@2001:db8:1::1"].map(|text| PullHost::parse(text).unwrap());
        assert!(one.board.starts_with("2001-db8-1-1-") && one.board != other.board);
        assert_eq!((one.name.as_str(), other.name.as_str()), ("2001:db8::1:1", "2001:db8:1::1"));
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

    #[test]
    fn a_host_goes_on_under_the_key_that_its_address_had() {
        on_each_engine(async |store| {
            let settled = async |text: &str, called: Option<&str>| {
                let mut host = PullHost::parse(text).unwrap();
                called.into_iter().for_each(|name| host.call(name));
                host.settle(&store).await.unwrap();
                host.board
            };
            let (key, _) = board_of("2001:db8::1");
            assert_eq!(settled("root@2001:db8::1", None).await, key);
            store.board_for("2001-db8-1", "2001-db8-1").await.unwrap();
            store.board_for("a-b", "a-b").await.unwrap();
            assert_eq!(settled("root@2001:db8::1", None).await, "2001-db8-1");
            assert_eq!(settled("2001:db8::2", None).await, board_of("2001:db8::2").0);
            assert_eq!(settled("press-3", Some("a b")).await, board_of("a b").0);
            assert_eq!(settled("press-3", None).await, "press-3");
        });
    }
}
