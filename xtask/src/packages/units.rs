//! Units of systemd in the packages. Each text has one source: the program, a page of the
//! documentation, or a file; only the folder of the programs differs.

use crate::tools::{Result, read, root};

/// Source of a unit.
#[derive(Clone, Copy, Debug)]
pub enum UnitText {
    /// The program: `onbeat watch --unit`.
    Watch,
    /// The block of a page that names the unit's file in the line above it.
    Page(&'static str),
    /// A file of the repository.
    File(&'static str),
}

/// Folder of the programs in the pages, which is also that of the tarball.
const OF_PAGES: &str = "/usr/local/bin/";

/// Text of a unit for programs below a prefix.
pub fn text(name: &str, source: UnitText, prefix: &str) -> Result<String> {
    let programs = format!("{prefix}/bin/");
    let file = |path: &str| Ok::<_, String>(String::from_utf8_lossy(&read(&root().join(path))?).into_owned());
    Ok(match source {
        UnitText::Watch => {
            onbeat::cli::watch_unit(&format!("{programs}onbeat")).map_err(|failure| failure.to_string())?
        }
        UnitText::Page(path) => {
            let page = file(path)?;
            let block = block(&page, name).ok_or_else(|| format!("{path}: no block for `{name}`"))?;
            block.replace(OF_PAGES, &programs)
        }
        UnitText::File(path) => file(path)?.replace(OF_PAGES, &programs),
    })
}

/// The `ini` block below a line that names this file.
fn block<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let mut parts = page.split("```ini\n");
    let mut above = parts.next()?;
    parts.find_map(|part| {
        let line = above.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        above = part;
        let is_named = [format!("/{name}`"), format!("`{name}`")].iter().any(|word| line.contains(word));
        if is_named { part.split("```").next() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::contents::ALL;

    #[test]
    fn every_unit_starts_a_packaged_program_and_is_disabled() {
        for (name, source) in ALL.iter().flat_map(|package| package.units) {
            let unit = text(name, *source, "/usr").unwrap();
            assert!(unit.starts_with("[Unit]\n") && unit.ends_with('\n'), "{name}");
            assert!(!unit.contains("/usr/local"), "{name}");
            let starts = unit.lines().filter_map(|line| line.strip_prefix("ExecStart="));
            let known = |line: &str| ALL.iter().any(|package| line.contains(&format!("{} ", package.name)));
            assert!(starts.into_iter().all(known), "{name}");
        }
    }

    #[test]
    fn a_unit_of_a_page_is_the_block_below_its_name() {
        let page = "In `/etc/a.service`:\n\n```ini\n[Unit]\n```\n\nand `a.timer`:\n\n```ini\n[Timer]\n```\n";
        assert_eq!(block(page, "a.service"), Some("[Unit]\n"));
        assert_eq!(block(page, "a.timer"), Some("[Timer]\n"));
        assert_eq!(block(page, "b.timer"), None);
    }

    #[test]
    fn the_unit_of_a_watch_is_the_one_that_the_program_prints() {
        let unit = text("onbeat-watch.service", UnitText::Watch, "/usr").unwrap();
        assert!(unit.contains("\nExecStart=/usr/bin/onbeat watch -o /var/lib/onbeat/watch"), "{unit}");
        let here = std::env::current_exe().unwrap();
        assert!(!unit.contains(&here.display().to_string()));
    }
}
