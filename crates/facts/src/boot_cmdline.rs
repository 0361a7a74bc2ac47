//! The command line that a boot loader will hand to the kernel, from the loader's files.
//!
//! Sources: the Raspberry Pi documentation of `cmdline.txt` (one line), U-Boot's doc/README.distro
//! for `extlinux.conf`, the Boot Loader Specification for `loader/entries/*.conf`,
//! kernel-install(8) for `/etc/kernel/cmdline`, and GRUB's manual, "Simple configuration handling",
//! for `/etc/default/grub`, which the shell reads.

use std::collections::BTreeMap;

/// Variables of a boot loader or a shell file, by name.
pub type BootVariables = BTreeMap<String, String>;

/// Command line in a `cmdline.txt`: the firmware reads the first line.
pub fn parse_cmdline_txt(text: &str) -> Option<String> {
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

/// Parameters of the entry that an `extlinux.conf` boots by default.
pub fn parse_extlinux(text: &str) -> Option<String> {
    let mut default = None;
    let mut entries: Vec<(&str, Option<&str>)> = Vec::new();
    for line in text.lines() {
        let (word, rest) = first_word(line.trim());
        match word.to_ascii_lowercase().as_str() {
            "default" => default = default.or(Some(rest)),
            "label" => entries.push((rest, None)),
            "append" => entries.last_mut()?.1 = Some(rest),
            "menu" if rest.eq_ignore_ascii_case("default") => default = Some(entries.last()?.0),
            _ => {}
        }
    }
    let chosen = default.and_then(|label| entries.iter().find(|entry| entry.0 == label));
    let line = chosen.or(entries.first())?.1.unwrap_or_default();
    Some(expanded(line, &BootVariables::new()).unwrap_or_else(|| line.to_owned()))
}

/// Parameters of a Boot Loader Specification entry, with the variables of GRUB's environment.
pub fn parse_loader_entry(text: &str, variables: &BootVariables) -> Option<String> {
    let options = text.lines().map(|line| first_word(line.trim())).filter(|(key, _)| *key == "options");
    let lines: Vec<String> =
        options.map(|(_, rest)| expanded(rest, variables).unwrap_or_else(|| rest.to_owned())).collect();
    (!lines.is_empty()).then(|| lines.join(" "))
}

/// Parses GRUB's environment block: lines `NAME=VALUE`, padded with `#`.
pub fn parse_grub_environment(text: &str) -> BootVariables {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once('=')).map(|(name, value)| (name.into(), value.into())).collect()
}

/// Parameters for a normal boot in files such as `/etc/default/grub`, in the order in which the
/// shell reads them; none if none of them has any.
pub fn parse_grub_defaults<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<Result<String, String>> {
    const NAMES: [&str; 2] = ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"];
    let mut variables = BootVariables::new();
    let mut computed = None;
    for line in texts.into_iter().flat_map(logical_lines) {
        let line = line.trim().trim_start_matches("export ").trim_start();
        let Some((name, value)) = line.split_once('=') else { continue };
        let (name, appends) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
        if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') || name.is_empty() {
            continue;
        }
        match shell_value(value, &variables) {
            Some(value) if appends => variables.entry(name.to_owned()).or_default().push_str(&value),
            Some(value) => drop(variables.insert(name.to_owned(), value)),
            None if NAMES.contains(&name) => computed = Some(name.to_owned()),
            None => {}
        }
    }
    if let Some(name) = computed {
        return Some(Err(format!("{name} is what a shell command prints")));
    }
    let values: Vec<&str> =
        NAMES.iter().filter_map(|name| variables.get(*name)).map(String::as_str).collect();
    (!values.is_empty()).then(|| Ok(values.join(" ").trim().to_owned()))
}

/// Logical lines: a backslash at the end joins a line with the next.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for line in text.lines() {
        let (part, goes_on) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
        if let Some(last) = lines.last_mut() {
            last.push_str(part);
        }
        if !goes_on {
            lines.push(String::new());
        }
    }
    lines
}

/// Value of an assignment as the shell reads it; none if it depends on a command.
fn shell_value(text: &str, variables: &BootVariables) -> Option<String> {
    let mut value = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        match c {
            '\'' => {
                let (quoted, after) = rest[1..].split_once('\'')?;
                value.push_str(quoted);
                rest = after;
            }
            '"' => {
                let end = closing_quote(&rest[1..])?;
                value.push_str(&expanded(&rest[1..=end], variables)?);
                rest = &rest[end + 2..];
            }
            // Another word follows: a comment, or a command.
            ' ' | '\t' | ';' | '#' => break,
            _ => {
                let end = rest.find(['\'', '"', ' ', '\t', ';']).unwrap_or(rest.len());
                value.push_str(&expanded(&rest[..end], variables)?);
                rest = &rest[end..];
            }
        }
    }
    Some(value)
}

/// Index of the double quote that ends a text; one with a backslash before it does not.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends.then_some(at)
    })
}

/// A text with the values of `$NAME` and `${NAME}`, nothing for those that are not set; none if it
/// contains a command.
fn expanded(text: &str, variables: &BootVariables) -> Option<String> {
    let mut value = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['$', '`', '\\']) {
        value.push_str(&rest[..at]);
        let (mark, after) = rest[at..].split_at(1);
        match mark {
            "`" => return None,
            "\\" => {
                let next = after.chars().next().map_or(0, char::len_utf8);
                value.push_str(&after[..next]);
                rest = &after[next..];
            }
            _ if after.starts_with('(') => return None,
            _ => {
                let (name, after) = variable_name(after);
                value.push_str(variables.get(name).map_or("", String::as_str));
                // Each name can stand for a text of names: a bound on the result.
                if value.len() > VALUE_LIMIT {
                    return None;
                }
                rest = after;
            }
        }
    }
    value.push_str(rest);
    Some(value)
}

