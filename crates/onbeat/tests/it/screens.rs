//! Screens: sessions in `tests/screens`, each command with its whole output and exit code.
//!
//! `TRYCMD=overwrite` writes them again; read the difference.

/// Checks the sessions of a folder, on a terminal of this width and 24 rows.
fn are_as_they_were(columns: &str, sessions: &str) {
    trycmd::TestCases::new()
        .env("COLUMNS", columns)
        .env("LINES", "24")
        .env("TERM", "dumb")
        .register_bin("onbeat", std::path::Path::new(env!("CARGO_BIN_EXE_onbeat")))
        .case(sessions);
}

#[test]
fn the_screens_are_as_they_were() {
    are_as_they_were("80", "../../tests/screens/*.trycmd");
}

#[test]
fn the_screens_of_a_narrow_terminal_are_as_they_were() {
    are_as_they_were("40", "../../tests/screens/columns-40/*.trycmd");
    are_as_they_were("60", "../../tests/screens/columns-60/*.trycmd");
}

#[test]
fn the_screens_of_a_wide_terminal_are_as_they_were() {
    are_as_they_were("120", "../../tests/screens/columns-120/*.trycmd");
}
