//! The rules of axe-core, which checks a page for users of screen readers and keyboards. It is
//! fetched by npm, in the version and with the digest of the lock file, and stays out of the
//! repository and of every page: its licence is the MPL 2.0. Without npm it is skipped.

use std::time::Duration;

use super::{FRAMES, driven_by, folder};
use crate::tools::{self, Result, Tool};

const MANIFEST: &str = include_str!("axe/package.json");
const LOCK: &str = include_str!("axe/package-lock.json");
/// Below the folder that npm fills.
const SCRIPT: &str = "node_modules/axe-core/axe.min.js";
/// Script that opens folded parts, runs the check, and prints its findings as one line per rule.
const ASK: &str = "setTimeout(()=>{\
    document.querySelectorAll('details').forEach((one)=>{one.open=true});\
    const told=(lines)=>{const pre=document.createElement('pre');pre.id='browser-check'+window.name;\
    pre.textContent=lines.join('\\n');top.document.body.append(pre)};\
    axe.run(document,{resultTypes:['violations']}).then(({violations})=>told(violations.length?\
    violations.map(({impact,id,nodes})=>\
    `${impact} ${id} at ${nodes.slice(0,3).map((node)=>node.target).join(', ')}`):\
    ['ok: no finding']),(why)=>told([String(why)]))},500)";

/// The script, or the reason for its absence.
pub fn script() -> Result<String> {
    let place = folder()?.join("axe");
    let script = place.join(SCRIPT);
    let lock = place.join("package-lock.json");
    if !script.is_file() || std::fs::read_to_string(&lock).ok().as_deref() != Some(LOCK) {
        if !tools::on_path("npm") {
            return Err("no npm found".to_owned());
        }
        // Files of an older lock file must not be used for this one.
        if place.is_dir() {
            std::fs::remove_dir_all(&place).map_err(|error| super::fault(&place, &error))?;
        }
        std::fs::create_dir_all(&place).map_err(|error| super::fault(&place, &error))?;
        tools::write(&place.join("package.json"), MANIFEST)?;
        tools::write(&lock, LOCK)?;
        let flags = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
        Tool::new("npm").args(flags).dir(&place).within(Duration::from_secs(300)).text()?;
    }
    let text = tools::read(&script)?;
    Ok(String::from_utf8_lossy(&text).replace("</script", "<\\/script"))
}

/// The page as axe-core looks at it: by day, and by night.
pub fn day_and_night(page: &str, axe: &str) -> [String; 2] {
    let day = page.replacen("<style>", &format!("{FRAMES}<style>"), 1);
    let day = driven_by(&day, &format!("{axe};{ASK}"));
    let night = day.replace("@media screen and (prefers-color-scheme:dark)", "@media screen");
    [day, night]
}
