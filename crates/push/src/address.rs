//! Address of a farm: HTTPS, or plain HTTP to this machine.

use host::is_this_machine;
use model::error::{Failure, Result};
use model::text::quoted_value;

/// Address of a farm, without a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FarmAddress {
    pub base: String,
    pub is_encrypted: bool,
}

impl FarmAddress {
    /// Parses an address. A token never travels in the clear: plain HTTP is for this machine only.
    pub fn parse(text: &str) -> Result<FarmAddress> {
        let shown = quoted_value(text);
        let wrong = |why: &str| Failure::usage(format!("invalid farm address {shown}: {why}"));
        let (scheme, rest) =
            text.split_once(":/").ok_or_else(|| wrong("write https, a colon and its name"))?;
        let is_encrypted = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(wrong("write https")),
        };
        let rest = rest.strip_prefix('/').ok_or_else(|| wrong("write two slashes after the colon"))?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:[]/%".contains(c);
        if !rest.chars().all(plain) {
            return Err(wrong("it may have only a name, a port and a path"));
        }
        let host = rest.split('/').next().unwrap_or_default();
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.parse::<u16>().is_ok() => name,
            Some(_) if !host.ends_with(']') => return Err(wrong("its port is not a number")),
            _ => host,
        };
        if name.is_empty() {
            return Err(wrong("it has no name"));
        }
        if !is_encrypted && !is_this_machine(name) {
            return Err(wrong("plain http would send the token unencrypted: write https"));
        }
        Ok(FarmAddress { base: text.trim_end_matches('/').to_owned(), is_encrypted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_nowhere_in_the_clear() {
        let of = |text: &str| FarmAddress::parse(&text.replace('@', "://"));
        for text in [
            "https@farm.example",
            "https@farm.example:8443/x/",
            "http@localhost:8377",
            "http@[::1]:1",
            "http@127.0.0.2",
        ] {
            assert!(of(text).is_ok(), "{text}");
        }
        assert_eq!(of("https@farm.example/x/").unwrap().base, "https@farm.example/x".replace('@', "://"));
        for text in [
            "",
            "farm.example",
            "ftp@farm.example",
            "http@farm.example",
            "http@10.0.0.1",
            "http@localhost.evil.test",
            "http@127.0.0.1.evil.test",
            "https@",
            "https@:80",
            "https@a:port",
            "https@a b",
            "https@a?x",
            "https@a#x",
            "https:/a",
            "http@localhost:8377x",
            "http@[::2]:1",
        ] {
            assert!(of(text).is_err(), "{text}");
        }
        // A user name before the host would hide the real host.
        assert!(FarmAddress::parse(concat!("http", "://localhost@evil.test")).is_err());
    }
}
