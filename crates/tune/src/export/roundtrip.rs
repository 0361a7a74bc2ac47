//! Round trip of exports through the import: the same changes if none were applied, none if all
//! were.

use std::collections::BTreeSet;

use super::{Export, ExportInput, export};
use crate::import::{Documents, ImportKind, ImportRequest, ImportTarget, ImportedFile, import};
use crate::plan::{PlanRequest, plan};
use crate::reading;
use host::MachineFiles;
use host::access::Access;
use model::plan::PlanDocument;
use model::setting::{Comparison, Key};
use rules::audit::audit;
use rules::fixture::Machine;
use rules::knobs::ALL;

fn imported(export: &Export, machine: &Machine) -> PlanDocument {
    let files = export.files.iter().filter_map(|file| {
        let (folder, name) = file.name.split_once('/')?;
        let kind = if folder == "sysctl.d" { ImportKind::Sysctl } else { ImportKind::Tmpfiles };
        Some(ImportedFile { name: name.to_owned(), kind, text: file.text.clone() })
    });
    let documents = Documents { files: files.collect(), profiles: None };
    let files = MachineFiles::in_memory(machine.answers.clone());
    let survey = machine.read();
    let target = ImportTarget { files: &files, survey: &survey };
    import(&documents, &ImportRequest::default(), target, "").unwrap()
}

fn plan_and_export(machine: &Machine) -> (PlanDocument, Export) {
    let (survey, intent) = machine.survey();
    let audit = audit(&survey, &intent);
    let files = MachineFiles::in_memory(machine.answers.clone());
    let request = PlanRequest::default();
    let plan = plan(&survey, &audit, &request, "", &|key| reading::read(&files, key)).unwrap();
    let booted = survey.facts.cmdline.known().cloned().unwrap_or_default();
    let export = export(&ExportInput {
        audit: &audit,
        plan: &plan,
        in_force: &[],
        request: &request,
        booted: &booted,
    });
    (plan, export)
}

/// Values of a plan for files of the fake machine.
fn pairs(plan: &PlanDocument, machine: &Machine) -> BTreeSet<(String, String)> {
    let changes = plan.changes.iter().filter(|change| match &change.setting.key {
        Key::Sysctl(_) | Key::IrqDefault => true,
        // Late devices, values that no boot enables, and values that must not be written with CPUs
        // isolated at boot have no line.
        Key::Sysfs(file) => {
            let late = ["class/", "kernel/tracing/", "bus/usb/", "kernel/debug/sched/fair_server/"];
            !late.iter().any(|late| file.starts_with(late))
        }
        _ => false,
    });
    let changes = changes.filter(|change| machine.answers.contains_key(&change.path));
    changes.map(|change| (change.setting.key.to_string(), change.setting.wanted.clone())).collect()
}

/// Simulates a boot with the files: writes each value in the form in which the kernel shows it.
fn boot(machine: &mut Machine, plan: &PlanDocument) {
    for change in &plan.changes {
        let wanted = &change.setting.wanted;
        let value = match change.setting.readback {
            Comparison::Choice => {
                let bare = |word: &str| word.trim_matches(['[', ']', '(', ')']).to_owned();
                let words = change.now.split_whitespace().map(bare);
                let mark = |word: String| if word == *wanted { format!("[{word}]") } else { word };
                words.map(mark).collect::<Vec<_>>().join(" ")
            }
            _ => wanted.clone(),
        };
        machine.answers.insert(change.path.clone(), Access::File(format!("{value}\n").into_bytes()));
    }
}

#[test]
fn an_export_is_imported_as_the_plan_that_it_is_of() {
    let mut changes = 0;
    for knob in ALL {
        let mut machine = Machine::base();
        machine.edit(knob.examples.fires);
        let (plan, export) = plan_and_export(&machine);
        let back = imported(&export, &machine);
        assert_eq!(pairs(&back, &machine), pairs(&plan, &machine), "{}: {:#?}", knob.id, back.left_out);
        changes += back.changes.len();
        boot(&mut machine, &back);
        let again = imported(&export, &machine);
        assert_eq!(again.changes, [], "{}", knob.id);
    }
    assert!(changes > 40, "{changes}");
}
