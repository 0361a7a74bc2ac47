//! Numbers in the byte order and word length of the machine that wrote them.

/// Number format of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteOrder {
    /// True if the most significant byte comes first.
    pub big: bool,
    /// Size of the kernel's `long` in bytes: 4 or 8.
    pub long: usize,
}

impl ByteOrder {
    #[inline]
    pub fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let word = *bytes.get(at..)?.first_chunk()?;
        Some(if self.big { u16::from_be_bytes(word) } else { u16::from_le_bytes(word) })
    }

    #[inline]
    pub fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let word = *bytes.get(at..)?.first_chunk()?;
        Some(if self.big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) })
    }

    #[inline]
    pub fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let word = *bytes.get(at..)?.first_chunk()?;
        Some(if self.big { u64::from_be_bytes(word) } else { u64::from_le_bytes(word) })
    }

    /// Value of a `long`.
    #[inline]
    pub fn long(self, bytes: &[u8], at: usize) -> Option<u64> {
        match self.long {
            4 => self.u32(bytes, at).map(u64::from),
            _ => self.u64(bytes, at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_their_order_and_end() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        let (little, big) = (ByteOrder { big: false, long: 8 }, ByteOrder { big: true, long: 4 });
        assert_eq!((little.u16(&bytes, 0), big.u16(&bytes, 6)), (Some(0x0201), Some(0x0708)));
        assert_eq!((little.u32(&bytes, 4), big.u32(&bytes, 4)), (Some(0x0807_0605), Some(0x0506_0708)));
        assert_eq!((little.long(&bytes, 0), big.long(&bytes, 0)), (little.u64(&bytes, 0), Some(0x0102_0304)));
        assert_eq!(
            (little.u64(&bytes, 1), big.u32(&bytes, 5), big.u16(&bytes, usize::MAX)),
            (None, None, None)
        );
    }
}
