//! Manual pages and completions of a program, as the program itself prints them.

use std::path::Path;

use super::contents::{Package, Shell};
use super::programs::PackagedProgram;
use crate::tools::{Result, Tool};

const SHELLS: [(Shell, &str); 3] = [(Shell::Bash, "bash"), (Shell::Zsh, "zsh"), (Shell::Fish, "fish")];

/// Pages and completions of a program.
pub struct Manual {
    /// Names of the pages without section, and their roff.
    pub pages: Vec<(String, String)>,
    pub completions: Vec<(Shell, String)>,
}

impl Manual {
    /// The manual of a package's program, printed by a program for this machine.
    pub fn of(package: &Package, printer: &PackagedProgram) -> Result<Manual> {
        let of = package.described_as.map(|name| ["--of", name]).into_iter().flatten();
        let of: Vec<&str> = of.collect();
        let print = |args: &[&str]| Tool::new(&printer.path).args(args).args(&of).quiet().text();
        let completions = SHELLS.into_iter().map(|(shell, word)| Ok((shell, print(&["completions", word])?)));
        let completions = completions.collect::<Result<_>>()?;
        Ok(Manual { pages: pages(&printer.path, package.name, &of)?, completions })
    }
}

/// The page of the program, and those of its subcommands, each of which lists its own.
fn pages(printer: &Path, name: &str, of: &[&str]) -> Result<Vec<(String, String)>> {
    let (mut pages, mut open) = (Vec::new(), vec![name.to_owned()]);
    while let Some(page) = open.pop() {
        let words = page.strip_prefix(name).unwrap_or_default().split('-').filter(|word| !word.is_empty());
        let roff = Tool::new(printer).args(["man"]).args(words).args(of).quiet().text()?;
        open.extend(subpages(&roff, &page));
        pages.push((page, roff));
    }
    pages.sort_unstable();
    Ok(pages)
}

/// Names of the pages of a page's subcommands; `help` prints what they have.
fn subpages(roff: &str, page: &str) -> Vec<String> {
    let names = roff.lines().filter_map(|line| line.strip_suffix("(1)")).map(|name| name.replace('\\', ""));
    let below = format!("{page}-");
    names.filter(|name| name.starts_with(&below) && *name != format!("{below}help")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_lists_those_of_its_subcommands() {
        let roff = ".TH onbeat-tune 1\n.SH SUBCOMMANDS\n.TP\nonbeat\\-tune\\-plan(1)\nPrint the changes\n\
                    .TP\nonbeat\\-tune\\-apply(1)\nonbeat\\-tune\\-help(1)\nSee onbeat(1)\n";
        assert_eq!(subpages(roff, "onbeat-tune"), ["onbeat-tune-plan", "onbeat-tune-apply"]);
        assert!(subpages(roff, "onbeat-tune-plan").is_empty());
    }
}
