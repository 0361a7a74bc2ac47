//! The kernel's list of functions, and lookup of the function at an address.
//!
//! Source: Documentation/filesystems/proc.rst ("kallsyms"), kernel/kallsyms.c, scripts/kallsyms.c.
//! A distribution's kernel with its modules lists some 200,000 symbols in 10 to 15 MB; only
//! functions are stored.

use model::sort::CompactSort;

/// Limit of bytes read of /proc/kallsyms, four times the size of large configurations.
pub const READ_LIMIT: u64 = 64 << 20;

/// Limit of functions, five times the number of large configurations. A longer list is refused: a
/// missing function's code would get the name of the function before it.
const LIMIT: usize = 1 << 20;

/// Limit of a function's length in bytes; addresses further behind it are not part of it.
const LONGEST: u64 = 128 << 10;

/// Limit of the length of the last function before an unknown range: the code after a module may
/// not be listed.
const LAST: u64 = 4 << 10;

/// Reason for which there are no names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoNames {
    /// The kernel lists its functions but hides their addresses (kernel.kptr_restrict, no
    /// CAP_SYSLOG).
    Hidden,
    /// The list has no usable entry.
    Empty,
    /// The list has more functions than the limit.
    TooMany,
}

/// Functions of a running kernel, by address.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// Sorted by address; of several names for an address the first is kept, as in the kernel
    /// itself.
    functions: Vec<Function>,
    /// All names, concatenated.
    names: String,
    modules: Vec<String>,
    skipped: u64,
    full: bool,
}

#[derive(Clone, Copy, Debug)]
struct Function {
    address: u64,
    name: u32,
    length: u16,
    /// Index in `modules`; 0 is the kernel itself.
    module: u16,
}

/// Location of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolPlace<'a> {
    /// Function, without the compiler's suffixes (`.cold`, `.isra.0`).
    pub function: &'a str,
    /// Module; `""` is the kernel itself.
    pub module: &'a str,
    /// Bytes from the start of the function, or of its cold part.
    pub offset: u64,
}

impl Symbols {
    /// Parses the text of /proc/kallsyms.
    pub fn parse(text: &[u8]) -> Result<Symbols, NoNames> {
        let mut symbols = Symbols { modules: vec![String::new()], ..Symbols::default() };
        let mut hidden = false;
        for line in text.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
            match Line::parse(line) {
                Some(line) if line.address == 0 => hidden |= line.code,
                Some(line) if !line.code || line.name.starts_with("__pfx_") => {}
                Some(line) => symbols.add(&line),
                None => symbols.skipped += 1,
            }
        }
        if symbols.full {
            return Err(NoNames::TooMany);
        }
        if symbols.functions.is_empty() {
            return Err(if hidden { NoNames::Hidden } else { NoNames::Empty });
        }
        symbols.functions.compact_sort_by_key(|function| function.address);
        symbols.functions.dedup_by_key(|function| function.address);
        Ok(symbols)
    }

    fn add(&mut self, line: &Line) {
        let name = display(line.name);
        let module = match self.modules.iter().rposition(|known| known == line.module) {
            Some(at) => at,
            None => {
                self.modules.push(line.module.to_owned());
                self.modules.len() - 1
            }
        };
        let (Ok(at), Ok(length), Ok(module)) =
            (u32::try_from(self.names.len()), u16::try_from(name.len()), u16::try_from(module))
        else {
            self.skipped += 1;
            return;
        };
        if self.functions.len() >= LIMIT {
            self.full = true;
            return;
        }
        self.names.push_str(name);
        self.functions.push(Function { address: line.address, name: at, length, module });
    }

    /// Number of functions.
    pub fn count(&self) -> usize {
        self.functions.len()
    }

    /// Number of lines that could not be parsed: an address in such a function may get the name of
    /// the one before it.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Function that contains an address.
    pub fn name_of(&self, address: u64) -> Option<SymbolPlace<'_>> {
        let at = self.functions.partition_point(|function| function.address <= address).checked_sub(1)?;
        let found = self.functions.get(at)?;
        let next = self.functions.get(at + 1).filter(|next| next.module == found.module);
        let reach = next.map_or(LAST, |next| (next.address - found.address).min(LONGEST));
        let offset = address - found.address;
        (offset < reach).then(|| SymbolPlace {
            function: self.text(found),
            module: self.modules.get(usize::from(found.module)).map_or("", String::as_str),
            offset,
        })
    }

    /// Address of a function, if exactly one has that name; its cold part counts as another one.
    pub fn address_of(&self, name: &str) -> Option<u64> {
        let mut found = self.functions.iter().filter(|function| self.text(function) == name);
        match (found.next(), found.next()) {
            (Some(only), None) => Some(only.address),
            _ => None,
        }
    }

    fn text(&self, function: &Function) -> &str {
        let at = function.name as usize;
        self.names.get(at..at + usize::from(function.length)).unwrap_or_default()
    }
}

/// Name without the compiler's suffixes: functions in C have no dot in their names.
fn display(name: &str) -> &str {
    match name.find('.') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

struct Line<'a> {
    address: u64,
    code: bool,
    name: &'a str,
    module: &'a str,
}

