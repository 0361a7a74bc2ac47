//! What people see: sessions in `tests/screens`, each command with its whole output and exit code.
//!
//! `TRYCMD=overwrite` writes them again; read the difference.

#[test]
fn the_screens_are_as_they_were() {
    trycmd::TestCases::new()
        .env("COLUMNS", "80")
        .env("TERM", "dumb")
        .register_bin("onbeat", std::path::Path::new(env!("CARGO_BIN_EXE_onbeat")))
        .case("../../tests/screens/*.trycmd");
}
