//! The kernel's description of its types: offsets of structure members, and the arguments that a
//! tracepoint passes to programs.
//!
//! Nothing is indexed: about a dozen look-ups are made, once each, by scanning the bytes. Any bytes
//! are safe. Source: Documentation/bpf/btf.rst, include/uapi/linux/btf.h.

const MAGIC: u16 = 0xeb9f;
/// The largest kernels, with debugging options, have some 15 MB.
const SIZE_LIMIT: usize = 64 << 20;
/// Typedefs, qualifiers and unnamed members are followed so far.
const DEPTH_LIMIT: usize = 8;

pub(crate) const INT: u32 = 1;
/// Flag in an integer's encoding: it is `bool`.
const TRUTH: u32 = 4;
pub(crate) const PTR: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
pub(crate) const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const RESTRICT: u32 = 11;
pub(crate) const FUNC_PROTO: u32 = 13;
const TYPE_TAG: u32 = 18;

/// The types of a kernel.
#[derive(Clone, Copy)]
pub struct Btf<'a> {
    types: &'a [u8],
    strings: &'a [u8],
}

/// One type.
#[derive(Clone, Copy)]
struct Type<'a> {
    id: u32,
    kind: u32,
    name: u32,
    /// Target of a pointer, typedef or qualifier.
    of: u32,
    /// True if the upper byte of a member's offset is the width of a bit field.
    bit_fields: bool,
    /// Trailing data: members or parameters.
    rest: &'a [u8],
}

impl<'a> Btf<'a> {
    /// Finds the two sections of `/sys/kernel/btf/vmlinux`.
    pub fn parse(bytes: &'a [u8]) -> Result<Btf<'a>, String> {
        if bytes.len() > SIZE_LIMIT {
            return Err("the kernel's types are larger than those of any kernel".to_owned());
        }
        let magic = bytes.get(..2).map(|two| u16::from_ne_bytes([two[0], two[1]]));
        if magic != Some(MAGIC) || bytes.get(2) != Some(&1) {
            return Err("the kernel's types are not in BTF version 1".to_owned());
        }
        let section = |offset: usize, length: usize| {
            let begin = word(bytes, 4)?.checked_add(word(bytes, offset)?)? as usize;
            let end = begin.checked_add(word(bytes, length)? as usize)?;
            bytes.get(begin..end)
        };
        let cut = || "the kernel's types are truncated".to_owned();
        let types = section(8, 12).ok_or_else(cut)?;
        let strings = section(16, 20).ok_or_else(cut)?;
        let btf = Btf { types, strings };
        if btf.walk().any(|found| found.is_none()) {
            return Err("the kernel's types have an unknown kind, or are truncated".to_owned());
        }
        Ok(btf)
    }

    /// All types in order; ends with `None` at the first unreadable one.
    fn walk(self) -> impl Iterator<Item = Option<Type<'a>>> {
        let (mut at, mut id, mut broken) = (0, 0, false);
        std::iter::from_fn(move || {
            if broken || at >= self.types.len() {
                return None;
            }
            id += 1;
            let found = self.read(at, id);
            match found {
                Some(one) => at += 12 + one.rest.len(),
                None => broken = true,
            }
            Some(found)
        })
    }

