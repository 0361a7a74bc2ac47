//! The static binary's bytes, by the crates that they are of: the page `docs/bench.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::tools::{Result, read, root, write};
use crate::{dist, elf};

/// A crate with less than this is in the last row.
const LEAST: u64 = 20_000;

/// Builds the static binary, and writes and prints the page.
pub fn run() -> Result<()> {
    let page = page(&dist::build(std::env::consts::ARCH)?)?;
    write(&root().join("docs/bench.md"), &page)?;
    print!("{page}");
    Ok(())
}

fn page(binary: &Path) -> Result<String> {
    let (whole, symbols) = (read(binary)?.len() as u64, read(&dist::symbols_of(binary))?);
    let mut of_crates: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    // Identical functions are merged, with several names.
    let mut seen = BTreeSet::new();
    for (name, at, bytes) in elf::functions(&symbols)? {
        if seen.insert(at) {
            let row = of_crates.entry(crate_of(name)).or_default();
            *row = (row.0 + bytes, row.1 + 1);
        }
    }
    let code: u64 = of_crates.values().map(|row| row.0).sum();
    let mut rows: Vec<(&str, (u64, u64))> = of_crates.into_iter().collect();
    rows.sort_by_key(|&(name, row)| (std::cmp::Reverse(row), name));
    let few = rows.partition_point(|(_, row)| row.0 >= LEAST);
    let rest = rows.split_off(few).into_iter().fold((0, 0), |sum, (_, row)| (sum.0 + row.0, sum.1 + row.1));
    rows.push(("the others", rest));
    let rows = rows.iter().map(|(name, (bytes, functions))| row(name, *bytes, Some(*functions)));
    let table: String = rows.chain([row("texts, tables, headers", whole - code, None)]).collect();
    Ok(format!(
        "# The size of the static binary\n\nMade by `cargo xtask sizes`, for {}: {} kB without symbols.\n\
         A copy of a generic function counts for the crate that has asked for it.\n\n\
         | crate | kB | functions |\n|---|---|---|\n{table}",
        std::env::consts::ARCH,
        whole / 1000
    ))
}

fn row(name: &str, bytes: u64, functions: Option<u64>) -> String {
    let functions = functions.map(|count| count.to_string()).unwrap_or_default();
    format!("| {name} | {} | {functions} |\n", bytes / 1000)
}

/// The crate that a function is of, by its mangled name.
///
/// Source: the Rust reference of version 0, "Symbol grammar": `_R`, a path with its crate's root
/// (`C`, `s` and a number to base 62, `_`, length, name), and at the end, for a copy of a generic
/// function, the root of the instantiating crate, or `B`, its position, and `_`.
fn crate_of(name: &str) -> &str {
    let symbol = name.split('.').next().unwrap_or_default();
    let Some(path) = symbol.strip_prefix("_R") else { return "C and assembler" };
    let asked_for = path.rmatch_indices('C').find_map(|(at, _)| root_at(path, at, true));
    let earlier =
        || path.strip_suffix('_').and_then(|path| root_at(path, number_62(path.rsplit('B').next()?)?, false));
    let own = || path.match_indices('C').find_map(|(at, _)| root_at(path, at, false));
    asked_for.or_else(earlier).or_else(own).unwrap_or("unknown")
}

/// Name of the crate whose root is there; with `last`, only at the end of the path.
fn root_at(path: &str, at: usize, last: bool) -> Option<&str> {
    let rest = path.get(at..)?.strip_prefix('C')?;
    let rest =
        rest.strip_prefix('s').map_or(Some(rest), |rest| rest.split_once('_').map(|(_, rest)| rest))?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (length, name) = rest.split_at_checked(digits)?;
    let name = name.strip_prefix('_').unwrap_or(name);
    let length: usize = length.parse().ok()?;
    let name = if last { (name.len() == length).then_some(name)? } else { name.get(..length)? };
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_').then_some(name)
}

/// A number to base 62 as in `B2_`: an empty one is 0, and any other is one more.
fn number_62(digits: &str) -> Option<usize> {
    const DIGITS: &str = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let number = digits
        .chars()
        .try_fold(0usize, |sum, digit| sum.checked_mul(62)?.checked_add(DIGITS.find(digit)?))?;
    if digits.is_empty() { Some(0) } else { number.checked_add(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_counts_for_the_crate_that_asked_for_it() {
        for (name, of) in [
            ("_RNvNtCs1a_4host5clock3now", "host"),
            ("_RINvNtCs1_4core3ptr4dropNtCs2_5model3RunECs3_6bundle", "bundle"),
            ("_RINvNtCs1_4core3ptr4dropNtCs2_5model3RunEBo_", "model"),
            (
                "_RNvXso_NtCslNYArtu3iFV_5alloc3vecINtB5_3VecNtNtNtCsduwmD7cSIQq_5gimli4read6abbrev22Attr\
              ibuteSpecificationENtNtNtCsgEmfK2I1SDS_4core3ops4drop4Drop4dropBL_",
                "gimli",
            ),
            ("memcpy", "C and assembler"),
            ("_RNvC6_123foo3bar.llvm.7", "123foo"),
        ] {
            assert_eq!(crate_of(name), of, "{name}");
        }
    }
}
