//! A run as text, the answer last: the same after it was measured and later.

use model::vocabulary::Command;
use report::hunt;
use report::hunt::typical::InvolvedRun;
use report::last_lines::RunPlace;
use report::run::{answer, table};

use super::outputs::Screen;

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The numbers.
    Brief,
    /// What an engineer asks, the answer last.
    Answer,
    /// The conditions and what the recorder says of itself as well.
    All,
}

impl Detail {
    /// As the flags `-q` and `-v` ask for it.
    pub fn of(quiet: bool, verbose: bool) -> Detail {
        match (quiet, verbose) {
            (true, _) => Detail::Brief,
            (false, true) => Detail::All,
            (false, false) => Detail::Answer,
        }
    }
}

/// The run with its answer.
pub fn run_text<'a>(
    run: impl Into<InvolvedRun<'a>>,
    place: Option<RunPlace>,
    detail: Detail,
    screen: Screen,
) -> String {
    let InvolvedRun { run, involved } = run.into();
    let known = (run, &*involved);
    let Screen { columns, color } = screen;
    let hunted = run.command == Command::Hunt;
    let text = match (hunted, detail) {
        (true, Detail::Brief) => hunt::text::brief(known, columns, color),
        (true, Detail::Answer) => hunt::text::summary(known, columns, color),
        (true, Detail::All) => hunt::text::render(known, columns, color),
        (false, Detail::Brief) => table::brief(run, columns, color),
        (false, Detail::Answer) => table::summary(run, columns, color),
        (false, Detail::All) => table::render(run, columns, color),
    };
    match detail {
        Detail::Brief => match place.filter(|place| place.fresh) {
            Some(place) => format!("{text}kept in {}\n", place.path),
            None => text,
        },
        _ if hunted => text + &hunt::last_words::render(known, place, columns, color),
        _ => text + &answer::render(run, place, columns, color),
    }
}