    fn types(self) -> impl Iterator<Item = Type<'a>> {
        self.walk().flatten()
    }

    fn read(self, at: usize, id: u32) -> Option<Type<'a>> {
        let name = word(self.types, at)?;
        let info = word(self.types, at + 4)?;
        let of = word(self.types, at + 8)?;
        let (kind, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
        // btf_type's tail by kind: integers, declarations' tags and variables have 4 bytes, arrays
        // 12, members and values of 64 bits 12 each, values and parameters 8 each, sections 12.
        let rest = match kind {
            INT | 14 | 17 => 4,
            ARRAY => 12,
            STRUCT | UNION | 15 | 19 => count * 12,
            6 | FUNC_PROTO => count * 8,
            PTR | 7 | TYPEDEF | VOLATILE | CONST | RESTRICT | 12 | 16 | TYPE_TAG => 0,
            _ => return None,
        };
        let rest = self.types.get(at + 12..at + 12 + rest)?;
        Some(Type { id, kind, name, of, bit_fields: info >> 31 == 1, rest })
    }

    fn is_named(self, offset: u32, name: &str) -> bool {
        let text = self.strings.get(offset as usize..).unwrap_or_default();
        text.get(name.len()) == Some(&0) && text.starts_with(name.as_bytes())
    }

    fn by_id(self, id: u32) -> Option<Type<'a>> {
        self.types().find(|found| found.id == id)
    }

    /// The type itself, below typedefs and qualifiers.
    fn resolved(self, id: u32) -> Option<Type<'a>> {
        let mut found = self.by_id(id)?;
        for _ in 0..DEPTH_LIMIT {
            if !matches!(found.kind, TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG) {
                return Some(found);
            }
            found = self.by_id(found.of)?;
        }
        None
    }

    /// Bytes from a structure's start to a member, which may be in an unnamed structure of it. A
    /// structure is found by its name and by having that member: some names occur twice.
    pub fn member(self, structure: &str, member: &str) -> Option<i16> {
        self.types()
            .filter(|found| found.kind == STRUCT && self.is_named(found.name, structure))
            .find_map(|found| self.member_of(found, member, 0))
    }

    fn member_of(self, structure: Type<'a>, wanted: &str, depth: usize) -> Option<i16> {
        for member in structure.rest.chunks_exact(12) {
            let (name, of, place) = (word(member, 0)?, word(member, 4)?, word(member, 8)?);
            let (bits, width) =
                if structure.bit_fields { (place & 0xff_ffff, place >> 24) } else { (place, 0) };
            let whole = width == 0 && bits % 8 == 0;
            if self.is_named(name, wanted) {
                return whole.then(|| i16::try_from(bits / 8).ok())?;
            }
            if name == 0 && whole && depth < DEPTH_LIMIT {
                let inner = self.by_id(of).filter(|inner| matches!(inner.kind, STRUCT | UNION));
                let inside = inner.and_then(|inner| self.member_of(inner, wanted, depth + 1));
                if let Some(offset) = inside {
                    return offset.checked_add(i16::try_from(bits / 8).ok()?);
                }
            }
        }
        None
    }

    /// Attach point of a tracepoint's programs, and the positions of its parameters among the
    /// arguments.
    pub fn tracepoint(self, name: &str) -> Option<Tracepoint<'a>> {
        let wanted = format!("btf_trace_{name}");
        let found = self.types().find(|found| found.kind == TYPEDEF && self.is_named(found.name, &wanted))?;
        let pointer = self.by_id(found.of).filter(|pointer| pointer.kind == PTR)?;
        let function = self.by_id(pointer.of).filter(|function| function.kind == FUNC_PROTO)?;
        // The first is the registrant's private data, which programs do not see.
        Some(Tracepoint { id: found.id, btf: self, parameters: function.rest.get(8..)? })
    }
}

/// Kind of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// `bool`.
    Truth,
    /// Any other integer, with its size in bytes.
    Number(u32),
    /// Any type other than an integer.
    Other,
}

/// A tracepoint's parameters.
#[derive(Clone, Copy)]
pub struct Tracepoint<'a> {
    /// The number of its type.
    pub id: u32,
    btf: Btf<'a>,
    parameters: &'a [u8],
}

impl Tracepoint<'_> {
    fn each(&self) -> impl Iterator<Item = Option<Type<'_>>> {
        self.parameters
            .chunks_exact(8)
            .map(|parameter| word(parameter, 4).and_then(|of| self.btf.resolved(of)))
    }

    /// Offsets of the pointers to a structure within a program's arguments.
    pub fn pointers_to(&self, structure: &str) -> Vec<i16> {
        let is_one = |parameter: Option<Type<'_>>| {
            let to =
                parameter.filter(|found| found.kind == PTR).and_then(|found| self.btf.resolved(found.of));
            to.is_some_and(|to| to.kind == STRUCT && self.btf.is_named(to.name, structure))
        };
        self.places(is_one)
    }

    /// Offsets of the parameters that are not pointers.
    pub fn numbers(&self) -> Vec<i16> {
        self.places(|parameter| parameter.is_some_and(|found| found.kind != PTR))
    }

    /// All parameters, for callers that accept known signatures only.
    pub fn parameters(&self) -> Vec<Parameter> {
        let what = |parameter: Option<Type<'_>>| match parameter {
            Some(found) if found.kind == INT => match word(found.rest, 0).map(|word| word >> 24 & 0xf) {
                Some(encoding) if encoding & TRUTH != 0 => Parameter::Truth,
                _ => Parameter::Number(found.of),
            },
            _ => Parameter::Other,
        };
        self.each().map(what).collect()
    }

    fn places(&self, is_one: impl Fn(Option<Type<'_>>) -> bool) -> Vec<i16> {
        (0..)
            .step_by(8)
            .zip(self.each())
            .filter(|(_, parameter)| is_one(*parameter))
            .map(|(at, _)| at)
            .collect()
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes([four[0], four[1], four[2], four[3]]))
}

