//! The whole gate, in the order in which a mistake is cheapest to find.
//!
//! A step that fails does not hide the next one's answer, except that nothing is run that does not build.
//! No step has a limit on measured time: the benchmark is a command of its own.

use std::time::Instant;

use crate::tally::{Outcome, Tally};
use crate::tools::{Result, Tool, on_path, root};
use crate::{dist, docs, live};

/// Runs everything; the last line counts it.
pub fn run() -> Result<()> {
    let mut tally = Tally::default();
    step(&mut tally, "format", || cargo(&["fmt", "--all", "--check"]));
    let built = step(&mut tally, "clippy", || {
        cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])
    });
    // Clippy fails on warnings too; the tests still have something to say then.
    let built =
        built || step(&mut tally, "build", || cargo(&["build", "--workspace", "--all-targets", "--quiet"]));
    if !built {
        for name in ["tests", "documentation", "fuzz targets", "dist", "live"] {
            tally.note(name, Outcome::LeftOut("it does not build".to_string()));
        }
        return tally.close();
    }
    step(&mut tally, "tests", || cargo(&["test", "--workspace", "--no-fail-fast"]));
    generated(&mut tally);
    fuzz(&mut tally);
    if step(&mut tally, "dist", || dist::build(std::env::consts::ARCH).map(drop)) {
        tally.take(live::all_machines(&live::Options::default()));
    } else {
        tally.note("live", Outcome::LeftOut("there is no static binary".to_string()));
    }
    tally.close()
}

fn step(tally: &mut Tally, name: &str, run: impl FnOnce() -> Result<()>) -> bool {
    println!("\n== {name}");
    let start = Instant::now();
    let result = run();
    let passed = result.is_ok();
    println!("  {} s", start.elapsed().as_secs());
    tally.note(name, Outcome::from(result));
    passed
}

fn generated(tally: &mut Tally) {
    if docs::PAGES.is_empty() {
        tally.note("generated pages", Outcome::LeftOut("there is none yet".to_string()));
    } else {
        step(tally, "generated pages", docs::check);
    }
}

/// Fuzzing takes a nightly compiler; that the targets still fit the library does not.
fn fuzz(tally: &mut Tally) {
    if root().join("fuzz/Cargo.toml").exists() {
        step(tally, "fuzz targets", || cargo(&["check", "--quiet", "--manifest-path", "fuzz/Cargo.toml"]));
        if !on_path("cargo-fuzz") {
            let why = "cargo-fuzz is not installed; the targets were type-checked";
            tally.note("fuzz targets with instrumentation", Outcome::LeftOut(why.to_string()));
        } else {
            step(tally, "fuzz targets with instrumentation", || cargo(&["+nightly", "fuzz", "build"]));
        }
    } else {
        tally.note("fuzz targets", Outcome::LeftOut("there is none yet".to_string()));
    }
}

fn cargo(args: &[&str]) -> Result<()> {
    Tool::new("cargo").args(args).dir(&root()).show()
}
