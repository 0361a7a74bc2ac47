//! Syntax of a profile, as tuned reads it with Python's configparser: sections, `name = value`,
//! comments with `#` and `;` at the start of a line and ` #` within one; a line indented more than
//! its option continues it.

use super::options::OptionList;

/// Limit of options of a profile.
const OPTIONS_LIMIT: usize = 20_000;

/// Section with its options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IniSection {
    pub name: String,
    pub options: OptionList,
}

/// Sections, with the options of repeated ones merged into the first, and the numbers of invalid
/// lines.
pub fn sections(text: &str) -> (Vec<IniSection>, Vec<usize>) {
    let mut reader = IniReader::default();
    for (number, line) in text.lines().enumerate() {
        if !reader.line(line) {
            reader.wrong.push(number + 1);
        }
    }
    for section in &mut reader.found {
        let names: Vec<String> =
            section.options.in_order().iter().map(|(name, _)| (*name).to_owned()).collect();
        for name in names {
            let value = section.options.get(&name).unwrap_or_default().trim_end().to_owned();
            section.options.set(&name, value);
        }
    }
    (reader.found, reader.wrong)
}

/// Options of a file without sections, or of all its sections.
pub fn bare_options(text: &str) -> Vec<(String, String)> {
    let (sections, _) = sections(&format!("[variables]\n{text}"));
    let all = sections.iter().flat_map(|section| section.options.in_order());
    all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[derive(Default)]
struct IniReader {
    found: Vec<IniSection>,
    wrong: Vec<usize>,
    options: usize,
    /// Section to which lines are added.
    section: Option<usize>,
    /// Option that a line can continue, with the indentation of its line.
    open: Option<(String, usize)>,
}

impl IniReader {
    /// Takes a line; false if it is invalid, or over the limit.
    fn line(&mut self, line: &str) -> bool {
        let bare = without_comment(line).trim();
        let own = self.section.and_then(|at| self.found.get_mut(at));
        if bare.is_empty() {
            // An empty line is a part of a value that continues after it, a comment is not.
            if let (true, Some(section), Some((name, _))) = (line.trim().is_empty(), own, &self.open) {
                section.options.continue_value(name, "");
            }
            return true;
        }
        let indent = line.chars().take_while(|c| c.is_whitespace()).count();
        if let (Some(section), Some((name, _))) = (own, self.open.as_ref().filter(|(_, own)| indent > *own)) {
            section.options.continue_value(name, bare);
            return true;
        }
        let header = bare.strip_prefix('[').and_then(|rest| rest.rsplit_once(']'));
        if let Some((name, _)) = header.filter(|(name, _)| !name.is_empty()) {
            self.open = None;
            let at = self.found.iter().position(|section| section.name == name);
            self.section = at.or_else(|| {
                self.options += 1;
                self.found.push(IniSection { name: name.to_owned(), options: OptionList::default() });
                Some(self.found.len() - 1)
            });
            return self.options <= OPTIONS_LIMIT;
        }
        let section = self.section.and_then(|at| self.found.get_mut(at));
        match (section, bare.split_once('=')) {
            (Some(section), Some((name, value)))
                if !name.trim().is_empty() && self.options < OPTIONS_LIMIT =>
            {
                let name = name.trim();
                section.options.set(name, value.trim().to_owned());
                self.open = Some((name.to_owned(), indent));
                self.options += 1;
                true
            }
            _ => false,
        }
    }
}

fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with(['#', ';']) {
        return "";
    }
    let starts = |at: usize| line[..at].ends_with(char::is_whitespace);
    line.match_indices('#').find(|(at, _)| starts(*at)).map_or(line, |(at, _)| &line[..at])
}