/// Runs every look-up on arbitrary bytes.
pub fn ask_all(bytes: &[u8]) {
    let Ok(btf) = Btf::parse(bytes) else { return };
    for (structure, member) in [("task_struct", "pid"), ("hrtimer", "base"), ("a", "b")] {
        btf.member(structure, member);
    }
    for name in ["sched_switch", "a"] {
        if let Some(found) = btf.tracepoint(name) {
            found.pointers_to("task_struct");
            found.numbers();
            found.parameters();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Builder of type data for tests.
    #[derive(Default)]
    pub(crate) struct Made {
        types: Vec<u8>,
        strings: Vec<u8>,
        count: u32,
    }

    impl Made {
        fn name(&mut self, name: &str) -> u32 {
            if self.strings.is_empty() {
                self.strings.push(0);
            }
            if name.is_empty() {
                return 0;
            }
            let at = self.strings.len() as u32;
            self.strings.extend(name.bytes().chain([0]));
            at
        }

        pub(crate) fn add(&mut self, name: &str, kind: u32, count: usize, of: u32, rest: &[u32]) -> u32 {
            let name = self.name(name);
            for word in [name, kind << 24 | count as u32, of].iter().chain(rest) {
                self.types.extend(word.to_ne_bytes());
            }
            self.count += 1;
            self.count
        }

        pub(crate) fn structure(&mut self, name: &str, members: &[(&str, u32, u32)]) -> u32 {
            let words: Vec<u32> =
                members.iter().flat_map(|(name, of, bytes)| [self.name(name), *of, bytes * 8]).collect();
            self.add(name, STRUCT, members.len(), 0, &words)
        }

        pub(crate) fn bytes(&self) -> Vec<u8> {
            let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
            let mut out = MAGIC.to_ne_bytes().to_vec();
            out.extend([1, 0]);
            for word in [24, 0, types, types, strings] {
                out.extend(word.to_ne_bytes());
            }
            [out, self.types.clone(), self.strings.clone()].concat()
        }
    }

    fn small() -> Vec<u8> {
        let mut types = Made::default();
        let number = types.add("int", 1, 0, 4, &[32]);
        let inner = types.structure("", &[("prio", number, 4)]);
        let task = types.structure("task_struct", &[("pid", number, 8), ("", inner, 16)]);
        let constant = types.add("", CONST, 0, task, &[]);
        let pointer = types.add("", PTR, 0, constant, &[]);
        let nothing = types.add("", PTR, 0, 0, &[]);
        let parameters = [0, nothing, 0, number, 0, pointer, 0, pointer, 0, number];
        let function = types.add("", FUNC_PROTO, 5, 0, &parameters);
        let to_function = types.add("", PTR, 0, function, &[]);
        types.add("btf_trace_sched_switch", TYPEDEF, 0, to_function, &[]);
        types.bytes()
    }

    #[test]
    fn members_and_parameters_have_their_places() {
        let bytes = small();
        let btf = Btf::parse(&bytes).unwrap();
        assert_eq!(btf.member("task_struct", "pid"), Some(8));
        assert_eq!(btf.member("task_struct", "prio"), Some(20));
        assert_eq!(btf.member("task_struct", "comm"), None);
        assert_eq!(btf.member("task", "pid"), None);
        let found = btf.tracepoint("sched_switch").unwrap();
        assert_eq!((found.pointers_to("task_struct"), found.numbers()), (vec![8, 16], vec![0, 24]));
        assert_eq!(found.id, 9);
        let (number, other) = (Parameter::Number(4), Parameter::Other);
        assert_eq!(found.parameters(), [number, other, other, number]);
        assert!(btf.tracepoint("sched").is_none());
    }

    #[test]
    fn what_is_no_btf_is_refused() {
        let bytes = small();
        for damaged in [&bytes[..0], &bytes[..10], &bytes[..bytes.len() - 1], &[0; 64]] {
            assert!(Btf::parse(damaged).is_err());
        }
        let mut unknown = Made::default();
        unknown.add("x", 25, 0, 0, &[]);
        assert!(Btf::parse(&unknown.bytes()).is_err());
    }

    proptest! {
        #[test]
        fn damaged_types_do_no_harm(at in 0usize..300, put in any::<u8>(), end in 0usize..400) {
            let mut bytes = small();
            let at = at % bytes.len();
            bytes[at] = put;
            bytes.truncate(end.max(1));
            ask_all(&bytes);
        }

        #[test]
        fn any_bytes_are_survived(mut bytes in proptest::collection::vec(any::<u8>(), 24..200), valid: bool) {
            if valid {
                let length = (bytes.len() - 24) as u32;
                bytes[..4].copy_from_slice(&[MAGIC.to_ne_bytes()[0], MAGIC.to_ne_bytes()[1], 1, 0]);
                let half = length / 2;
                for (at, word) in [24, 0, half, half, length - half].into_iter().enumerate() {
                    bytes[4 + at * 4..8 + at * 4].copy_from_slice(&u32::to_ne_bytes(word));
                }
            }
            ask_all(&bytes);
        }
    }
}
