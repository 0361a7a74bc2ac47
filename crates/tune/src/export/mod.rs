//! What failing rules ask for, as files that set it at each boot: text to be copied to where it is
//! read; nothing of the machine is touched.

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

/// One file of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportFile {
    /// Its path in the export's folder.
    pub name: &'static str,
    pub text: String,
}

/// The files of an export, and what is in none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Those that hold something, `README` last.
    pub files: Vec<ExportFile>,
    /// Rules that fail and of which nothing is kept over a boot, with the reason.
    pub left_out: Vec<LeftOut>,
}

impl Export {
    /// The files but for `README`, with how many settings, words or options each holds.
    pub fn contents(&self) -> Vec<(&'static str, u64)> {
        let is_one =
            |line: &&str| !line.is_empty() && (!line.starts_with('#') || line.ends_with(" is not set"));
        let held = |file: &ExportFile| (file.name, file.text.lines().filter(is_one).count() as u64);
        self.files.iter().filter(|file| file.name != README).map(held).collect()
    }
}

const README: &str = "README";

/// What an export is made of.
#[derive(Clone, Copy, Debug)]
pub struct ExportInput<'a> {
    pub audit: &'a Audit,
    /// The plan for that audit: what is written to files of the running kernel, in its order.
    pub plan: &'a PlanDocument,
    /// What was changed already and is in force: its rules pass, and would be forgotten.
    pub in_force: &'a [PlannedChange],
    pub request: &'a PlanRequest,
    /// The command line that the kernel was booted with.
    pub booted: &'a Cmdline,
}

/// Makes the files.
pub fn export(input: &ExportInput) -> Export {
    let lasting = Lasting::of(input);
    let made = [
        ("sysctl.d/90-onbeat.conf", sysctl_d::render(&lasting.sysctls)),
        ("tmpfiles.d/onbeat.conf", tmpfiles_d::render(&lasting.files)),
        ("cmdline", cmdline::render(&lasting.words, input.booted.is_built_in)),
        ("kernel.cfg", kernel::fragment(&lasting.options)),
        ("yocto.conf", kernel::yocto(&lasting, input.booted.is_built_in)),
    ];
    let mut files: Vec<ExportFile> =
        made.into_iter().filter_map(|(name, text)| text.map(|text| ExportFile { name, text })).collect();
    let readme = readme::render(input.audit, &files, &lasting.left_out);
    files.push(ExportFile { name: README, text: readme });
    Export { files, left_out: lasting.left_out }
}

/// The comment above a line: its rule and its reason, on one line.
fn comment(rule: &str, why: &str) -> String {
    let rule = if rule.is_empty() { "asked for" } else { rule };
    match clean(why) {
        why if why.is_empty() => format!("# {rule}\n"),
        why => format!("# {rule}: {why}\n"),
    }
}

/// The reason of a line, with what it costs where that is a safeguard.
fn reason(line: &BootLine) -> String {
    match line.setting.risk {
        Risk::High => format!("{} (this takes a safeguard away)", line.why),
        _ => line.why.clone(),
    }
}

/// A comment and the lines of one rule below it, for rules that follow each other.
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
