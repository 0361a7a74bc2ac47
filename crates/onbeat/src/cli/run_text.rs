//! Text of a run, with the answer last; the same after the measurement and later.

use std::borrow::Cow;

use model::vocabulary::Command;
use report::hunt;
use report::hunt::typical::InvolvedRun;
use report::last_lines::RunPlace;
use report::run::{answer, table};

use super::outputs::Screen;

/// Amount of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Table and answer.
    Brief,
    /// Summary for an engineer, with the answer last.
    Answer,
    /// Also the conditions and the recorder's account.
    All,
}

impl Detail {
    /// Amount of output by the flags `-q` and `-v`.
    pub fn of(quiet: bool, verbose: bool) -> Detail {
        match (quiet, verbose) {
            (true, _) => Detail::Brief,
            (false, true) => Detail::All,
            (false, false) => Detail::Answer,
        }
    }
}

/// Text of a run with its answer.
pub fn run_text<'a>(
    run: impl Into<InvolvedRun<'a>>,
    place: Option<RunPlace>,
    detail: Detail,
    screen: Screen,
) -> String {
    let InvolvedRun { run, involved } = run.into();
    let known = InvolvedRun { run, involved: Cow::Borrowed(&*involved) };
    let Screen { columns, color } = screen;
    let hunted = run.command == Command::Hunt;
    let text = match (hunted, detail) {
        (true, Detail::Brief) => hunt::text::brief(known.clone(), columns, color),
        (true, Detail::Answer) => hunt::text::summary(known.clone(), columns, color),
        (true, Detail::All) => hunt::text::render(known.clone(), columns, color),
        (false, Detail::Brief) => table::brief(run, columns, color),
        (false, Detail::Answer) => table::summary(run, columns, color),
        (false, Detail::All) => table::render(run, columns, color),
    };
    let answer = if hunted {
        hunt::last_words::render(known, place, columns, color)
    } else {
        answer::render(run, place, columns, color)
    };
    text + &answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::Run;

    #[test]
    fn a_quiet_run_keeps_its_table_and_its_answer() {
        for command in [Command::Measure, Command::Hunt, Command::Probe] {
            let run = Run { command: command.into(), ..Run::default() };
            let place = RunPlace { path: "/runs/x", newest: true, fresh: true, program: "onbeat" };
            let screen = Screen { columns: 80, color: false };
            let of = |detail| run_text(&run, Some(place), detail, screen);
            let answer = |text: &str| text.rsplit_once("\n\n").map(|(_, answer)| answer.to_owned());
            let quiet = of(Detail::Brief);
            for row in ["late ", "fair ", "next ", "kept in /runs/x"] {
                assert!(quiet.contains(&format!("\n{row}")), "{row}: {quiet}");
            }
            assert_eq!(answer(&quiet), answer(&of(Detail::Answer)));
        }
    }
}
