//! Pages in a browser. For every page: the main result on the first screen, nothing wider than the
//! window, no request, no finding of axe-core if npm provides it. A hunt's page is operated as by a
//! reader: click, keys, address, filter, zoom, CPUs, print. Without a browser it is skipped.
//!
//! The page's policy permits only its own script, so a copy without that policy is tested; the
//! policy itself is tested on the unmodified page.

use std::path::{Path, PathBuf};
use std::time::Duration;

mod axe;
mod farm;
mod pages;

use crate::tally::{StepOutcome, Tally};
use crate::tools::{self, Result, Tool, target};

/// Names under which it is installed.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// A computer's window, and a telephone's.
const SIZES: [&str; 2] = ["1280,900", "400,900"];
const CHECK: &str = include_str!("check.js");
const EVERY_PAGE: &str = include_str!("every_page.js");
/// A window that is not shown draws no frames to wait for.
const FRAMES: &str = "<script>requestAnimationFrame=(act)=>setTimeout(act,0)</script>";
/// Elements that are visible and hidden on paper.
const PRINT: &str = "const seen=(words)=>getComputedStyle(document.querySelector(words)).display!=='none';\
    const pre=document.createElement('pre');pre.id='browser-check';\
    pre.textContent=[['#ask',false],['.still',true],['.still svg',true],['#ask-list table',true]]\
    .map(([words,there])=>(seen(words)===there?'ok: ':'not as on paper: ')+words).join('\\n');\
    document.body.append(pre);";

/// The checks as a separate command.
pub fn run() -> Result<()> {
    let mut tally = Tally::default();
    all(&mut tally);
    tally.close()
}

/// The browser that is there.
pub fn installed_browser() -> Option<&'static str> {
    BROWSERS.into_iter().find(|name| tools::on_path(name))
}

/// All checks of the browser that is there.
pub fn all(tally: &mut Tally) {
    let Some(browser) = installed_browser() else {
        return tally.note("browser", StepOutcome::LeftOut("no Chromium found".to_owned()));
    };
    let page = match pages::hunt() {
        Ok(page) => page,
        Err(why) => return tally.note("browser", StepOutcome::Failed(why)),
    };
    let driven = driven(&page, CHECK);
    for size in SIZES {
        tally.note(format!("browser, {size}"), judge(browser, "driven", &driven, size));
    }
    every_page(browser, &page, tally);
    let paper = page.replace("@media print{", "@media all{").replace("@media screen{", "@media not all{");
    tally.note("browser, print", judge(browser, "print", &self::driven(&paper, PRINT), "1280,900"));
    let own = dump(browser, "own", &page, "1280,900").and_then(|text| {
        if text.contains("class=\"asked\"") {
            Ok(())
        } else {
            Err("the page's policy does not let its own script run".to_owned())
        }
    });
    tally.note("browser, policy", StepOutcome::from(own));
}

/// Checks for each page, on a computer and on a telephone.
fn every_page(browser: &str, hunt: &str, tally: &mut Tally) {
    let axe = axe::script();
    let mut pages: Vec<(String, Result<String>)> =
        pages::all(hunt).into_iter().map(|(name, page)| (name.to_owned(), page)).collect();
    match farm::pages() {
        Ok(all) => pages.extend(all.into_iter().map(|(name, page)| (name, Ok(page)))),
        Err(why) => pages.push(("the farm".to_owned(), Err(why))),
    }
    // Two at a time: a browser waits for itself most of the time.
    let halves = [0, 1].map(|half| pages.iter().skip(half).step_by(2).collect::<Vec<_>>());
    let looked_at = std::thread::scope(|scope| {
        let looks = halves.map(|half| {
            let look = || half.into_iter().map(|(name, page)| looks_at(browser, name, page, &axe)).collect();
            scope.spawn(look)
        });
        looks.map(|look| look.join().unwrap_or_else(|_| vec![vec![none_looked()]]))
    });
    for (name, outcome) in looked_at.into_iter().flatten().flatten() {
        tally.note(name, outcome);
    }
}

fn none_looked() -> (String, StepOutcome) {
    ("pages".to_owned(), StepOutcome::Failed("the check itself failed".to_owned()))
}

