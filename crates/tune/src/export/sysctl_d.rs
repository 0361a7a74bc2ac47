//! File for sysctl.d(5).

use model::setting::Key;

use super::BootLine;
use super::{commented, reason};

const HEAD: &str = "# For /etc/sysctl.d. To apply it now: sysctl -p 90-onbeat.conf\n\n";

/// Text of the file; none without lines.
pub fn render(lines: &[BootLine]) -> Option<String> {
    let written: Vec<(&str, String, String)> = lines.iter().filter_map(line).collect();
    (!written.is_empty()).then(|| HEAD.to_owned() + &commented(written.into_iter()))
}

fn line(line: &BootLine) -> Option<(&str, String, String)> {
    let Key::Sysctl(name) = &line.setting.key else { return None };
    // A value that the kernel may refuse must not make the service fail at boot.
    let optional = if line.setting.optional { "-" } else { "" };
    Some((&line.rule, reason(line), format!("{optional}{name} = {}", line.setting.wanted)))
}
