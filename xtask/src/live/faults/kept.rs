//! Answers that are kept with all their events (`--keep`), and scored again as the code now explains them (`--again`):
//! a change of the explanation is judged on the same spikes, without a boot.

use std::path::PathBuf;

use super::Trial;
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

/// The reply that was kept, with the run as it is explained now.
pub fn again(machine: &Machine, trial: &Trial, onbeat: &str) -> Result<Reply> {
    let place = place(machine, trial)?;
    let bundle = place.join("bundle").display().to_string();
    let run = Tool::new(onbeat).args(["explain", "-q", &bundle, "--json", "-"]).text()?;
    let mut files: Files =
        TEXTS.iter().filter_map(|label| Some((label.to_string(), Some(text(&place.join(label))?)))).collect();
    files.insert("run".to_string(), Some(run));
    let values = [("h.exit".to_string(), "6".to_string())].into();
    Ok(Reply { values, files, over: Some(0) })
}

fn text(path: &std::path::Path) -> Option<String> {
    read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
