//! A fault that trace-cmd records during a hunt, with the events of that hunt: `onbeat explain`
//! names the same first culprit.

use serde_json::Value;

use super::table::{By, Fault};
use crate::debian::{self, Need};
use crate::live::frames::Reply;
use crate::live::image::ImageFile;
use crate::live::judge::{document, exit};
use crate::tally::StepOutcome;
use crate::tools::{Result, Tool, read};

/// Name of the trace in the bundle of the simultaneous hunt.
pub const TRACE: &str = "trace.dat";

/// Its explanation among a reply's files.
pub const LABEL: &str = "traced";

/// True for a fault that a foreign program may record: the hunt starts none.
pub fn can_record(fault: &Fault) -> bool {
    matches!(fault.by, By::Module(_) | By::Program(_))
}

/// The flags of `explain`: the threshold and the victim of the hunt.
pub fn flags(fault: &Fault) -> [&str; 4] {
    let victim = fault.hunt.split_once("--victim ").map_or("onbeat/1", |(_, rest)| rest);
    ["--over", "10ms", "--victim", victim.split_whitespace().next().unwrap_or_default()]
}

/// Files of trace-cmd, its libraries, and the loader, the only one that need be executable.
pub fn recorder() -> Result<Vec<ImageFile>> {
    debian::ensure(&[Need { program: "trace-cmd", package: "trace-cmd" }])?;
    let program = Tool::new("which").args(["trace-cmd"]).quiet().text()?;
    let listed = Tool::new("ldd").args([program.trim()]).quiet().text()?;
    let mut files = vec![("lab/trace-cmd".to_string(), read(program.trim().as_ref())?)];
    for path in listed.split_whitespace().filter(|word| word.starts_with('/')) {
        let name = path.rsplit('/').next().unwrap_or_default();
        let to = if name.starts_with("ld-linux") { "bin/ld.so".to_string() } else { format!("lab/{name}") };
        files.push((to, read(path.as_ref())?));
    }
    Ok(files)
}

/// Kind and name of a run's first culprit; `None` without culprits.
fn first_culprit(run: &Value) -> Option<(String, String)> {
    let first = run["culprits"].get(0)?;
    let text = |field: &str| first[field].as_str().unwrap_or_default().to_string();
    Some((text("kind"), text("name")))
}

/// Both have the same, of a kind that the fault has.
pub fn judge(fault: &Fault, reply: &Reply) -> Result<(String, StepOutcome)> {
    exit(reply, "t", 0)?;
    let first = |label: &str| Ok::<_, String>(first_culprit(&document(reply, label)?));
    let (hunted, traced) = (first("run")?, first(LABEL)?);
    let shown = |culprit: &Option<(String, String)>| {
        culprit.as_ref().map_or("none".to_string(), |(kind, name)| format!("{kind}: {name}"))
    };
    let equal = hunted == traced;
    let row = format!(
        "  {:<23} hunt {} | explain {} | {}",
        format!("traced {}", fault.word),
        shown(&hunted),
        shown(&traced),
        if equal { "equal" } else { "different" }
    );
    let is_of = |kind: &String| fault.parts.iter().any(|part| part.kinds.contains(&kind.as_str()));
    let fails = match &traced {
        _ if !equal => Some("explain names another culprit than hunt".to_string()),
        Some((kind, _)) if is_of(kind) => None,
        _ => Some("the culprit is not of the fault's kind".to_string()),
    };
    Ok((row, fails.map_or(StepOutcome::Passed, StepOutcome::Failed)))
}
