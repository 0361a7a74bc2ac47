//! A short name of the kernel's, in place: no allocation per event.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Up to `L - 1` bytes of text, ended by a zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FixedStr<const L: usize>([u8; L]);

impl<const L: usize> FixedStr<L> {
    pub const fn empty() -> FixedStr<L> {
        FixedStr([0; L])
    }

    /// The text up to the first zero byte, cut after `L - 1` bytes.
    pub fn new(text: &[u8]) -> FixedStr<L> {
        let mut bytes = [0; L];
        let end = text.iter().position(|&b| b == 0).unwrap_or(text.len()).min(L - 1);
        bytes[..end].copy_from_slice(&text[..end]);
        FixedStr(bytes)
    }

    /// The text; what is not UTF-8 in it is replaced.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        let end = self.0.iter().position(|&b| b == 0).unwrap_or(L);
        String::from_utf8_lossy(&self.0[..end])
    }
}

impl<const L: usize> Default for FixedStr<L> {
    fn default() -> FixedStr<L> {
        FixedStr([0; L])
    }
}

impl<const L: usize> fmt::Display for FixedStr<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text())
    }
}

impl<const L: usize> fmt::Debug for FixedStr<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text(), f)
    }
}

impl<const L: usize> From<&str> for FixedStr<L> {
    fn from(text: &str) -> FixedStr<L> {
        FixedStr::new(text.as_bytes())
    }
}

impl<const L: usize> Serialize for FixedStr<L> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text())
    }
}

impl<'de, const L: usize> Deserialize<'de> for FixedStr<L> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<FixedStr<L>, D::Error> {
        Ok(FixedStr::new(String::deserialize(from)?.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_at_its_zero_and_at_its_end() {
        assert_eq!(FixedStr::<8>::new(b"ab\0cd").text(), "ab");
        assert_eq!(FixedStr::<8>::new(b"abcdefghij").text(), "abcdefg");
        assert_eq!(FixedStr::<4>::new(b"\xff\xfe").text(), "\u{fffd}\u{fffd}");
        assert_eq!(serde_json::to_string(&FixedStr::<8>::from("x")).ok().as_deref(), Some("\"x\""));
        assert_eq!(serde_json::from_str::<FixedStr<4>>("\"abcdef\"").ok(), Some(FixedStr::from("abc")));
    }
}