/// Limit in bytes, beyond any kernel's command line.
const VALUE_LIMIT: usize = 64 << 10;

/// Name after a `$`, and the text that follows it.
fn variable_name(text: &str) -> (&str, &str) {
    if let Some((name, after)) = text.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
        return (name, after);
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    text.split_at(end)
}

/// First word of a line, and the rest.
pub(super) fn first_word(line: &str) -> (&str, &str) {
    line.split_once([' ', '\t']).map_or((line, ""), |(word, rest)| (word, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_firmware_takes_the_first_line() {
        let line = "console=serial0,115200 root=PARTUUID=1-02 rootwait isolcpus=2-3";
        assert_eq!(parse_cmdline_txt(&format!("{line}\r\nsecond\n")).as_deref(), Some(line));
        assert_eq!(parse_cmdline_txt("\n"), None);
    }

    #[test]
    fn the_default_entry_of_extlinux_is_booted() {
        let text = "TIMEOUT 30\nDEFAULT rt\n\nMENU TITLE L4T\n\nLABEL primary\n  LINUX /boot/Image\n  \
                    APPEND ${cbootargs} quiet\nLABEL rt\n      APPEND ${cbootargs} isolcpus=2-3 nohz=on\n";
        assert_eq!(parse_extlinux(text).unwrap().trim(), "isolcpus=2-3 nohz=on");
        let first = text.replace("DEFAULT rt\n", "");
        assert_eq!(parse_extlinux(&first).unwrap().trim(), "quiet");
        let menu = "default a\nlabel a\nappend x\nlabel b\nmenu default\nappend y\n";
        assert_eq!(parse_extlinux(menu).as_deref(), Some("y"));
        assert_eq!(parse_extlinux("label a\nlinux /Image\n").as_deref(), Some(""));
        assert_eq!(parse_extlinux("timeout 3\n"), None);
    }

    #[test]
    fn entries_of_the_boot_loader_specification_are_read_with_grubs_variables() {
        let variables = parse_grub_environment(
            "# GRUB Environment Block\nkernelopts=root=/dev/a threadirqs\nsaved_entry=x\n####",
        );
        let entry = "title Fedora\nversion 6.12\nlinux /vmlinuz\noptions $kernelopts $tuned_params quiet\n";
        assert_eq!(parse_loader_entry(entry, &variables).as_deref(), Some("root=/dev/a threadirqs  quiet"));
        assert_eq!(parse_loader_entry("options a\noptions b\n", &variables).as_deref(), Some("a b"));
        assert_eq!(parse_loader_entry("title x\n", &variables), None);
    }

    #[test]
    fn grubs_defaults_are_read_as_the_shell_does() {
        let line = |texts: &[&str]| parse_grub_defaults(texts.iter().copied());
        let known = |texts: &[&str]| line(texts).unwrap().unwrap();
        let text = "# x\nGRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet splash\" # shown\n\
                    GRUB_CMDLINE_LINUX='threadirqs dyndbg=\"file a.c +p\"'\n";
        assert_eq!(known(&[text]), "threadirqs dyndbg=\"file a.c +p\" quiet splash");
        let more = "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT isolcpus=2\"\n\
                    export GRUB_CMDLINE_LINUX+=\" \\\n nohz_full=2\"\n";
        assert_eq!(
            known(&[text, more]),
            "threadirqs dyndbg=\"file a.c +p\"  nohz_full=2 quiet splash isolcpus=2"
        );
        assert_eq!(known(&["GRUB_CMDLINE_LINUX=\n"]), "");
        assert_eq!(known(&["GRUB_CMDLINE_LINUX=a\"=\\\"d e\\\"\"\n"]), "a=\"d e\"");
        // The name of a distribution is computed, and is not a parameter.
        assert_eq!(known(&["GRUB_DISTRIBUTOR=`lsb_release -i`\nGRUB_CMDLINE_LINUX=\"a\"\n"]), "a");
        assert!(line(&["GRUB_CMDLINE_LINUX=\"$(cat /x)\"\n"]).unwrap().is_err());
        assert_eq!(line(&["GRUB_TIMEOUT=5\n", "A=1"]), None);
    }

    proptest! {
        #[test]
        fn parsers_are_total(
            text in "((GRUB_CMDLINE_LINUX|label|append|options|A)[ =+]{0,2}|[\\PC\"'$`{}()\\\\ \t\n]){0,20}",
        ) {
            let _ = parse_cmdline_txt(&text);
            let _ = parse_extlinux(&text);
            let _ = parse_loader_entry(&text, &parse_grub_environment(&text));
            let _ = parse_grub_defaults([text.as_str(), text.as_str()]);
        }

        #[test]
        fn names_of_names_are_bounded(count in 1usize..40) {
            let doubling = "GRUB_CMDLINE_LINUX=\"x$GRUB_CMDLINE_LINUX$GRUB_CMDLINE_LINUX\"\n".repeat(count);
            let value = parse_grub_defaults([doubling.as_str()]).and_then(Result::ok).unwrap_or_default();
            prop_assert!(value.len() <= 4 * VALUE_LIMIT);
        }
    }
}
