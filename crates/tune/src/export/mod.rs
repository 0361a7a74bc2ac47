//! Remedies of failing rules as files that apply them at each boot: text to be copied to its place;
//! the machine is not changed.

mod cmdline;
mod copy_blocks;
mod kernel;
mod lasting;
mod left_alone;
mod readme;
mod sysctl_d;
pub mod tmpfiles_d;

use facts::cmdline::Cmdline;
use model::plan::{LeftOut, PlanDocument, PlannedChange};
use model::setting::Risk;
use model::text::clean;
use rules::audit::Audit;

use crate::plan::PlanRequest;

pub use copy_blocks::copy_blocks;
pub use lasting::{BootLine, CmdlineWord, KernelOption, Lasting};

/// File of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportFile {
    /// Path in the export's folder.
    pub name: &'static str,
    pub text: String,
}

/// Files of an export, and the rules without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Non-empty files, `README` last.
    pub files: Vec<ExportFile>,
    /// Failing rules of which no part lasts over a boot, with the reasons.
    pub left_out: Vec<LeftOut>,
}

impl Export {
    /// Files except `README`, each with its number of settings, words or options.
    pub fn contents(&self) -> Vec<(&'static str, u64)> {
        let is_one =
            |line: &&str| !line.is_empty() && (!line.starts_with('#') || line.ends_with(" is not set"));
        let held = |file: &ExportFile| (file.name, file.text.lines().filter(is_one).count() as u64);
        self.files.iter().filter(|file| file.name != README).map(held).collect()
    }
}

const README: &str = "README";

/// Input of an export.
#[derive(Clone, Copy, Debug)]
pub struct ExportInput<'a> {
    pub audit: &'a Audit,
    /// Plan for that audit: the values for files of the running kernel, in order.
    pub plan: &'a PlanDocument,
    /// Changes in force, whose rules pass and would be missing otherwise.
    pub in_force: &'a [PlannedChange],
    pub request: &'a PlanRequest,
    /// Command line that the kernel was booted with.
    pub booted: &'a Cmdline,
}

/// Creates the files.
pub fn export(input: &ExportInput) -> Export {
    let lasting = Lasting::of(input);
    let texts = [
        ("sysctl.d/90-onbeat.conf", sysctl_d::render(&lasting.sysctls)),
        ("tmpfiles.d/onbeat.conf", tmpfiles_d::render(&lasting.files)),
        ("cmdline", cmdline::render(&lasting.words, input.booted.is_built_in)),
        ("kernel.cfg", kernel::fragment(&lasting.options)),
        ("yocto.conf", kernel::yocto(&lasting, input.booted.is_built_in)),
    ];
    let mut files: Vec<ExportFile> =
        texts.into_iter().filter_map(|(name, text)| text.map(|text| ExportFile { name, text })).collect();
    let readme = readme::render(input.audit, &files, &lasting.left_out);
    files.push(ExportFile { name: README, text: readme });
    Export { files, left_out: lasting.left_out }
}

/// Comment above a line: its rule and its reason, on one line.
fn comment(rule: &str, why: &str) -> String {
    let rule = if rule.is_empty() { "asked for" } else { rule };
    match clean(why) {
        why if why.is_empty() => format!("# {rule}\n"),
        why => format!("# {rule}: {why}\n"),
    }
}

/// Reason of a line, with its cost if it disables a safeguard.
fn reason(line: &BootLine) -> String {
    match line.setting.risk {
        Risk::High => format!("{} (this takes a safeguard away)", line.why),
        _ => line.why.clone(),
    }
}

/// Lines, each run of a rule below a comment.
fn commented<'a>(lines: impl Iterator<Item = (&'a str, String, String)>) -> String {
    let (mut page, mut last) = (String::new(), None);
    for (rule, why, line) in lines {
        if last.as_ref() != Some(&(rule, why.clone())) {
            if last.is_some() {
                page.push('\n');
            }
            page += &comment(rule, &why);
            last = Some((rule, why));
        }
        page += &line;
        page.push('\n');
    }
    page
}

#[cfg(test)]
mod roundtrip;
#[cfg(test)]
mod tests;
