//! Cookie of a session. It holds 256 random bits from the server, and the store has their digest,
//! so that a browser cannot bring a session of its choice.

use axum::http::{HeaderMap, header};

use crate::wall_clock::DAY;
use crate::web::login::sender::digest_of;

/// Validity of a session.
pub const GOOD_FOR_S: i64 = 7 * DAY;

/// Behind TLS the name makes browsers refuse one that another host or page set (RFC 6265bis,
/// "The __Host- Prefix"); without it, on this machine, they would not take such a name.
fn cookie_name(secure: bool) -> &'static str {
    if secure { "__Host-onbeat" } else { "onbeat" }
}

/// The digest of the session that a request names.
pub fn named_session(headers: &HeaderMap, secure: bool) -> Option<Vec<u8>> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (_, token) = pairs.find(|(name, _)| *name == cookie_name(secure))?;
    Some(digest_of(token))
}

/// Header that sets the cookie of a session, or removes it.
pub fn cookie(token: Option<&str>, secure: bool) -> String {
    let (name, only) = (cookie_name(secure), if secure { "; Secure" } else { "" });
    let (token, age) = token.map_or(("", 0), |token| (token, GOOD_FOR_S));
    format!("{name}={token}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{only}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_found_among_other_cookies() {
        let headers = |line: &str| HeaderMap::from_iter([(header::COOKIE, line.parse().unwrap())]);
        let named = named_session(&headers("a=b; __Host-onbeat=xyz; onbeat=other"), true);
        assert_eq!(named, Some(digest_of("xyz")));
        assert_eq!(named_session(&headers("a=b; onbeat=other"), false), Some(digest_of("other")));
        assert_eq!(named_session(&headers("onbeat=other"), true), None);
        assert_eq!(named_session(&HeaderMap::new(), true), None);
        let set = cookie(Some("xyz"), true);
        assert_eq!(set, "__Host-onbeat=xyz; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax; Secure");
        assert!(cookie(None, false).starts_with("onbeat=; Path=/; Max-Age=0"));
    }
}
