//! README of an export: its files, their places, and how to remove them.

use std::fmt::Write;

use model::plan::LeftOut;
use model::text::clean;
use rules::audit::Audit;

use super::ExportFile;

/// Files, with their places and their removal.
const PLACES: &[(&str, &str, &str)] = &[
    (
        "sysctl.d/90-onbeat.conf",
        "copy it to /etc/sysctl.d; read at each boot",
        "remove it; the values change back with the next boot",
    ),
    (
        "tmpfiles.d/onbeat.conf",
        "copy it to /etc/tmpfiles.d; systemd-tmpfiles reads it at each boot. Without systemd, let a boot \
         script write the value at the end of each line to its file",
        "remove it; the values change back with the next boot",
    ),
    (
        "cmdline",
        "parameters for the kernel's command line; the head of the file lists the places for each boot \
         loader",
        "remove the added parameters, and add the removed ones",
    ),
    (
        "kernel.cfg",
        "a fragment for the configuration from which the kernel is built",
        "build without it; boot the previous kernel",
    ),
    ("yocto.conf", "lines for a Yocto layer", "remove them"),
];

/// Text for these files and the rules without one.
pub fn render(audit: &Audit, files: &[ExportFile], left_out: &[LeftOut]) -> String {
    let mut page = format!(
        "What `onbeat audit` asks for on CPU {} as {}, kernel {}, kept over a boot.\n\
         Nothing of the machine was changed by making it. After a boot, see `onbeat audit`.\n",
        clean(&audit.cpus),
        audit.profile,
        clean(&audit.host.release)
    );
    for (name, place, away) in PLACES {
        if files.iter().any(|file| file.name == *name) {
            let _ = write!(page, "\n{name}\n    {place}\n    to take it away: {away}\n");
        }
    }
    if files.is_empty() {
        page += "\nThere is nothing to keep.\n";
    }
    if !left_out.is_empty() {
        page += "\nNot in it:\n";
    }
    for left in left_out {
        let _ = writeln!(page, "- {}: {}", clean(&left.rule), clean(&left.why));
        if !left.instead.is_empty() {
            let _ = writeln!(page, "    instead: {}", clean(&left.instead));
        }
    }
    page
}
