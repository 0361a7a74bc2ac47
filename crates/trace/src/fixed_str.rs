//! Short name from the kernel, stored inline: no allocation per event.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Text of up to `L - 1` bytes, followed by zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FixedStr<const L: usize>([u8; L]);

impl<const L: usize> FixedStr<L> {
    pub const fn empty() -> FixedStr<L> {
        FixedStr([0; L])
    }

    /// Creates the text up to the first zero byte, cut after `L - 1` bytes.
    #[inline(always)]
    pub fn new(text: &[u8]) -> FixedStr<L> {
        // An array of the kernel is as long as this one, so the copy has a fixed length.
        let mut bytes = text.first_chunk::<L>().copied().unwrap_or_else(|| padded(text));
        let mut mask = u64::MAX;
        let mut words = bytes.chunks_exact_mut(8);
        for word in words.by_ref() {
            let Ok(word) = <&mut [u8; 8]>::try_from(word) else { break };
            let text = up_to_zero(u64::from_le_bytes(*word)) & mask;
            *word = text.to_le_bytes();
            // The last byte of an unfinished word is not zero.
            mask = if text >> 56 == 0 { 0 } else { mask };
        }
        let mut ended = mask == 0;
        for byte in words.into_remainder() {
            ended |= *byte == 0;
            *byte = if ended { 0 } else { *byte };
        }
        bytes[L - 1] = 0;
        FixedStr(bytes)
    }

    /// True if the text starts with `begin`.
    pub fn starts_with(&self, begin: &str) -> bool {
        self.0.first() == begin.as_bytes().first() && self.0.starts_with(begin.as_bytes())
    }

    /// Text, with invalid UTF-8 replaced.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        let end = self.0.iter().position(|&b| b == 0).unwrap_or(L);
        String::from_utf8_lossy(&self.0[..end])
    }
}

/// Copy of a shorter text, padded with zeros.
#[inline(never)]
fn padded<const L: usize>(text: &[u8]) -> [u8; L] {
    let mut bytes = [0; L];
    bytes.iter_mut().zip(text).for_each(|(byte, of)| *byte = *of);
    bytes
}

/// Bytes of a little-endian word before its first zero byte, and zeros from there on.
///
/// Source: "Determine if a word has a zero byte", Anderson, Bit Twiddling Hacks; the lowest bit
/// that this sets is that of the first one.
#[inline]
fn up_to_zero(word: u64) -> u64 {
    let zeros = word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080;
    let first = zeros & zeros.wrapping_neg();
    word & (first >> 7).wrapping_sub(1)
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
        assert_eq!(FixedStr::<16>::new(b"robot\0\x80\x01rest of it"), "robot".into());
        assert_eq!(FixedStr::<16>::new(b"\x80\x81123456789abcde\0").0, *b"\x80\x81123456789abcd\0");
        assert_eq!(FixedStr::<16>::new(b"12345678\0bcdefgh").0, *b"12345678\0\0\0\0\0\0\0\0");
        let names = ["ktimers/0", "ktimer", ""].map(FixedStr::<16>::from);
        assert_eq!(names.map(|name| name.starts_with("ktimers/")), [true, false, false]);
        assert_eq!(FixedStr::<4>::new(b"\xff\xfe").text(), "\u{fffd}\u{fffd}");
        assert_eq!(serde_json::to_string(&FixedStr::<8>::from("x")).ok().as_deref(), Some("\"x\""));
        assert_eq!(serde_json::from_str::<FixedStr<4>>("\"abcdef\"").ok(), Some(FixedStr::from("abc")));
    }
}
