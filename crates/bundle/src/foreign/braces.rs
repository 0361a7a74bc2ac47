//! Braces of JSON in a text, line by line.

/// Number of open braces after the lines of an object so far.
#[derive(Default)]
pub(super) struct OpenBraces(usize);

impl OpenBraces {
    /// Passes a line; returns the offset after the object's last brace if the object ends in it.
    ///
    /// A string does not go beyond its line, even if a program forgot to escape a quote.
    pub(super) fn pass(&mut self, line: &str) -> Option<usize> {
        let (mut is_string, mut is_escaped) = (false, false);
        for (at, byte) in line.bytes().enumerate() {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if is_string => is_escaped = true,
                b'"' => is_string = !is_string,
                b'{' if !is_string => self.0 += 1,
                b'}' if !is_string => {
                    self.0 = self.0.saturating_sub(1);
                    if self.0 == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// True for a text that begins with an object and is a log: other lines follow it, or lines of the
/// kernel are in it.
pub(super) fn is_log(text: &str) -> bool {
    if ["\n[", "\n<", "\n{"].iter().any(|start| text.contains(start)) {
        return true;
    }
    let mut braces = OpenBraces::default();
    let mut lines = text.trim_start().split('\n');
    let end = lines.find_map(|line| braces.pass(line).map(|end| &line[end..]));
    end.is_some_and(|rest| !rest.trim().is_empty() || lines.any(|line| !line.trim().is_empty()))
}
