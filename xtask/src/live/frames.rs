//! Report of the guest: lines of a small framing, with contents after a bar so that they are
//! unambiguous.
//!
//!     === CHECK name / === VALUE label text / === FILE label, then |lines / === ABSENT label / ===
//! OVER code

use std::collections::BTreeMap;

/// The whole report of one boot.
#[derive(Debug, Default, PartialEq)]
pub struct Report {
    /// Replies by check.
    pub replies: BTreeMap<String, Reply>,
}

/// Contents by label; `None`: the file was not there.
pub type Files = BTreeMap<String, Option<String>>;

/// Results of one check.
#[derive(Debug, Default, PartialEq)]
pub struct Reply {
    /// Short values by label; exit codes as `LABEL.exit`.
    pub values: BTreeMap<String, String>,
    /// `LABEL.out` and `LABEL.err` are outputs.
    pub files: Files,
    /// The script's exit code; none if the machine stopped before its end.
    pub over: Option<i32>,
}

/// Parses the channel. Stray lines belong to no reply.
pub fn parse(text: &str) -> Report {
    let mut report = Report::default();
    let mut current: Option<(String, Reply)> = None;
    let mut open: Option<String> = None;
    for line in text.lines() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if let (Some(content), Some((_, reply)), Some(label)) = (line.strip_prefix('|'), &mut current, &open)
        {
            let file = reply.files.entry(label.clone()).or_default().get_or_insert_default();
            file.push_str(content);
            file.push('\n');
            continue;
        }
        let Some(frame) = line.strip_prefix("=== ") else { continue };
        let (word, rest) = frame.split_once(' ').unwrap_or((frame, ""));
        open = None;
        match (word, &mut current) {
            ("CHECK", _) => {
                report.replies.extend(current.take());
                current = Some((rest.to_string(), Reply::default()));
            }
            ("FILE", Some((_, reply))) => {
                reply.files.insert(rest.to_string(), Some(String::new()));
                open = Some(rest.to_string());
            }
            ("ABSENT", Some((_, reply))) => {
                reply.files.insert(rest.to_string(), None);
            }
            ("VALUE", Some((_, reply))) => {
                let (label, value) = rest.split_once(' ').unwrap_or((rest, ""));
                reply.values.insert(label.to_string(), value.to_string());
            }
            ("OVER", Some((_, reply))) => reply.over = rest.parse().ok(),
            _ => {}
        }
    }
    report.replies.extend(current);
    report
}

impl Reply {
    /// A short value.
    pub fn value(&self, label: &str) -> Result<&str, String> {
        self.values.get(label).map(String::as_str).ok_or_else(|| format!("the guest reported no {label}"))
    }

    /// A short value that is a number.
    pub fn number(&self, label: &str) -> Result<i64, String> {
        let text = self.value(label)?;
        text.trim().parse().map_err(|_| format!("{label} is not a number: {text:?}"))
    }

    /// A file's content.
    pub fn file(&self, label: &str) -> Result<&str, String> {
        match self.files.get(label) {
            None => Err(format!("the guest reported no {label}")),
            Some(None) => Err(format!("there was no file {label}")),
            Some(Some(text)) => Ok(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_told_from_frames() {
        let text = "noise\n=== CHECK a\n=== VALUE run.exit 0\n=== FILE run.out\n|one\n|=== OVER 9\n||\n\
                    === ABSENT x\n=== OVER 0\n=== CHECK b\n=== FILE cut\n|half";
        let report = parse(text);
        let a = &report.replies["a"];
        assert_eq!(
            (a.over, a.number("run.exit"), a.file("run.out")),
            (Some(0), Ok(0), Ok("one\n=== OVER 9\n|\n"))
        );
        assert!(
            a.file("x").unwrap_err().contains("no file") && a.file("y").is_err() && a.value("z").is_err()
        );
        // A machine that stopped in mid-check leaves it without an end.
        assert_eq!(report.replies["b"].over, None);
    }

    #[test]
    fn kernel_messages_end_no_content() {
        let report = parse("=== CHECK a\n=== FILE f\n|1\n[ 3.0] a message\n|2\n=== OVER 0\n");
        assert_eq!(report.replies["a"].file("f"), Ok("1\n2\n"));
    }
}
