//! Results that are kept with all their events (`--keep`), and scored again with the current
//! explanation (`--again`): a change of the explanation is judged on the same spikes, without a
//! boot.

use std::path::{Path, PathBuf};

use super::traced;
use super::trial::Trial;
use crate::dist;
use crate::live::frames::{Files, Reply};
use crate::live::machine::Machine;
use crate::live::tree::{self, Tree};
use crate::tools::{Result, Tool, read, target, write};

/// Texts of a series besides the bundle.
const TEXTS: [&str; 4] = ["log", "stops", "stalls", "cycles"];

fn place(machine: &Machine, trial: &Trial) -> Result<PathBuf> {
    target(&format!("lab/answers/{}/{}", machine.name, trial.name()))
}

/// Keeps the parts of a reply; a reply without a bundle is not kept.
pub fn store(machine: &Machine, trial: &Trial, reply: &Reply) -> Result<()> {
    if !reply.files.contains_key("bundle") {
        return Ok(());
    }
    let bundle = tree::of(reply, "bundle", machine.name)?;
    let place = place(machine, trial)?;
    std::fs::remove_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    tree::store(&bundle, &place.join("bundle"))?;
    for label in TEXTS {
        if let Ok(text) = reply.file(label) {
            write(&place.join(label), text)?;
        }
    }
    Ok(())
}

/// Replaces the run of a series derived from a recording by the derived bundle's explanation.
pub fn made_of(machine: &Machine, trial: &Trial, reply: &mut Reply) -> Result<()> {
    if trial.is_made() {
        reply.files.remove("run");
    } else if trial.trace_flags().is_none() {
        return Ok(());
    }
    let onbeat = dist::output_path(machine.arch)?.display().to_string();
    let files = derived_answer(machine, trial, tree::of(reply, "bundle", machine.name)?, &onbeat)?;
    reply.files.extend(files);
    Ok(())
}

/// Explanation of the bundle that is derived from the recorded one.
fn derived_answer(machine: &Machine, trial: &Trial, bundle: Tree, onbeat: &str) -> Result<Files> {
    let (bundle, stops) = trial.made(bundle)?;
    let place = scratch(machine)?;
    std::fs::remove_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    tree::store(&bundle, &place)?;
    if let Some(flags) = trial.trace_flags() {
        let answer = explain(onbeat, &place.join(traced::TRACE), &flags)?;
        return Ok(Files::from([(traced::LABEL.to_string(), Some(answer))]));
    }
    let mut files = Files::from([("run".to_string(), Some(explain(onbeat, &place, &[])?))]);
    files.extend(stops.map(|log| ("stops".to_string(), Some(log))));
    Ok(files)
}

fn explain(onbeat: &str, path: &Path, flags: &[&str]) -> Result<String> {
    let explain = Tool::new(onbeat).args(["explain", "-q", &path.display().to_string(), "--json", "-"]);
    explain.args(flags).quiet().text()
}

fn scratch(machine: &Machine) -> Result<PathBuf> {
    target(&format!("lab/made/{}", machine.name))
}

/// The kept reply, with the run as it is explained now; `None` if none was kept.
pub fn again(machine: &Machine, trial: &Trial, onbeat: &str) -> Option<Result<Reply>> {
    let place = place(machine, trial).ok()?;
    place.join("bundle").is_dir().then(|| explained(machine, trial, &place, onbeat))
}

fn explained(machine: &Machine, trial: &Trial, place: &Path, onbeat: &str) -> Result<Reply> {
    let bundle = place.join("bundle");
    let mut files: Files =
        TEXTS.iter().filter_map(|label| Some((label.to_string(), Some(text(&place.join(label))?)))).collect();
    files.insert("run".to_string(), Some(explain(onbeat, &bundle, &[])?));
    if trial.is_made() || trial.trace_flags().is_some() {
        files.extend(derived_answer(machine, trial, tree::load(&bundle)?, onbeat)?);
    }
    let exits = [("h.exit", "6"), ("t.exit", "0")];
    let values = exits.map(|(label, code)| (label.to_string(), code.to_string())).into();
    Ok(Reply { values, files, over: Some(0) })
}

fn text(path: &Path) -> Option<String> {
    read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
