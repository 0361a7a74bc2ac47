//! Answers that are kept with all their events (`--keep`), and scored again as the code now explains them (`--again`):
//! a change of the explanation is judged on the same spikes, without a boot.

use std::path::{Path, PathBuf};

use super::{Trial, late};
use crate::dist;
use crate::live::frames::{Files, Reply};
use crate::live::machine::Machine;
use crate::live::tree;
use crate::tools::{Result, Tool, read, target, write};

/// What a series sends beside the bundle.
const TEXTS: [&str; 3] = ["log", "stops", "stalls"];

fn place(machine: &Machine, trial: &Trial) -> Result<PathBuf> {
    target(&format!("lab/answers/{}/{}", machine.name, trial.name()))
}

/// Keeps what a reply has of it; a reply without a bundle is not kept.
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

/// Where the other CPU is to sleep on, the run becomes what is said of that.
pub fn made_late(machine: &Machine, trial: &Trial, reply: &mut Reply) -> Result<()> {
    let Some(function) = trial.late() else { return Ok(()) };
    reply.files.remove("run");
    let onbeat = dist::kept(machine.arch)?.display().to_string();
    let bundle = tree::of(reply, "bundle", machine.name)?;
    let run = late::explained(bundle, &scratch(machine)?, function, &onbeat)?;
    reply.files.insert("run".to_string(), Some(run));
    Ok(())
}

fn scratch(machine: &Machine) -> Result<PathBuf> {
    target(&format!("lab/late/{}", machine.name))
}

/// The reply that was kept, with the run as it is explained now; none where nothing was kept.
pub fn again(machine: &Machine, trial: &Trial, onbeat: &str) -> Option<Result<Reply>> {
    let place = place(machine, trial).ok()?;
    place.join("bundle").is_dir().then(|| explained(machine, trial, &place, onbeat))
}

fn explained(machine: &Machine, trial: &Trial, place: &Path, onbeat: &str) -> Result<Reply> {
    let bundle = place.join("bundle");
    let run = match trial.late() {
        Some(function) => late::explained(tree::load(&bundle)?, &scratch(machine)?, function, onbeat)?,
        None => {
            Tool::new(onbeat).args(["explain", "-q", &bundle.display().to_string(), "--json", "-"]).text()?
        }
    };
    let mut files: Files =
        TEXTS.iter().filter_map(|label| Some((label.to_string(), Some(text(&place.join(label))?)))).collect();
    files.insert("run".to_string(), Some(run));
    let values = [("h.exit".to_string(), "6".to_string())].into();
    Ok(Reply { values, files, over: Some(0) })
}

fn text(path: &Path) -> Option<String> {
    read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
