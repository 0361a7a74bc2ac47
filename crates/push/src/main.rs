//! The binary: arguments in, exit code out. Everything else is in the library.

// The one place that knows the process: its arguments, its environment, its end.
#![allow(clippy::disallowed_methods)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let variable = |name: &str| std::env::var_os(name);
    let environment =
        push::cli::PushEnvironment { state_home: variable("XDG_STATE_HOME"), home: variable("HOME") };
    ExitCode::from(push::cli::run(std::env::args_os(), &environment))
}
