//! The syntax of a profile, as tuned has Python's configparser read it: sections, `name = value`,
//! comments with `#` and `;` at the start of a line and ` #` within one, continued lines that are
//! indented.

/// A section and its options, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IniSection {
    pub name: String,
    pub options: Vec<(String, String)>,
}

impl IniSection {
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Sets an option at the place that it has, else at the end.
    pub fn set(&mut self, name: &str, value: &str) {
        match self.options.iter_mut().find(|(own, _)| own == name) {
            Some((_, own)) => value.clone_into(own),
            None => self.options.push((name.to_owned(), value.to_owned())),
        }
    }
}

/// The sections; what a second section of one name says is added to the first. With the lines that
/// are no part of it.
pub fn sections(text: &str) -> (Vec<IniSection>, Vec<usize>) {
    let (mut found, mut wrong): (Vec<IniSection>, Vec<usize>) = (Vec::new(), Vec::new());
    // The section that lines go to, and whether the last of them can be continued.
    let (mut at, mut open) = (None, None::<String>);
    for (number, line) in text.lines().enumerate() {
        let bare = without_comment(line);
        if bare.trim().is_empty() {
            continue;
        }
        let continued = line.starts_with([' ', '\t']);
        if let (true, Some(name), Some(section)) = (continued, &open, at) {
            let section: &mut IniSection = &mut found[section];
            let value = format!("{}\n{}", section.option(name).unwrap_or(""), bare.trim());
            section.set(name, &value);
            continue;
        }
        open = None;
        let bare = bare.trim();
        if let Some(name) = bare.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(name, _)| name)
        {
            at = Some(found.iter().position(|section| section.name == name).unwrap_or_else(|| {
                found.push(IniSection { name: name.to_owned(), options: Vec::new() });
                found.len() - 1
            }));
            continue;
        }
        match (at, bare.split_once('=')) {
            (Some(section), Some((name, value))) if !name.trim().is_empty() => {
                found[section].set(name.trim(), value.trim());
                open = Some(name.trim().to_owned());
            }
            _ => wrong.push(number + 1),
        }
    }
    (found, wrong)
}

fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with(['#', ';']) {
        return "";
    }
    let starts = |at: usize| line[..at].ends_with(char::is_whitespace);
    line.match_indices('#').find(|(at, _)| starts(*at)).map_or(line, |(at, _)| &line[..at])
}
