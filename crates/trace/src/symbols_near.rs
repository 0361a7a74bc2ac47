//! Functions around some addresses, from the kernel's list as a stream: a program that runs for
//! months does not store the whole list for a dozen names.

use std::ops::Range;

use crate::symbols::{NoNames, Symbols};

/// Lines are truncated to this length in bytes; symbols are shorter (KSYM_NAME_LEN is 512).
const LONGEST_LINE: usize = 1024;

/// Parser of /proc/kallsyms in pieces of any size.
#[derive(Clone, Debug, Default)]
pub struct SymbolsNear {
    /// The addresses, sorted.
    addresses: Vec<u64>,
    /// Functions up to each address and after the one before; the last one's are after all.
    gaps: Vec<Gap>,
    /// Start of an incomplete line.
    begun: Vec<u8>,
    /// True if a function's address was hidden.
    hidden: bool,
}

/// First and last function between two addresses: the list has some 200,000 lines, so each line
/// may only search, not visit all addresses.
#[derive(Clone, Debug, Default)]
struct Gap {
    first: Option<(u64, Vec<u8>)>,
    last: Option<(u64, Vec<u8>)>,
}

impl SymbolsNear {
    pub fn new(addresses: impl IntoIterator<Item = u64>) -> SymbolsNear {
        let mut addresses: Vec<u64> = addresses.into_iter().collect();
        addresses.sort_unstable();
        addresses.dedup();
        let gaps = vec![Gap::default(); addresses.len() + 1];
        SymbolsNear { addresses, gaps, ..SymbolsNear::default() }
    }

