//! The generated pages: each a path and the function that writes it, kept fresh by the gate.

use crate::tools::{Result, root, write};

/// A page below the workspace's folder, and what it should hold.
type Page = (&'static str, fn() -> String);

/// Every generated page.
pub const PAGES: &[Page] = &[("docs/cli.md", onbeat::cli::reference)];

/// `docs` writes the pages, `docs --check` names the stale ones.
pub fn run(args: &[String]) -> Result<()> {
    match args {
        [] => PAGES.iter().try_for_each(|(path, make)| write(&root().join(path), make())),
        [flag] if flag == "--check" => check(),
        _ => Err("docs takes --check or nothing".to_string()),
    }
}

/// An error that names the pages whose text is not what their function writes.
pub fn check() -> Result<()> {
    let fresh =
        |(path, make): &&Page| std::fs::read_to_string(root().join(path)).is_ok_and(|text| text == make());
    let stale: Vec<&str> = PAGES.iter().filter(|page| !fresh(page)).map(|(path, _)| *path).collect();
    if stale.is_empty() { Ok(()) } else { Err(format!("run `cargo xtask docs`; stale: {}", stale.join(" "))) }
}
