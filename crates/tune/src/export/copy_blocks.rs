//! What failing rules ask for as text to copy, one block for each place of a machine.

use model::plan::{CopyBlock, PlannedChange};
use model::setting::Key;
use model::text::clean;
use rules::parameters::{with_word, without_word};

use super::{CmdlineWord, ExportInput, Lasting, commented, kernel, sysctl_d, tmpfiles_d};

/// What boot loaders put on the line themselves, from their own files.
const OF_LOADERS: [&str; 2] = ["BOOT_IMAGE", "initrd"];

/// The blocks that hold something.
pub fn copy_blocks(input: &ExportInput) -> Vec<CopyBlock> {
    let lasting = Lasting::of(input);
    let made = [
        (
            "the kernel's command line",
            "Today's line with the changes. In GRUB_CMDLINE_LINUX of /etc/default/grub, then update-grub; or \
             where another boot loader has it. Read at the next boot.",
            command_line(&input.booted.text, &lasting.words),
        ),
        (
            "/etc/sysctl.d/90-onbeat.conf",
            "Read at each boot; now with sysctl -p FILE.",
            sysctl_d::render(&lasting.sysctls).map(without_head),
        ),
        (
            "/etc/tmpfiles.d/onbeat.conf",
            "Written to files of the kernel at each boot; now with systemd-tmpfiles --create --boot FILE.",
            tmpfiles_d::render(&lasting.files).map(without_head),
        ),
        (
            "/etc/modprobe.d/onbeat.conf",
            "Taken when a module is loaded; what is built in takes it from the command line alone.",
            module_options(&lasting),
        ),
        (
            "interrupt affinities",
            "A script to run as root after each boot: numbers of interrupts can change with it.",
            interrupts(&input.plan.changes),
        ),
        (
            "the kernel's configuration",
            "A fragment for scripts/kconfig/merge_config.sh; it takes another kernel.",
            kernel::fragment(&lasting.options).map(without_head),
        ),
    ];
    let block = |(place, how, text): (&str, &str, Option<String>)| {
        text.map(|text| CopyBlock { place: place.to_owned(), how: how.to_owned(), text })
    };
    made.into_iter().filter_map(block).collect()
}

/// The block says what a file's head says.
fn without_head(text: String) -> String {
    text.split_once("\n\n").map_or(text.clone(), |(_, rest)| rest.to_owned())
}

/// The line that the kernel was booted with, with the words added and taken off; none without any.
fn command_line(booted: &str, words: &[CmdlineWord]) -> Option<String> {
    if words.is_empty() {
        return None;
    }
    // What follows `--` is init's, and stays behind the kernel's words.
    let (line, init) = booted.split_once(" -- ").map_or((booted, ""), |(line, init)| (line, init));
    let bare = OF_LOADERS.iter().fold(line.to_owned(), |line, name| without_word(&line, name));
    let less = words.iter().filter(|word| !word.added);
    let line = less.fold(bare, |line, word| without_word(&line, &word.word));
    let more = words.iter().filter(|word| word.added);
    let line = more.fold(line, |line, word| with_word(&line, &word.word));
    let init = if init.is_empty() { String::new() } else { format!(" -- {init}") };
    Some(format!("{}\n", clean(&format!("{line}{init}"))))
}

/// Parameters of modules, as modprobe takes them.
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
        CmdlineWord { rule: "r".into(), why: String::new(), word: word.into(), added }
    }

    #[test]
    fn the_line_is_today_s_with_the_changes() {
        let words = [
            word("preempt=voluntary", false),
            word("preempt=full", true),
            word("debug", false),
            word("threadirqs", true),
        ];
        let booted =
            "BOOT_IMAGE=/vmlinuz root=/dev/sda2 ro quiet preempt=voluntary debug dyndbg=\"a b\" -- single";
        let line = command_line(booted, &words).expect("words");
        assert_eq!(line, "root=/dev/sda2 ro quiet dyndbg=\"a b\" preempt=full threadirqs -- single\n");
        assert_eq!(command_line(booted, &[]), None);
        assert_eq!(command_line("", &words[1..2]).as_deref(), Some("preempt=full\n"));
    }

    #[test]
    fn a_head_is_not_copied() {
        assert_eq!(without_head("# For a place\n\n# rule: why\na = 1\n".into()), "# rule: why\na = 1\n");
        assert_eq!(without_head("a = 1\n".into()), "a = 1\n");
    }
}
