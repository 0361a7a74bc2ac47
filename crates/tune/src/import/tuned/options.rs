//! Options in the order of a profile.

use std::collections::BTreeMap;

/// Options by name; a new value replaces the old one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptionList {
    /// Values with their ranks.
    values: BTreeMap<String, (i64, String)>,
    first: i64,
    next: i64,
}

impl OptionList {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|(_, value)| value.as_str())
    }

    /// Sets an option in its existing position, else at the end.
    pub fn set(&mut self, name: &str, value: String) {
        match self.values.get_mut(name) {
            Some((_, own)) => *own = value,
            None => {
                self.values.insert(name.to_owned(), (self.next, value));
                self.next += 1;
            }
        }
    }

    /// Adds a line to a value.
    pub fn continue_value(&mut self, name: &str, line: &str) {
        if let Some((_, own)) = self.values.get_mut(name) {
            own.push('\n');
            own.push_str(line);
        }
    }

    pub fn take(&mut self, name: &str) -> Option<String> {
        self.values.remove(name).map(|(_, value)| value)
    }

    pub fn move_to_front(&mut self, name: &str) {
        if let Some((rank, _)) = self.values.get_mut(name) {
            self.first -= 1;
            *rank = self.first;
        }
    }

    pub fn clear(&mut self) {
        self.values.clear();
    }

    /// All options with their values, in order.
    pub fn in_order(&self) -> Vec<(&str, &str)> {
        let mut all: Vec<_> =
            self.values.iter().map(|(name, (rank, value))| (*rank, name.as_str(), value.as_str())).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, name, value)| (name, value)).collect()
    }
}