    /// Takes the next piece.
    pub fn take(&mut self, piece: &[u8]) {
        for part in piece.split_inclusive(|&byte| byte == b'\n') {
            let room = LONGEST_LINE - self.begun.len().min(LONGEST_LINE);
            self.begun.extend(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.begun);
        if let Some((address, code)) = address_of(&line).filter(|(_, code)| *code) {
            self.hidden |= address == 0;
            if address != 0 && !is_padding(code, &line) {
                let gap = self.addresses.partition_point(|&wanted| wanted < address);
                self.gaps[gap].look(address, &line);
            }
        }
        // Reuses the allocation.
        self.begun = line;
        self.begun.clear();
    }

    /// Functions found, and the spans from the start of one with an address to that of the next.
    pub fn symbols(mut self) -> Result<(Symbols, Vec<Range<u64>>), NoNames> {
        self.end_line();
        let mut text = Vec::new();
        for (_, line) in self.gaps.iter().flat_map(|gap| [&gap.first, &gap.last]).flatten() {
            text.extend(line);
            text.push(b'\n');
        }
        match Symbols::parse(&text) {
            Err(NoNames::Empty) if self.hidden => Err(NoNames::Hidden),
            found => Ok((found?, self.spans())),
        }
    }

    fn spans(&self) -> Vec<Range<u64>> {
        let start = |function: &Option<(u64, Vec<u8>)>| Some(function.as_ref()?.0);
        let (mut spans, mut below) = (Vec::new(), None);
        for gap in &self.gaps {
            if let Some((from, to)) = below.zip(start(&gap.first)) {
                spans.push(from..to);
            }
            below = start(&gap.last).or(below);
        }
        spans
    }
}

impl Gap {
    fn look(&mut self, address: u64, line: &[u8]) {
        let here = || Some((address, line.trim_ascii_end().to_vec()));
        // Of several names for an address the first is kept, as in the kernel itself.
        if self.first.as_ref().is_none_or(|known| address < known.0) {
            self.first = here();
        }
        if self.last.as_ref().is_none_or(|known| known.0 < address) {
            self.last = here();
        }
    }
}

/// Address of a symbol, and true if it is code.
fn address_of(line: &[u8]) -> Option<(u64, bool)> {
    let mut fields = line.split(|&byte| byte == b' ');
    let address = std::str::from_utf8(fields.next()?).ok()?;
    let address = u64::from_str_radix(address, 16).ok()?;
    Some((address, matches!(fields.next()?, b"t" | b"T" | b"w" | b"W")))
}

/// True for the padding of call thunks before a function, which is not the function.
fn is_padding(code: bool, line: &[u8]) -> bool {
    code && line.split(|&byte| byte == b' ').nth(2).is_some_and(|name| name.starts_with(b"__pfx_"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIST: &str = "ffffffff81000000 T first
ffffffff81000000 T alias
ffffffff810000f0 t __pfx_second
ffffffff81000100 t second.isra.0
ffffffff81000180 d data
ffffffff81000200 T third
ffffffffc0000000 t driver_poll\t[driver]
";

    fn name(symbols: &Symbols, address: u64) -> Option<String> {
        symbols.name_of(address).map(|place| format!("{}+{:x}", place.function, place.offset))
    }

    #[test]
    fn a_few_names_are_those_of_the_whole_list() {
        let whole = Symbols::parse(LIST.as_bytes()).unwrap();
        let asked = [0xffff_ffff_8100_0010, 0xffff_ffff_8100_01ff, 0xffff_ffff_c000_0004, 7];
        let mut near = SymbolsNear::new(asked);
        near.take(LIST.as_bytes());
        let (near, spans) = near.symbols().unwrap();
        for address in asked {
            assert_eq!(name(&near, address), name(&whole, address), "{address:x}");
        }
        assert_eq!(name(&near, asked[1]).unwrap(), "second+ff");
        // Any address of these has a name, too; after the last function another may begin.
        let [first, second, third] = [0xffff_ffff_8100_0000, 0xffff_ffff_8100_0100, 0xffff_ffff_8100_0200];
        assert_eq!(spans, [first..second, second..third]);
    }

    #[test]
    fn hidden_addresses_are_told_from_an_empty_list() {
        let of = |text: &str| {
            let mut near = SymbolsNear::new([9]);
            near.take(text.as_bytes());
            near.symbols().map(drop)
        };
        assert_eq!(of("0000000000000000 T first\n"), Err(NoNames::Hidden));
        assert_eq!(of(""), Err(NoNames::Empty));
        assert_eq!(of("no list\n\n"), Err(NoNames::Empty));
    }

    proptest! {
        #[test]
        fn every_address_of_a_span_has_the_name_of_the_whole_list(
            functions in prop::collection::vec(1u64..200, 1..40),
            asked in prop::collection::vec(0u64..220, 0..12),
        ) {
            let line = |(nth, at): (usize, &u64)| format!("{at:x} T f{nth}\n");
            let list: String = functions.iter().enumerate().map(line).collect();
            let whole = Symbols::parse(list.as_bytes()).unwrap();
            let mut near = SymbolsNear::new(asked.iter().copied());
            near.take(list.as_bytes());
            let (near, spans) = near.symbols().unwrap();
            for address in spans.into_iter().flatten().chain(asked) {
                prop_assert_eq!(name(&near, address), name(&whole, address), "{:x}", address);
            }
        }

        #[test]
        fn the_pieces_do_not_matter(
            cuts in prop::collection::vec(0usize..LIST.len(), 0..6),
            junk in prop::collection::vec(any::<u8>(), 0..3000),
        ) {
            let mut at: Vec<usize> = cuts;
            at.push(LIST.len());
            at.sort_unstable();
            let mut near = SymbolsNear::new([0xffff_ffff_8100_0234]);
            near.take(&junk);
            near.take(b"\n");
            let mut from = 0;
            for to in at {
                near.take(&LIST.as_bytes()[from..to]);
                from = to;
            }
            let (found, _) = near.symbols().unwrap();
            prop_assert_eq!(name(&found, 0xffff_ffff_8100_0234), Some("third+34".to_owned()));
        }
    }
}
