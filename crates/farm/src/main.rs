//! The binary: arguments in, exit code out. Everything else is in the library.

// The only place that accesses the process: its arguments, its environment, its end.
#![allow(clippy::disallowed_methods)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let variable = |name: &str| std::env::var_os(name);
    let objects = farm::objects::ObjectKeys {
        id: variable("AWS_ACCESS_KEY_ID"),
        secret: variable("AWS_SECRET_ACCESS_KEY"),
        session: variable("AWS_SESSION_TOKEN"),
        region: variable("AWS_REGION"),
        endpoint: variable("AWS_ENDPOINT_URL"),
    };
    let environment = farm::cli::FarmEnvironment {
        state_home: variable("XDG_STATE_HOME"),
        home: variable("HOME"),
        temporary: variable("TMPDIR"),
        has_display: variable("DISPLAY").or_else(|| variable("WAYLAND_DISPLAY")).is_some(),
        dumb: variable("TERM").is_none_or(|value| value == "dumb"),
        objects,
    };
    ExitCode::from(farm::cli::run(std::env::args_os(), &environment))
}
