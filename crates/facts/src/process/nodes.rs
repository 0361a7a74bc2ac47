//! Memory nodes of the pages of a process.
//!
//! Source: `/proc/PID/numa_maps` in numa(7).

use std::collections::BTreeMap;

/// Limit of lines; a longer text is malformed, as with `smaps`.
const MAPPINGS_LIMIT: usize = 65_536;

/// Pages of one mapping, by node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodePages {
    pub start: u64,
    pub pages: BTreeMap<u32, u64>,
}

/// Parses `/proc/PID/numa_maps`.
pub fn parse_numa_maps(text: &str) -> Result<Vec<NodePages>, String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let start = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
        let start = start.ok_or("expected an address at the beginning of each line")?;
        let pages = words.filter_map(|word| {
            let (node, count) = word.strip_prefix('N')?.split_once('=')?;
            Some((node.parse().ok()?, count.parse().ok()?))
        });
        found.push(NodePages { start, pages: pages.collect() });
        if found.len() > MAPPINGS_LIMIT {
            return Err(format!("expected at most {MAPPINGS_LIMIT} mappings"));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_by_node() {
        let text = "55d0 default file=/bin/a mapped=2 N0=1 N1=1 kernelpagesize_kB=4\n7f00 default\n";
        let found = parse_numa_maps(text).unwrap();
        assert_eq!((found[0].pages.get(&1), found[1].pages.len()), (Some(&1), 0));
        assert!(parse_numa_maps("here N0=1\n").is_err());
        assert_eq!(parse_numa_maps(""), Ok(Vec::new()));
    }
}
