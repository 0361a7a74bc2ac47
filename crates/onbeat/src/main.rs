//! The binary: arguments in, exit code out. Everything else is in the library.

// Only this file accesses the process: its arguments, its environment, its end.
#![allow(clippy::disallowed_methods)]

use std::process::ExitCode;

/// Allocator that keeps freed memory: see `host::rt::disable_heap_trimming`, the same for glibc.
#[cfg(target_env = "musl")]
#[global_allocator]
static HEAP: host::heap::Heap = host::heap::Heap::new();

fn main() -> ExitCode {
    host::rt::map_page_by_page();
    host::rt::ignore_file_size_signal();
    let args: Vec<_> = std::env::args_os().collect();
    let number = |name| std::env::var(name).ok().and_then(|value| value.trim().parse().ok());
    let environment = onbeat::cli::Environment {
        state_home: std::env::var_os("XDG_STATE_HOME"),
        home: std::env::var_os("HOME"),
        command_line: args.iter().map(|arg| arg.to_string_lossy()).collect::<Vec<_>>().join(" "),
        dumb: std::env::var_os("TERM").is_none_or(|value| value == "dumb"),
        columns: number("COLUMNS"),
        lines: number("LINES"),
        over_ssh: std::env::var_os("SSH_CONNECTION").is_some_and(|value| !value.is_empty()),
        display: ["DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())),
        invoked_by: [("SUDO_USER", "sudo"), ("DOAS_USER", "doas")]
            .into_iter()
            .find_map(|(name, by)| Some(onbeat::cli::Caller { user: std::env::var(name).ok()?, by })),
        no_color: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
    };
    ExitCode::from(onbeat::cli::run(args, &environment))
}
