//! Remedies of failing rules as text to copy, one block per place on the machine.

use model::plan::{CopyBlock, PlannedChange};
use model::setting::Key;
use model::text::clean;

use super::cmdline::joined;
use super::{CmdlineWord, ExportInput, Lasting, commented, kernel, sysctl_d, tmpfiles_d};

/// Blocks that are not empty; `read_from` is the boot loader's file with the words of today.
pub fn copy_blocks(input: &ExportInput, read_from: Option<&str>) -> Vec<CopyBlock> {
    let lasting = Lasting::of(input);
    let (place, how) = if input.booted.is_built_in {
        (
            "CONFIG_CMDLINE of the kernel's configuration",
            "Parameters to add to it and to remove from it; this kernel ignores the boot loader's \
             parameters, so another kernel is needed."
                .to_owned(),
        )
    } else {
        let place = place_of_words(read_from);
        let how = format!(
            "Parameters to add to the present ones and to remove from them; the others stay. {place}. \
             Effective from the next boot on."
        );
        ("the kernel's command line", how)
    };
    let blocks = [
        (place, how.as_str(), command_line(&lasting.words)),
        (
            "/etc/sysctl.d/90-onbeat.conf",
            "Read at each boot; to apply it now: sysctl -p FILE.",
            sysctl_d::render(&lasting.sysctls).map(without_head),
        ),
        (
            "/etc/tmpfiles.d/onbeat.conf",
            "Written to the kernel's files at each boot; to apply it now: systemd-tmpfiles --create --boot \
             FILE.",
            tmpfiles_d::render(&lasting.files).map(without_head),
        ),
        (
            "/etc/modprobe.d/onbeat.conf",
            "Read when a module is loaded; built-in drivers read it only from the command line.",
            module_options(&lasting),
        ),
        (
            "interrupt affinities",
            "A script to run as root after each boot: interrupt numbers can change with it.",
            interrupts(&input.plan.changes),
        ),
        (
            "the kernel's configuration",
            "A fragment for scripts/kconfig/merge_config.sh; it needs another kernel.",
            kernel::fragment(&lasting.options).map(without_head),
        ),
    ];
    let block = |(place, how, text): (&str, &str, Option<String>)| {
        text.map(|text| CopyBlock { place: place.to_owned(), how: how.to_owned(), text })
    };
    blocks.into_iter().filter_map(block).collect()
}

/// Place of the words, by the file that they were read from; without one, for each boot loader.
fn place_of_words(read_from: Option<&str>) -> String {
    let Some(path) = read_from.map(clean) else {
        return "GRUB: GRUB_CMDLINE_LINUX of /etc/default/grub, then update-grub; Fedora: grubby \
                --update-kernel=ALL; systemd-boot: /etc/kernel/cmdline; extlinux.conf: its append line; \
                Raspberry Pi: /boot/firmware/cmdline.txt; NixOS: boot.kernelParams"
            .to_owned();
    };
    match path.as_str() {
        _ if path.ends_with("/cmdline.txt") => format!("They were read from {path}: its one line"),
        _ if path.ends_with("/extlinux.conf") => {
            format!("They were read from {path}: the append line of the label that is booted")
        }
        _ if path.contains("/loader/entries/") => format!(
            "They were read from {path}: its options line, and for each kernel to come /etc/kernel/cmdline \
             (Fedora: grubby --update-kernel=ALL; NixOS: boot.kernelParams)"
        ),
        "/etc/kernel/cmdline" => format!("They were read from {path}: then kernel-install add-all"),
        "/etc/default/grub" => {
            format!("They were read from {path}: GRUB_CMDLINE_LINUX, then update-grub (or grub2-mkconfig)")
        }
        _ => format!("They were read from {path}"),
    }
}

/// Text without its head, which the block has already.
fn without_head(text: String) -> String {
    text.split_once("\n\n").map_or(text.clone(), |(_, rest)| rest.to_owned())
}

/// Words to add, on one line, and those to remove. The present line is not repeated: its known text
/// has the names of disks and users masked, and would not boot.
fn command_line(words: &[CmdlineWord]) -> Option<String> {
    let (added, removed) = (clean(&joined(words, true)), clean(&joined(words, false)));
    let mut text = String::new();
    if !removed.is_empty() {
        text += &format!("# take off: {removed}\n");
    }
    for word in words.iter().filter(|word| !word.note.is_empty()) {
        text += &format!("# {}: {}\n", clean(&word.word), clean(&word.note));
    }
    if !added.is_empty() {
        text += &format!("# add:\n{added}\n");
    }
    Some(text).filter(|text| !text.is_empty())
}

/// Parameters of modules, in the syntax of modprobe.
fn module_options(lasting: &Lasting) -> Option<String> {
    let option = |path: &str| {
        let (module, parameter) = path.strip_prefix("/sys/module/")?.split_once("/parameters/")?;
        Some((module.to_owned(), parameter.to_owned()))
    };
    let lines = lasting.files.iter().filter_map(|line| {
        let (module, parameter) = option(&line.setting.key.path())?;
        let words = format!("options {module} {parameter}={}", line.setting.wanted);
        Some((&*line.rule, line.why.clone(), words))
    });
    Some(commented(lines)).filter(|text| !text.is_empty())
}

fn interrupts(changes: &[PlannedChange]) -> Option<String> {
    let lines = changes.iter().filter(|change| matches!(change.setting.key, Key::Irq(_))).map(|change| {
        let words = format!("echo {} >{}", change.setting.wanted, change.setting.key.path());
        (&*change.rule, change.why.clone(), words)
    });
    Some(commented(lines)).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(word: &str, added: bool) -> CmdlineWord {
        CmdlineWord { rule: "r".into(), why: String::new(), word: word.into(), added, note: String::new() }
    }

    #[test]
    fn words_are_added_and_taken_off() {
        let words = [
            word("preempt=voluntary", false),
            word("preempt=full", true),
            word("debug", false),
            word("threadirqs", true),
        ];
        let line = command_line(&words).expect("words");
        assert_eq!(line, "# take off: preempt=voluntary debug\n# add:\npreempt=full threadirqs\n");
        assert_eq!(command_line(&[]), None);
        let psi = CmdlineWord { note: "unless something uses it".into(), ..word("psi=0", true) };
        let line = command_line(&[psi]).expect("words");
        assert_eq!(line, "# psi=0: unless something uses it\n# add:\npsi=0\n");
        assert_eq!(command_line(&words[..1]).as_deref(), Some("# take off: preempt=voluntary\n"));
    }

    #[test]
    fn the_place_is_the_file_that_was_read() {
        for (path, words) in [
            ("/boot/firmware/cmdline.txt", "/boot/firmware/cmdline.txt: its one line"),
            ("/boot/extlinux/extlinux.conf", "/boot/extlinux/extlinux.conf: the append line"),
            ("/boot/loader/entries/a.conf", "/boot/loader/entries/a.conf: its options line"),
            ("/etc/kernel/cmdline", "/etc/kernel/cmdline: then kernel-install"),
            ("/etc/default/grub", "/etc/default/grub: GRUB_CMDLINE_LINUX, then"),
        ] {
            let place = place_of_words(Some(path));
            assert!(place.contains(words) && !place.contains("extlinux.conf: its"), "{place}");
        }
        assert!(place_of_words(None).contains("extlinux.conf: its append line"));
    }

    #[test]
    fn a_head_is_not_copied() {
        assert_eq!(without_head("# For a place\n\n# rule: why\na = 1\n".into()), "# rule: why\na = 1\n");
        assert_eq!(without_head("a = 1\n".into()), "a = 1\n");
    }
}