/// Checks of a page in both widths, and of axe-core, by day on a computer and by night on a
/// telephone. One start of the browser shows all four, each in a separate frame.
fn looks_at(
    browser: &str,
    name: &str,
    page: &Result<String>,
    axe: &Result<String>,
) -> Vec<(String, StepOutcome)> {
    let mut frames = Vec::new();
    if let Ok(page) = page {
        let driven = self::driven(page, EVERY_PAGE);
        frames.extend([("-wide", 1280, driven.clone()), ("-narrow", 400, driven)]);
        if let Ok(axe) = axe {
            let [day, night] = axe::day_and_night(page, axe);
            frames.extend([("-day", 1280, day), ("-night", 400, night)]);
        }
    }
    let text = page.clone().and_then(|_| dump(browser, name, &framed(&frames), SIZES[0]));
    let seen = |frame: &str| StepOutcome::from(text.clone().and_then(|text| judged(&text, frame)));
    let heard = match (axe, seen("-day")) {
        (Err(why), _) => StepOutcome::LeftOut(why.clone()),
        (Ok(_), StepOutcome::Passed) => seen("-night"),
        (Ok(_), other) => other,
    };
    vec![
        (format!("page of {name}, 1280 wide"), seen("-wide")),
        (format!("page of {name}, 400 wide"), seen("-narrow")),
        (format!("axe-core on the page of {name}"), heard),
    ]
}

/// Pages within a page, each with its name and its width: a window may not be as narrow as a
/// telephone's, a frame may.
fn framed(pages: &[(&str, u32, String)]) -> String {
    let frame = |(name, width, page): &(&str, u32, String)| {
        let inner = page.replace('&', "&amp;").replace('"', "&quot;");
        format!(
            "<iframe name=\"{name}\" width=\"{width}\" height=\"900\" style=\"border:0\" \
             srcdoc=\"{inner}\"></iframe>"
        )
    };
    let frames: String = pages.iter().map(frame).collect();
    // Without an encoding in the file, the browser guesses it from the first bytes.
    format!("<!DOCTYPE html><html><head><meta charset=\"utf-8\"></head><body>{frames}</body></html>")
}

/// The same for a headless browser.
fn driven(page: &str, script: &str) -> String {
    driven_by(page, script).replacen("<style>", &format!("{FRAMES}<style>"), 1)
}

/// A copy of the page that another script drives.
pub fn driven_by(page: &str, script: &str) -> String {
    let policy = page
        .find("<meta http-equiv=")
        .map_or("", |from| page[from..].find('>').map_or("", |length| &page[from..=from + length]));
    page.replacen(policy, "", 1).replace("</body>", &format!("<script>(()=>{{{script}}})();</script></body>"))
}

fn judge(browser: &str, name: &str, page: &str, size: &str) -> StepOutcome {
    StepOutcome::from(dump(browser, name, page, size).and_then(|text| judged(&text, "")))
}

/// Parses the result of one frame: a line per check.
fn judged(text: &str, frame: &str) -> Result<()> {
    let start = text.rfind(&format!("<pre id=\"browser-check{frame}\">")).ok_or("the page left no answer")?;
    let answer = text[start..].split(['>', '<']).nth(2).unwrap_or_default();
    let wrong: Vec<&str> = answer.lines().filter(|line| !line.starts_with("ok: ")).collect();
    if wrong.is_empty() && !answer.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

/// The page's elements after a while.
fn dump(browser: &str, name: &str, page: &str, size: &str) -> Result<String> {
    let folder = folder()?;
    let file = folder.join(format!("{name}.html"));
    std::fs::write(&file, page).map_err(|error| fault(&file, &error))?;
    let flags = [
        "--headless".to_owned(),
        "--no-sandbox".to_owned(),
        "--disable-gpu".to_owned(),
        format!("--user-data-dir={}", folder.join(profile()).display()),
        format!("--window-size={size}"),
        // Time that passes as soon as nothing is left to do: a slow machine sees the same.
        "--virtual-time-budget=20000".to_owned(),
        "--dump-dom".to_owned(),
        format!("file://{}", file.display()),
    ];
    Tool::new(browser).args(flags).within(Duration::from_secs(300)).text()
}

/// Name of a profile, which belongs to one browser at a time.
fn profile() -> String {
    format!("profile-{:?}", std::thread::current().id()).replace(['(', ')'], "-")
}

fn folder() -> Result<PathBuf> {
    target("browser")
}

fn fault(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
