//! Cursor in a line of JSON whose layout is known: fields in the order in which onbeat writes them,
//! without spaces.

use model::units::Nanos;

/// Digits of a number that cannot overflow an `i64`.
const SAFE_DIGITS: usize = 18;

/// The rest of a line.
#[derive(Clone, Copy)]
pub struct LineCursor<'a>(pub &'a [u8]);

impl LineCursor<'_> {
    /// Skips a text that must be next. With its known length it is compared as a few words.
    #[inline]
    pub fn pass<const L: usize>(&mut self, text: &[u8; L]) -> Option<()> {
        let (next, rest) = self.0.split_first_chunk::<L>()?;
        if next != text {
            return None;
        }
        self.0 = rest;
        Some(())
    }

    /// Reads an integer as JSON writes it, of few digits, up to its end.
    #[inline]
    pub fn number(&mut self) -> Option<i64> {
        let (negative, digits) = match self.0 {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        let mut value = 0;
        let mut count = 0;
        for digit in digits.iter().map(|byte| byte.wrapping_sub(b'0')).take_while(|digit| *digit < 10) {
            count += 1;
            if count > SAFE_DIGITS {
                return None;
            }
            value = value * 10 + i64::from(digit);
        }
        // JSON allows neither leading zeros nor -0 as an integer.
        let zero = digits.first() == Some(&b'0');
        if count == 0 || zero && (count > 1 || negative) {
            return None;
        }
        self.0 = digits.get(count..)?;
        Some(if negative { -value } else { value })
    }

    /// Reads a number without sign.
    #[inline]
    pub fn count(&mut self) -> Option<u64> {
        self.number().and_then(|n| u64::try_from(n).ok())
    }

    /// Reads the number of a thread that is not bound to a CPU, a field that others lack: 0.
    #[inline]
    pub fn thread(&mut self) -> Option<u32> {
        match self.pass(b",\"thread\":") {
            Some(()) => u32::try_from(self.number()?).ok(),
            None => Some(0),
        }
    }

    /// Reads a number, or null.
    #[inline]
    pub fn nanos(&mut self) -> Option<Option<Nanos>> {
        self.or_null(|cursor| cursor.number().map(Nanos))
    }

    /// Reads a `value`, or null.
    #[inline]
    pub fn or_null<T>(&mut self, value: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.pass(b"null") {
            Some(()) => Some(None),
            None => value(self).map(Some),
        }
    }

    /// Reads a number that ends the line.
    pub fn whole_number(&mut self) -> Option<Nanos> {
        self.number().filter(|_| self.0.is_empty()).map(Nanos)
    }

    /// Reads the values of a list after its first bracket, each by `value`.
    #[inline]
    pub fn list(&mut self, mut value: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        if self.pass(b"]").is_some() {
            return Some(());
        }
        loop {
            value(self)?;
            match self.0.split_first()? {
                (b',', rest) => self.0 = rest,
                (b']', rest) => {
                    self.0 = rest;
                    return Some(());
                }
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_json() {
        let numbers =
            [("-5", Some(-5)), ("-0", None), ("007", None), ("0", Some(0)), ("", None), ("-", None)];
        for (text, wanted) in numbers {
            assert_eq!(LineCursor(text.as_bytes()).number(), wanted, "{text}");
        }
    }

    #[test]
    fn lists_end_with_their_bracket() {
        for (text, wanted) in
            [("]x", Some(0)), ("1,2]x", Some(2)), ("1,]", None), ("1", None), ("1 ,2]", None)]
        {
            let (mut cursor, mut count) = (LineCursor(text.as_bytes()), 0);
            let read = cursor.list(|cursor| cursor.number().map(|_| count += 1));
            assert_eq!(read.map(|()| count), wanted, "{text}");
            assert!(read.is_none() || cursor.0 == b"x");
        }
    }
}
