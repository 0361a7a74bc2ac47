//! Substitution of variables and functions in a value, in tuned's order: first `${NAME}`, once and
//! without rescanning, then functions from the inside out. Anything else stays as text.

use std::collections::BTreeMap;

use super::functions::{FailedAssertion, ProfileFunctions};
use super::is_word;

/// Limit of the length of a value in bytes.
const VALUE_LIMIT: usize = 64 << 10;

/// Limit of nesting, which hand-written values do not reach.
const DEPTH: usize = 64;

/// Values of variables by name.
pub type VariableValues = BTreeMap<String, String>;

/// Value with its variables and functions substituted.
///
/// # Errors
/// An assertion in it fails.
pub fn expanded(
    value: &str,
    variables: &VariableValues,
    functions: &ProfileFunctions,
) -> Result<String, FailedAssertion> {
    let found = match with_variables(value, variables) {
        Some(text) => with_functions(&without_escapes(&text), functions)?,
        None => None,
    };
    Ok(found.unwrap_or_else(|| functions.doubt("...", "it is too long, or nested too deeply")))
}

/// Substitutes known variables without a backslash; none if the result is too long.
fn with_variables(value: &str, variables: &VariableValues) -> Option<String> {
    let (mut found, mut rest) = (String::new(), value);
    let mut escaped = false;
    while let Some(c) = rest.chars().next() {
        let name = rest.strip_prefix("${").filter(|_| !escaped).and_then(|rest| rest.split_once('}'));
        match name.and_then(|(name, after)| Some((variables.get(name)?, after))) {
            Some((value, after)) => {
                found += value;
                rest = after;
                escaped = false;
            }
            None => {
                found.push(c);
                rest = &rest[c.len_utf8()..];
                escaped = c == '\\';
            }
        }
        if found.len() > VALUE_LIMIT {
            return None;
        }
    }
    Some(found)
}

