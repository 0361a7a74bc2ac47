//! Refusals of a command line, of this program and of the farm's.

use clap::error::ErrorKind;
use model::error::Exit;
use model::usage::sentence_of;

/// Prints help or a version, or gives `say` the refusal in one line; returns the exit code.
pub fn refused(error: &clap::Error, say: impl Fn(&str)) -> u8 {
    let why = match error.kind() {
        _ if !error.use_stderr() => {
            let _ = error.print();
            return Exit::Ok as u8;
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "a command is missing".to_owned(),
        _ => sentence_of(&error.render().to_string()),
    };
    say(&format!("{why} (see --help)"));
    Exit::Usage as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn a_refusal_is_one_line_with_a_remedy() {
        let lines = RefCell::new(Vec::new());
        let asked = |args: &[&str]| {
            let command = crate::cli::command().arg_required_else_help(true);
            let error = command.try_get_matches_from(args).expect_err("a refusal");
            refused(&error, |line| lines.borrow_mut().push(line.to_owned()))
        };
        assert_eq!([asked(&["onbeat-push", "--zz"]), asked(&["onbeat-push"])], [Exit::Usage as u8; 2]);
        let expected =
            ["unexpected argument '--zz' found: remove it (see --help)", "a command is missing (see --help)"];
        assert_eq!(lines.into_inner(), expected);
    }
}
