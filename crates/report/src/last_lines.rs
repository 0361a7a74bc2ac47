//! Answer of a command as the last lines on a terminal: a row per question, few enough that none
//! scrolls away.

use crate::palette::{BOLD, PLAIN, Palette, Style};
use crate::words::filled;

/// Limit of the lines of an answer on a terminal of 80 columns.
pub const MOST_LINES: usize = 8;
/// Columns of a row's name and the blanks after it.
const NAME: usize = 8;

/// Rows, in their order.
#[derive(Clone, Debug, Default)]
pub struct LastLines {
    rows: Vec<AnswerRow>,
    /// Path of the run, quoted for a shell: never broken, so that it can be copied.
    kept_in: Option<String>,
}

#[derive(Clone, Debug)]
struct AnswerRow {
    name: &'static str,
    text: String,
    style: Style,
    /// Indent of further lines, in columns beyond that of the names.
    hang: usize,
}

/// Location of the run that is reported.
#[derive(Clone, Copy, Debug)]
pub struct RunPlace<'a> {
    /// Path, quoted for a shell.
    pub path: &'a str,
    /// True if it is the newest in the user's folder, which commands take by default.
    pub newest: bool,
    /// True if it was written just now.
    pub fresh: bool,
    /// Words that call onbeat: with `sudo` if root's folder has the run, which others cannot read.
    pub program: &'a str,
}

impl RunPlace<'_> {
    /// Command that reads it.
    pub fn command(&self, verb: &str, flags: &str) -> String {
        let run = if self.newest { String::new() } else { format!(" {}", self.path) };
        let blank = if flags.is_empty() { "" } else { " " };
        format!("{} {verb}{run}{blank}{flags}", self.program)
    }
}

impl LastLines {
    /// Adds a row, unless its text is empty.
    pub fn row(&mut self, name: &'static str, text: impl Into<String>) -> &mut LastLines {
        self.styled(name, text, PLAIN)
    }

    /// Adds a row in a style.
    pub fn styled(&mut self, name: &'static str, text: impl Into<String>, style: Style) -> &mut LastLines {
        self.push(AnswerRow { name, text: text.into(), style, hang: 0 })
    }

    /// Adds a row that belongs to the one above: indented, without a name.
    pub fn below(&mut self, text: impl Into<String>, hang: usize) -> &mut LastLines {
        self.push(AnswerRow { name: "", text: text.into(), style: PLAIN, hang })
    }

    /// Sets the path for the last line, if the run was written just now.
    pub fn location(&mut self, place: Option<RunPlace>) -> &mut LastLines {
        self.kept_in = place.filter(|place| place.fresh).map(|place| place.path.to_owned());
        self
    }

    fn push(&mut self, row: AnswerRow) -> &mut LastLines {
        if !row.text.is_empty() {
            self.rows.push(row);
        }
        self
    }

    /// Rows as text of up to this number of columns, below an empty line.
    pub fn render(&self, width: usize, palette: Palette) -> String {
        let mut page = String::from("\n");
        for row in &self.rows {
            let indent = " ".repeat(if row.name.is_empty() { row.hang } else { 0 });
            let first = format!("{}{indent}", palette.paint(BOLD, &format!("{:<NAME$}", row.name)));
            let mut text = String::new();
            filled(&mut text, &first, &row.text, NAME + row.hang, width);
            let (name, rest) = text.split_at(first.len());
            page.push_str(name);
            page.push_str(&palette.paint(row.style, rest.trim_end()));
            page.push('\n');
        }
        page += &self.kept_in.as_ref().map_or_else(String::new, |path| format!("kept in {path}\n"));
        page
    }

    /// Number of lines at this width.
    pub fn lines(&self, width: usize) -> usize {
        self.render(width, Palette(false)).lines().count() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::palette::RED;

    #[test]
    fn rows_stand_beside_their_names_and_colour_moves_nothing() {
        let mut answer = LastLines::default();
        answer.row("late", "one two three four five six").row("none", "").styled("fair", "no", RED);
        answer.below("more", 2);
        let plain = answer.render(26, Palette(false));
        assert_eq!(plain, "\nlate    one two three four\n        five six\nfair    no\n          more\n");
        assert_eq!(answer.lines(26), 4);
        let coloured = without_colour(&answer.render(26, Palette(true)));
        assert_eq!(coloured, plain);
    }

    /// Text without its escape sequences.
    fn without_colour(text: &str) -> String {
        let mut plain = String::new();
        let mut parts = text.split('\u{1b}');
        plain += parts.next().unwrap_or_default();
        parts.for_each(|part| plain += part.split_once('m').map_or("", |(_, rest)| rest));
        plain
    }

    #[test]
    fn commands_name_the_run_unless_it_is_the_newest() {
        let place = |newest| RunPlace { path: "'a b'", newest, fresh: false, program: "onbeat" };
        assert_eq!(place(true).command("report", "--open"), "onbeat report --open");
        assert_eq!(place(false).command("explain", ""), "onbeat explain 'a b'");
        let of_root = RunPlace { program: "sudo onbeat", ..place(true) };
        assert_eq!(of_root.command("audit --hunt", ""), "sudo onbeat audit --hunt");
    }
}