impl<'a> Line<'a> {
    /// Parses `ffffffff81000000 T name`, followed by `\t[module]` for modules.
    fn parse(line: &'a [u8]) -> Option<Line<'a>> {
        let mut fields = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
        let address = u64::from_str_radix(fields.next()?, 16).ok()?;
        let code = matches!(fields.next()?, "t" | "T" | "w" | "W");
        let name = fields.next()?;
        let module = fields.next().unwrap_or_default();
        Some(Line { address, code, name, module: module.trim_start_matches('[').trim_end_matches(']') })
    }
}

/// Strings that events point to, such as the reasons of Arm's IPIs, by address.
///
/// Source: `printk_formats` of tracefs, t_show in kernel/trace/trace_printk.c: `0xADDRESS :
/// "text"`.
pub fn printk_formats(text: &str) -> Vec<(u64, String)> {
    let line = |line: &str| {
        let (address, text) = line.split_once(" : ")?;
        let address = u64::from_str_radix(address.trim().strip_prefix("0x")?, 16).ok()?;
        let text = text.trim().strip_prefix('"')?.strip_suffix('"')?;
        (address != 0).then(|| (address, unescape(text)))
    };
    let mut found: Vec<_> = text.lines().filter_map(line).take(LIMIT).collect();
    found.compact_sort_by_key(|entry| entry.0);
    found.dedup_by_key(|entry| entry.0);
    found
}

/// Unescapes a reason or a format to a single line.
fn unescape(text: &str) -> String {
    let text = text.replace("\\n", " ").replace("\\t", " ").replace("\\\"", "\"").replace("\\\\", "\\");
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &[u8] = b"0000000000000000 A fixed_percpu_data
ffffffff81000000 T first
ffffffff81000000 T _text
ffffffff81000010 t __pfx_second
ffffffff81000020 t second.isra.0
ffffffff81000100 t twin
ffffffff81000200 t twin
ffffffff81000300 t second.isra.0.cold
ffffffff81100300 T _etext
ffffffff82000000 D jiffies
ffffffffc0001000 t probe\t[driver]
ffffffffc0001100 t remove\t[driver]
ffffffffc0003000 t bpf_prog_1\t[bpf]
nonsense
";

    fn place(address: u64) -> Option<(String, String, u64)> {
        let symbols = Symbols::parse(TEXT).unwrap();
        symbols.name_of(address).map(|at| (at.function.into(), at.module.into(), at.offset))
    }

    #[test]
    fn an_address_lies_in_the_function_before_it() {
        let is = |name: &str, module: &str, offset| Some((name.to_owned(), module.to_owned(), offset));
        assert_eq!(place(0xffff_ffff_8100_0004), is("first", "", 4));
        assert_eq!(place(0xffff_ffff_8100_0020), is("second", "", 0));
        assert_eq!(place(0xffff_ffff_8100_0301), is("second", "", 1));
        assert_eq!(place(0xffff_ffff_c000_10ff), is("probe", "driver", 0xff));
        assert_eq!(place(0xffff_ffff_c000_1104), is("remove", "driver", 4));
    }

    #[test]
    fn an_unknown_range_has_no_name() {
        for address in [
            0,
            0x40_0000,
            0xffff_ffff_80ff_ffff,
            0xffff_ffff_8100_0300 + LONGEST,
            0xffff_ffff_8200_0000,
            0xffff_ffff_c000_2100,
            u64::MAX,
        ] {
            assert_eq!(place(address), None, "{address:x}");
        }
    }

    #[test]
    fn a_name_has_an_address_if_it_is_the_only_one() {
        let symbols = Symbols::parse(TEXT).unwrap();
        assert_eq!(symbols.address_of("probe"), Some(0xffff_ffff_c000_1000));
        assert_eq!(symbols.address_of("twin"), None);
        assert_eq!(symbols.address_of("jiffies"), None);
        assert_eq!((symbols.count(), symbols.skipped()), (9, 1));
    }

    #[test]
    fn hidden_addresses_are_distinguished_from_none() {
        let hidden = b"0000000000000000 T _text\n0000000000000000 t second\n";
        assert_eq!(Symbols::parse(hidden).err(), Some(NoNames::Hidden));
        assert_eq!(Symbols::parse(b"").err(), Some(NoNames::Empty));
        assert_eq!(Symbols::parse(b"0000000000000000 A x\n").err(), Some(NoNames::Empty));
    }

    #[test]
    fn formats_are_strings_by_address() {
        let text = "0xffffffff82000020 : \"say \\\"%s\\\"\\n\"\n0xffffffff82000010 : \"Rescheduling interrupts\"\n0x1 : no\n";
        let found = printk_formats(text);
        assert_eq!(found[0], (0xffff_ffff_8200_0010, "Rescheduling interrupts".to_owned()));
        assert_eq!(found[1], (0xffff_ffff_8200_0020, "say \"%s\"".to_owned()));
        assert_eq!(found.len(), 2);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400), at: u64) {
            if let Ok(symbols) = Symbols::parse(&bytes) {
                symbols.name_of(at);
            }
        }

        #[test]
        fn any_list_is_survived(text in "([0-9a-f]{0,17}[ \t][tTwD][ \t][a-z._]{0,6}(\t\\[[a-z]{0,3}\\]?)?\n){0,12}", at: u64) {
            if let Ok(symbols) = Symbols::parse(text.as_bytes()) {
                for function in &symbols.functions {
                    let named = symbols.name_of(function.address);
                    prop_assert_eq!(named.map(|place| place.offset), Some(0));
                }
                symbols.name_of(at);
                symbols.address_of("a");
            }
            printk_formats(&text);
        }
    }
}