/// Removes one backslash before each variable.
fn without_escapes(text: &str) -> String {
    let (mut found, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("\\${") {
        found += before;
        let name = after.split_once('}').map_or("", |(name, _)| name);
        if !is_word(name) {
            found.push('\\');
        }
        found += "${";
        rest = after;
    }
    found + rest
}

/// Substitutes function calls, the inner ones first; none if the result is too long or nested too
/// deeply.
fn with_functions(text: &str, functions: &ProfileFunctions) -> Result<Option<String>, FailedAssertion> {
    // Position of each open `${` in the result, and true if it has a backslash.
    let (mut found, mut open) = (String::new(), Vec::<(bool, usize)>::new());
    let (mut chars, mut escaped) = (text.chars().peekable(), false);
    while let Some(c) = chars.next() {
        if c == '}' {
            let Some((is_text, from)) = open.pop() else {
                // tuned stops here.
                found.push(c);
                found.extend(chars);
                return Ok(Some(without_function_escapes(&found)));
            };
            let call = found.get(from..).filter(|_| !is_text).unwrap_or_default();
            let value = functions.value_of(call)?;
            match value {
                Some(value) => {
                    found.truncate(from);
                    found += &value;
                    if found.is_empty() {
                        // tuned skips the first character after an empty value.
                        found.extend(chars.next());
                    }
                    escaped = found.ends_with('\\');
                }
                None => {
                    found.push(c);
                    escaped = false;
                }
            }
        } else {
            if c == '$' && chars.peek() == Some(&'{') {
                open.push((escaped, found.len()));
            }
            found.push(c);
            escaped = c == '\\';
        }
        if found.len() > VALUE_LIMIT || open.len() > DEPTH {
            return Ok(None);
        }
    }
    Ok(Some(without_function_escapes(&found)))
}

/// Removes the backslash before the first function of each line, as tuned does.
fn without_function_escapes(text: &str) -> String {
    let line = |line: &str| match line.find("\\${f:") {
        Some(at) if line[at..].contains('}') => format!("{}{}", &line[..at], &line[at + 1..]),
        _ => line.to_owned(),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::ImportTarget;
    use host::MachineFiles;
    use host::access::Access;
    use rules::fixture::Machine;

    /// Values with tuned 2.27's results on a machine with four CPUs.
    const VALUES: &[(&str, &str)] = &[
        ("a${x}b", "a1b"),
        ("${none} \\${x} \\\\${x}", "${none} ${x} \\${x}"),
        ("${y}", "${x}"),
        ("${f:cpulist2hex:2-3}", "0000000c"),
        ("${f:cpulist2hex_invert:1}", "0000000d"),
        ("${f:cpulist_pack:0,1,2,^1}", "0,2"),
        ("${f:cpulist_unpack:0x3,,5}", "0,1,5"),
        ("${f:cpulist_unpack:0-}", ""),
        ("${f:cpulist_unpack:3-1}", ""),
        ("${f:cpulist_unpack:all}", ""),
        ("${f:cpulist_unpack:'1-2'}", "1,2"),
        ("${f:cpulist_online:1,9}", "1"),
        ("${f:cpulist_present:1,5,9}", "1,5"),
        ("${f:cpulist2devs:0-1}", "cpu0,cpu1"),
        ("${f:hex2cpulist:f}", "0,1,2,3"),
        ("${f:hex2cpulist:x}", ""),
        ("${f:calc_isolated_cores}", "1,3"),
        ("${f:calc_isolated_cores:0}", "0-3"),
        ("${f:calc_isolated_cores:x}", "${f:calc_isolated_cores:x}"),
        ("${f:strip: a :b }", "a b"),
        ("${f:log:a:b}", "ab"),
        ("${f:kb2s:3}${f:s2kb:3}${f:s2kb:5}${f:s2kb:x}", "622${f:s2kb:x}"),
        ("${f:regex_search_ternary:Y:\\b[y,Y,1,t,T]\\b:managed_irq,domain,:}", "managed_irq,domain,"),
        ("${f:regex_search_ternary:N:\\b[y,Y,1,t,T]\\b:managed_irq,domain,:}", ""),
        ("${f:regex_search_ternary:a\\:b:^a.b$:x\\:y:z}", "x:y"),
        ("${f:regex_search_ternary:a:b}", "${f:regex_search_ternary:a:b}"),
        ("${f:strip:${f:cpulist_pack:${f:cpulist_unpack:1,2}}}", "1-2"),
        ("\\${f:strip:a}", "${f:strip:a}"),
        ("${f:strip: }${f:strip:x}", "${f:strip:x}"),
        ("a${f:strip: }${f:strip:x}", "ax"),
        ("}${f:strip:x}", "}${f:strip:x}"),
        ("${f:nosuch:x}", "${f:nosuch:x}"),
        ("${f:assertion:a:1:1}", "${f:assertion:a:1:1}"),
        ("${f:check_net_queue_count:4}", "4"),
        ("${f:cpuinfo_check:GenuineIntel:i:AuthenticAMD:a}", "a"),
        ("${f:cpuinfo_check:^flags.*\\bavx$:i:z}", "z"),
        ("${f:package2cpus:1}", "cpu2,cpu3"),
        ("${f:intel_recommended_pstate}", "active"),
    ];

    fn with_machine(check: impl Fn(&ProfileFunctions)) {
        let mut machine = Machine::base();
        machine.edit(
            "/sys/devices/system/cpu/online: 0-3
            /sys/devices/system/cpu/present: 0-5
            /sys/devices/cpu/caps/pmu_name: icelake
            /sys/devices/system/cpu/cpu0/topology/physical_package_id: 0
            /sys/devices/system/cpu/cpu1/topology/physical_package_id: 0
            /sys/devices/system/cpu/cpu2/topology/physical_package_id: 1
            /sys/devices/system/cpu/cpu3/topology/physical_package_id: 1",
        );
        let cpuinfo = "vendor_id\t: AuthenticAMD\nflags\t\t: fpu avx2\n";
        machine.answers.insert("/proc/cpuinfo".to_owned(), Access::File(cpuinfo.into()));
        let files = MachineFiles::in_memory(machine.answers.clone());
        let survey = machine.read();
        check(&ProfileFunctions::new(ImportTarget { files: &files, survey: &survey }));
    }

    #[test]
    fn values_are_as_tuned_makes_them() {
        let variables = [("x", "1"), ("y", "${x}")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        with_machine(|functions| {
            let variables = variables.clone().into_iter().collect();
            for (value, wanted) in VALUES {
                let found = expanded(value, &variables, functions).map_err(|failed| failed.0);
                assert_eq!(found.as_deref(), Ok(*wanted), "{value}");
            }
        });
    }

    #[test]
    fn values_that_grow_without_end_are_none() {
        with_machine(|functions| {
            let mut variables = VariableValues::new();
            variables.insert("x".to_owned(), "a".repeat(60));
            for _ in 0..40 {
                let longer = expanded("${x}${x}${x}", &variables, functions).unwrap_or_default();
                assert!(longer.len() <= VALUE_LIMIT);
                variables.insert("x".to_owned(), longer);
            }
            let braces = "${".repeat(20_000) + &"}".repeat(20_000);
            assert!(expanded(&braces, &variables, functions).is_ok());
        });
    }
}
