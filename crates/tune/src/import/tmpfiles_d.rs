//! Lines of tmpfiles.d(5) that write a value to a file of the running kernel.

use host::MachineFiles;
use model::setting::Key;

use super::pattern::expand;
use super::{Collected, Imported, ImportedFile};

/// Line that writes a value to the files of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteLine {
    pub path: String,
    pub value: String,
}

/// Kind of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TmpfilesLine {
    /// A comment, or an empty line.
    Nothing,
    /// A line of another type, which creates, changes or removes files.
    Other,
    Write(WriteLine),
}

/// Parses a line.
///
/// # Errors
/// The part that is not supported.
pub fn line(text: &str) -> Result<TmpfilesLine, String> {
    let text = text.trim();
    if text.is_empty() || text.starts_with('#') {
        return Ok(TmpfilesLine::Nothing);
    }
    let (kind, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    if !kind.starts_with('w') {
        return Ok(TmpfilesLine::Other);
    }
    let modifiers = &kind[1..];
    if modifiers.contains('+') {
        return Err("it appends to a file, which is not a setting".to_owned());
    }
    if modifiers.chars().any(|c| !matches!(c, '!' | '-')) {
        return Err(format!("lines of type {} are not supported", model::text::quoted(kind)));
    }
    let (path, mut rest) = field(rest.trim_start())?;
    for _ in 0..4 {
        rest = rest.trim_start();
        let (_, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
        rest = after;
    }
    let value = match rest.trim() {
        "" | "-" => return Err("it has no value".to_owned()),
        value => specifiers(&unescaped(value))?,
    };
    Ok(TmpfilesLine::Write(WriteLine { path: specifiers(&path)?, value }))
}

/// First field, which may be quoted and have backslash escapes, and the rest.
fn field(text: &str) -> Result<(String, &str), String> {
    let (mut found, mut quote, mut chars) = (String::new(), None, text.char_indices());
    while let Some((at, c)) = chars.next() {
        match (c, quote) {
            ('\\', _) => match chars.next() {
                Some((_, next)) => found.push(next),
                None => return Err("it ends with a backslash".to_owned()),
            },
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => quote = Some(c),
            (c, None) if c.is_whitespace() => return Ok((found, &text[at..])),
            (c, _) => found.push(c),
        }
    }
    match quote {
        Some(_) => Err("a quote in it is not closed".to_owned()),
        None => Ok((found, "")),
    }
}

/// Value with those escapes of C resolved that make sense in one.
fn unescaped(text: &str) -> String {
    let (mut found, mut chars) = (String::new(), text.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => found.push('\n'),
                Some('t') => found.push('\t'),
                Some('s') => found.push(' '),
                Some(other) => found.push(other),
                None => found.push('\\'),
            },
            c => found.push(c),
        }
    }
    found
}

/// Resolves `%%`, the only specifier that does not depend on the machine.
fn specifiers(text: &str) -> Result<String, String> {
    let (mut found, mut chars) = (String::new(), text.chars());
    while let Some(c) = chars.next() {
        match c {
            '%' if chars.next() == Some('%') => found.push('%'),
            '%' => return Err("it contains an unknown specifier".to_owned()),
            c => found.push(c),
        }
    }
    Ok(found)
}

/// Pattern with backslash escapes replaced by brackets.
fn bracketed(path: &str) -> String {
    let (mut found, mut chars) = (String::new(), path.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next @ ('*' | '?' | '[')) => found.extend(['[', next, ']']),
                Some(next) => found.push(next),
                None => found.push('\\'),
            },
            c => found.push(c),
        }
    }
    found
}

/// Collects the requested values. The first line for a path counts, as in systemd-tmpfiles.
pub fn collect(files: &[&ImportedFile], machine: &MachineFiles, collected: &mut Collected) {
    let (mut others, mut seen) = (0_u64, std::collections::BTreeSet::new());
    for file in files {
        for (number, text) in file.text.lines().enumerate() {
            let place = format!("{}, line {}", file.name, number + 1);
            match line(text) {
                Ok(TmpfilesLine::Nothing) => {}
                Ok(TmpfilesLine::Other) => others += 1,
                Ok(TmpfilesLine::Write(found)) if seen.insert(found.path.clone()) => {
                    write(&found, &place, machine, collected);
                }
                Ok(TmpfilesLine::Write(_)) => {}
                Err(why) => collected.leave(place, why, ""),
            }
        }
    }
    if others > 0 {
        let lines = model::text::several(others, "line", "lines");
        collected.leave("tmpfiles.d", format!("{lines} that create or remove files and set nothing"), "");
    }
}

fn write(found: &WriteLine, place: &str, machine: &MachineFiles, collected: &mut Collected) {
    let path = bracketed(&found.path);
    // A path in which every bracket matches one character is not a pattern to expand.
    match expand(machine, &path) {
        Err(why) => collected.leave(place, why, ""),
        Ok(paths) if paths.is_empty() => collected.leave(place, "it matches no file here", ""),
        Ok(paths) => {
            for path in paths {
                let key = Key::of_path(&path).and_then(|key| key.to_string().parse().ok());
                match key {
                    Some(key @ (Key::Sysctl(_) | Key::Sysfs(_) | Key::Irq(_) | Key::IrqDefault)) => {
                        let (value, place) = (found.value.clone(), place.to_owned());
                        collected.want(Imported { key, value, place, optional: true });
                    }
                    _ => collected.leave(place, "it does not write to a kernel setting", ""),
                }
            }
        }
    }
}
