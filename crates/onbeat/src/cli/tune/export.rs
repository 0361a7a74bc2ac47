//! `onbeat tune export`: files that keep the rules' settings over a boot.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::plan_flags::{PlanFlags, about};
use crate::cli::Environment;
use crate::cli::journal;
use crate::cli::named_run::named_by_flag;
use crate::cli::outputs::{Outputs, Screen, remark};
use host::dir::Dir;
use host::settings::LiveKernel;
use model::error::{Exit, Failure, Result};
use model::plan::{ChangeState, PlannedChange};
use model::text::quoted;
use report::tuning::export::{head, render};
use study::audit::MachineSource;
use study::tuning::boot_id;
use tune::export::{ExportFile, ExportInput, export};
use tune::status::status;
use tune::undo::entries;

/// Write files that make the changes permanent
///
/// Creates a folder with a file for sysctl.d, one for tmpfiles.d, the parameters for the kernel's
/// command line, a fragment of a kernel configuration with the lines for Yocto, and a README that
/// says where each goes. Changes in force from `onbeat tune apply` are included. No file of the
/// machine is changed, and no boot loader is edited.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat tune export kept --cpus 2-3\n  onbeat tune export kept --bundle \
        board --profile busy-poll\n  onbeat tune export kept vmstat-interval=120"
)]
pub struct Args {
    /// Folder to create
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    what: PlanFlags,
    /// Export for the machine of this capture
    #[arg(long, value_name = "DIR", conflicts_with = "root")]
    bundle: Option<PathBuf>,
    /// Export for this copy of a machine's file system
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Print only the folder
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[], environment)?;
    let bundle = named_by_flag(args.bundle.as_ref(), environment)?;
    let machine = MachineSource::of(bundle.as_deref(), args.root.as_deref());
    let planned = args.what.plan(machine)?;
    let request = args.what.request()?;
    let everything = request.rules.is_empty();
    let in_force = match machine {
        MachineSource::Live if everything => in_force(args.quiet)?,
        _ => Vec::new(),
    };
    let made = export(&ExportInput {
        audit: &planned.audit,
        plan: &planned.document,
        in_force: &in_force,
        request: &request,
        booted: &planned.booted,
    });
    write(&args.folder, &made.files)?;
    let Screen { columns, .. } = outputs.screen;
    let (folder, about, files) = (quoted(&args.folder).to_string(), about(&planned), made.contents());
    outputs.print(&if args.quiet {
        head(&folder, &about, &files, columns)
    } else {
        render(&folder, &about, &files, &made.left_out, columns)
    });
    outputs.end(Exit::Ok)
}

/// Changes by onbeat in this boot, which would be lost at the next one.
fn in_force(quiet: bool) -> Result<Vec<PlannedChange>> {
    let document = match journal::open() {
        Ok(Some(folder)) => {
            status(&LiveKernel::default(), &entries(&folder)?, &boot_id()?, journal::boot_time().0, false)
        }
        Ok(None) => return Ok(Vec::new()),
        // Only root may read it.
        Err(failure) => {
            if !quiet {
                remark(&format!("onbeat: changes in force are not exported: {}", failure.message));
            }
            return Ok(Vec::new());
        }
    };
    let is_made =
        |change: &PlannedChange| matches!(change.state, ChangeState::Applied | ChangeState::Pending);
    Ok(document.changes.into_iter().filter(is_made).collect())
}

/// Writes the files into a new or empty folder; removes them again after an error.
fn write(path: &Path, files: &[ExportFile]) -> Result<()> {
    let refusal = |error: &io::Error| {
        let what = format!("cannot export to {}", quoted(path));
        Failure::of_call(what, error, Exit::Usage, "give a new or empty folder")
    };
    let (dir, mut made) = Dir::create(path).map_err(|error| refusal(&error))?;
    let written = files.iter().try_for_each(|file| write_file(&dir, file));
    written.map_err(|error| {
        for file in files {
            dir.remove(file.name);
            if let Some((folder, _)) = file.name.split_once('/') {
                dir.remove_dir(folder);
            }
        }
        made.undo();
        refusal(&error)
    })
}

fn write_file(dir: &Dir, file: &ExportFile) -> io::Result<()> {
    let mut opened = match file.name.split_once('/') {
        Some((folder, name)) => dir.subdir(folder)?.new_file(name)?,
        None => dir.new_file(file.name)?,
    };
    opened.write_all(file.text.as_bytes())?;
    opened.sync_all()
}
