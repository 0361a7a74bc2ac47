//! Keys from the bytes of a terminal.

/// PressedKey that the view knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PressedKey {
    Char(char),
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Backspace,
    Tab,
    /// Ctrl-C.
    Interrupt,
}

/// Bytes of keys, which may come in pieces.
#[derive(Clone, Debug, Default)]
pub struct KeyReader {
    pending: Vec<u8>,
}

/// Limit of an unfinished sequence.
const LONGEST: usize = 16;

impl KeyReader {
    /// Takes bytes and returns the keys that are complete.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<PressedKey> {
        self.pending.extend(bytes);
        let mut keys = Vec::new();
        while let Some((key, used)) = first(&self.pending) {
            keys.extend(key);
            self.pending.drain(..used);
        }
        if self.pending.len() > LONGEST {
            self.pending.clear();
        }
        keys
    }

    /// True after the beginning of a sequence, which may also be the Escape key.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Ends the wait for the rest of a sequence.
    pub fn flush(&mut self) -> Option<PressedKey> {
        let is_escape = self.pending.first() == Some(&ESCAPE);
        self.pending.clear();
        is_escape.then_some(PressedKey::Escape)
    }
}

const ESCAPE: u8 = 0x1b;

/// First key, if it is known, and its length; `None` if more bytes are needed.
fn first(bytes: &[u8]) -> Option<(Option<PressedKey>, usize)> {
    let (&byte, rest) = bytes.split_first()?;
    let key = match byte {
        ESCAPE => return sequence(rest),
        3 => PressedKey::Interrupt,
        b'\r' | b'\n' => PressedKey::Enter,
        b'\t' => PressedKey::Tab,
        8 | 0x7f => PressedKey::Backspace,
        0x20..=0x7e => PressedKey::Char(char::from(byte)),
        0xc2..=0xf4 => return letter(bytes),
        _ => return Some((None, 1)),
    };
    Some((Some(key), 1))
}

/// Letter of UTF-8.
fn letter(bytes: &[u8]) -> Option<(Option<PressedKey>, usize)> {
    let length = match bytes[0] {
        0xf0.. => 4,
        0xe0.. => 3,
        _ => 2,
    };
    let bytes = bytes.get(..length)?;
    let letter = std::str::from_utf8(bytes).ok().and_then(|text| text.chars().next());
    Some(letter.map_or((None, 1), |letter| (Some(PressedKey::Char(letter)), length)))
}

/// Sequence after Escape (ECMA-48: CSI, parameters, a final byte; SS3 and one byte).
fn sequence(rest: &[u8]) -> Option<(Option<PressedKey>, usize)> {
    let (&kind, rest) = rest.split_first()?;
    if kind != b'[' && kind != b'O' {
        // Escape, and then another key.
        return Some((Some(PressedKey::Escape), 1));
    }
    let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte))?;
    let key = match (rest[end], &rest[..end]) {
        (b'A', _) => Some(PressedKey::Up),
        (b'B', _) => Some(PressedKey::Down),
        (b'H', _) | (b'~', b"1" | b"7") => Some(PressedKey::Home),
        (b'F', _) | (b'~', b"4" | b"8") => Some(PressedKey::End),
        (b'~', b"5") => Some(PressedKey::PageUp),
        (b'~', b"6") => Some(PressedKey::PageDown),
        (b'M', _) if kind == b'O' => Some(PressedKey::Enter),
        _ => None,
    };
    Some((key, end + 3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_are_read_also_in_pieces() {
        let mut reader = KeyReader::default();
        assert_eq!(
            reader.take(b"sq\r\x03"),
            [PressedKey::Char('s'), PressedKey::Char('q'), PressedKey::Enter, PressedKey::Interrupt]
        );
        assert_eq!(
            reader.take(b"\x1b[A\x1bOB\x1b[5~\x1b[6~"),
            [PressedKey::Up, PressedKey::Down, PressedKey::PageUp, PressedKey::PageDown]
        );
        assert_eq!(
            reader.take(b"\x1b[H\x1b[4~\x7f\t"),
            [PressedKey::Home, PressedKey::End, PressedKey::Backspace, PressedKey::Tab]
        );
        assert_eq!((reader.take(b"\x1b"), reader.is_pending()), (vec![], true));
        assert_eq!(reader.take(b"[B"), [PressedKey::Down]);
        assert_eq!(reader.take("\u{e9}".as_bytes()), [PressedKey::Char('\u{e9}')]);
        assert!(!reader.is_pending());
    }

    #[test]
    fn escape_alone_is_a_key_once_nothing_follows() {
        let mut reader = KeyReader::default();
        assert_eq!(
            (reader.take(b"\x1b"), reader.flush(), reader.flush()),
            (vec![], Some(PressedKey::Escape), None)
        );
        assert_eq!(reader.take(b"\x1bq"), [PressedKey::Escape, PressedKey::Char('q')]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_and_little_is_kept(pieces in proptest::collection::vec(
            proptest::collection::vec(any::<u8>(), 0..40), 0..20)) {
            let mut reader = KeyReader::default();
            for piece in pieces {
                reader.take(&piece);
                prop_assert!(reader.pending.len() <= LONGEST);
            }
            reader.flush();
            prop_assert!(!reader.is_pending());
        }
    }
}
