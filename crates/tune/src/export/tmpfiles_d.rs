//! Lines of tmpfiles.d(5) that write to files of the running kernel: `w!`, which acts only at boot,
//! so that a package update does not repeat a value that was undone since.

use model::setting::Setting;

use super::BootLine;
use super::{commented, reason};

const HEAD: &str = "\
# For /etc/tmpfiles.d. To apply it now: systemd-tmpfiles --create --boot onbeat.conf
# A file that is not there when this is read is passed over in silence: see `onbeat audit` after a boot.
";

const DEBUGFS: &str = "\
# Those below /sys/kernel/debug need debugfs, which systemd mounts early, but in no order to this.
";

/// Text of the file; none without lines.
pub fn render(lines: &[BootLine]) -> Option<String> {
    if lines.is_empty() {
        return None;
    }
    let debugfs = lines.iter().any(|line| line.setting.key.path().starts_with("/sys/kernel/debug/"));
    let head = if debugfs { HEAD.to_owned() + DEBUGFS } else { HEAD.to_owned() };
    let written = lines.iter().map(|line| (&*line.rule, reason(line), of_setting(&line.setting)));
    Some(head + "\n" + &commented(written))
}

fn of_setting(setting: &Setting) -> String {
    format!("w! {} - - - - {}", escaped_path(&setting.key.path()), escaped_value(&setting.wanted))
}

/// Path as the second field, with specifiers, patterns, blanks and quotes escaped.
pub fn escaped_path(path: &str) -> String {
    let mut field = String::new();
    let mut quoted = false;
    for c in path.chars() {
        match c {
            '%' => field += "%%",
            '*' | '?' | '[' => field.extend(['[', c, ']']),
            // Once for the field, once for the pattern.
            '\\' => field += "\\\\\\\\",
            '"' | '\'' => field.extend(['\\', c]),
            c => {
                quoted |= c.is_whitespace();
                field.push(c);
            }
        }
    }
    if quoted { format!("\"{field}\"") } else { field }
}

/// Value as the last field, which extends to the end of the line.
pub fn escaped_value(value: &str) -> String {
    value.replace('\\', "\\\\").replace('%', "%%")
}
