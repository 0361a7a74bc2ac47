//! Labels and numbers in turn, as in `Min:     16 Act:   18 Max:     717`.

/// Rest of such a line.
pub(super) struct LabelledNumbers<'a>(pub &'a str);

impl<'a> LabelledNumbers<'a> {
    /// Word after the next label, up to a blank: a unit, a separator or another label that follows
    /// without one is a part of it.
    pub(super) fn word(&mut self, label: &str) -> Option<&'a str> {
        let value = self.0.trim_start().strip_prefix(label)?.trim_start();
        let (word, rest) = value.split_at(value.find(char::is_whitespace).unwrap_or(value.len()));
        self.0 = rest;
        Some(word)
    }

    pub(super) fn number<N: std::str::FromStr>(&mut self, label: &str) -> Option<N> {
        self.word(label)?.parse().ok()
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.trim().is_empty()
    }
}
