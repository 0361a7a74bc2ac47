//! Names of a trace without addresses, mapped to synthetic addresses.

use std::collections::HashMap;

use trace::event::Address;

/// Maximum number of names; a kernel calls some thousands of functions.
const MAX_NAMES: usize = 1 << 16;

/// Maximum length of a name.
const MAX_LENGTH: usize = 128;

/// Names with their synthetic addresses.
#[derive(Default)]
pub struct Interned {
    numbers: HashMap<String, Address>,
}

impl Interned {
    /// Address of a name; 0 if there is none left.
    pub fn address(&mut self, name: &str) -> Address {
        if let Some(&known) = self.numbers.get(name) {
            return known;
        }
        if name.is_empty() || name.len() > MAX_LENGTH || self.numbers.len() == MAX_NAMES {
            return 0;
        }
        // A return address is looked up by the byte before it: odd addresses are those.
        let address = 2 * (self.numbers.len() as Address + 1);
        self.numbers.insert(name.to_owned(), address);
        address
    }

    /// Address of a function in a text: `name+0x1d/0x60 [module]` or `name/0x0`.
    pub fn function(&mut self, text: &str) -> Address {
        let text = text.trim();
        let (place, module) = match text.split_once(" [") {
            Some((place, module)) => (place, module.trim_end_matches(']')),
            None => (text, ""),
        };
        let name = place.split(['+', '/', ' ']).next().unwrap_or_default();
        let name = name.trim_end_matches("()");
        // A function without a name is printed as a number.
        if name.starts_with("0x") || name.starts_with(|first: char| first.is_ascii_digit()) {
            return 0;
        }
        match module {
            "" => self.address(name),
            _ => self.address(&format!("{name} [{module}]")),
        }
    }

    /// All names with their synthetic addresses.
    pub fn table(&self) -> Vec<(Address, String)> {
        let pairs = self.numbers.iter();
        pairs.flat_map(|(name, &at)| [(at, name.clone()), (at + 1, name.clone())]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_one_address_whatever_is_printed_behind_them() {
        let mut names = Interned::default();
        let first = names.function("hrtimer_wakeup");
        assert_eq!(names.function("hrtimer_wakeup/0x0"), first);
        assert_eq!(names.function("hrtimer_wakeup+0x12/0x40"), first);
        assert_eq!(names.function("nmi_handler()"), 4);
        assert_eq!(names.function("poll+0x1/0x2 [driver]"), 6);
        assert_eq!((names.function("0xffffffff81000000"), names.function("")), (0, 0));
        let mut table = names.table();
        table.sort();
        assert_eq!(table[..2], [(2, "hrtimer_wakeup".to_owned()), (3, "hrtimer_wakeup".to_owned())]);
        assert_eq!(table[5].1, "poll [driver]");
    }
}
