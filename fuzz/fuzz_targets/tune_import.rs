//! Settings of other programs: whatever the text, a plan holds nothing but settings of the kernel,
//! each under a key that leads nowhere else.
//!
//! The first byte says what the text is.

#![cfg_attr(fuzzing, no_main)]

use entry::fuzz_target;
use facts::survey::survey;
use host::MachineFiles;
use host::access::Access;
use model::setting::Key;
use rules::survey_request;
use tune::import::{Documents, ImportKind, ImportRequest, ImportTarget, ImportedFile, import};

fuzz_target!(|bytes: &[u8]| {
    let Some((first, text)) = bytes.split_first() else { return };
    let kinds = [ImportKind::Sysctl, ImportKind::Tmpfiles, ImportKind::Tuned, ImportKind::Partrt];
    let kind = kinds[usize::from(*first) % kinds.len()];
    let text = String::from_utf8_lossy(text).into_owned();
    let imported = ImportedFile { name: "x.conf".into(), kind, text };
    let documents = Documents { files: vec![imported], profiles: None };
    let file = |(path, text): (&str, &str)| (path.to_owned(), Access::File(text.as_bytes().to_vec()));
    let answers = [
        ("/proc/sys/vm/stat_interval", "1\n"),
        ("/sys/kernel/mm/ksm/run", "0\n"),
        ("/sys/devices/system/cpu/online", "0-3\n"),
    ];
    let files = MachineFiles::in_memory(answers.map(file).into_iter().collect());
    let survey = survey(&files, &survey_request());
    let request = ImportRequest { partial: true, ..ImportRequest::default() };
    if let Ok(plan) = import(&documents, &request, ImportTarget { files: &files, survey: &survey }, "") {
        for change in &plan.changes {
            let key = &change.setting.key;
            assert_eq!(key.to_string().parse().as_ref(), Ok(key));
            let interrupt = matches!(key, Key::Irq(_) | Key::IrqDefault);
            assert!(interrupt || matches!(key, Key::Sysctl(_) | Key::Sysfs(_) | Key::Hold(_)));
        }
    }
});
