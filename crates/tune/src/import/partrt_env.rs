//! Values that partrt saved in `partrt_env` before changing them: a line with the date, then lines
//! of file and value. An import is equivalent to `partrt undo -s`.

use model::setting::Key;

use super::pattern::canonical;
use super::{Collected, Imported, ImportedFile};

/// Collects the values requested by the files.
pub fn collect(files: &[&ImportedFile], collected: &mut Collected) {
    for file in files {
        for (number, text) in file.text.lines().enumerate() {
            let text = text.trim();
            if text.is_empty() || text.starts_with("partrt_settings:") {
                continue;
            }
            let place = format!("{}, line {}", file.name, number + 1);
            let (path, value) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            let key = Key::of_path(&canonical(path)).and_then(|key| key.to_string().parse().ok());
            match key {
                Some(_) if value.trim().is_empty() => {
                    collected.leave(place, format!("it has no value for {}", model::text::quoted(path)), "");
                }
                Some(key @ (Key::Sysctl(_) | Key::Sysfs(_) | Key::Irq(_) | Key::IrqDefault)) => {
                    let value = value.trim().to_owned();
                    collected.want(Imported { key, value, place, optional: false });
                }
                _ => collected.leave(place, format!("{} is not a setting", model::text::quoted(path)), ""),
            }
        }
    }
}
