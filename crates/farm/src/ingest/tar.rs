//! Reads a tar archive that may be hostile: files and folders, nothing else; and writes one of
//! files.
//!
//! The formats are POSIX's ustar and pax (IEEE Std 1003.1, pax, "EXTENDED DESCRIPTION") and GNU's
//! long names; links, devices and sparse files are told as what they are, and never made.

use std::io::{self, Read};

const BLOCK: usize = 512;
/// No name is longer, and no record of the pax format.
const LONGEST_NAME: u64 = 4 << 10;
const MOST_PAX: u64 = 64 << 10;
/// What a head itself has place for: a name, and eleven octal digits.
const LONGEST_PLAIN: usize = 100;
const MOST_PLAIN: u64 = (8 << 30) - 1;
/// Records before one file.
const MOST_RECORDS: usize = 8;

/// What stands in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TarEntry {
    File {
        path: String,
        bytes: u64,
    },
    Folder,
    /// A link, a device, a sparse file, or what has no name in UTF-8.
    Other,
}

/// An archive that is read once, from its beginning.
pub struct TarReader<R> {
    from: R,
    /// Of the entry's content, and what fills its last block.
    left: u64,
    filling: u64,
}

/// What the records before an entry say of it.
#[derive(Default)]
struct Extended {
    path: Option<String>,
    bytes: Option<u64>,
    is_sparse: bool,
    is_unnamed: bool,
}

impl<R: Read> TarReader<R> {
    pub fn new(from: R) -> TarReader<R> {
        TarReader { from, left: 0, filling: 0 }
    }

    /// The next entry; none at the end of the archive. Content that was not read is passed over.
    pub fn next_entry(&mut self) -> Result<Option<TarEntry>, String> {
        let mut extended = Extended::default();
        for _ in 0..=MOST_RECORDS {
            self.pass_over()?;
            let Some(head) = self.head()? else { return Ok(None) };
            let bytes = extended.bytes.filter(|_| !matches!(head[156], b'x' | b'g' | b'L' | b'K'));
            let bytes = bytes.map_or_else(|| size(&head), Ok)?;
            match head[156] {
                b'x' => self.pax(bytes, &mut extended)?,
                b'L' => {
                    let text = self.small(bytes, LONGEST_NAME)?;
                    extended.path = text_of(text.split(|byte| *byte == 0).next().unwrap_or_default());
                    extended.is_unnamed |= extended.path.is_none();
                }
                b'g' | b'K' => {
                    self.small(bytes, MOST_PAX)?;
                }
                kind => return self.entry(kind, &head, bytes, extended).map(Some),
            }
        }
        Err("it has too many records before a file".to_owned())
    }

    fn entry(&mut self, kind: u8, head: &[u8; BLOCK], bytes: u64, of: Extended) -> Result<TarEntry, String> {
        // Links, devices and folders have no content, whatever they say.
        let bytes = if matches!(kind, b'1'..=b'6') { 0 } else { bytes };
        self.content(bytes)?;
        let path = if of.is_unnamed { None } else { of.path.or_else(|| name(head)) };
        Ok(match (kind, path) {
            (b'5', _) => TarEntry::Folder,
            (b'0' | 0 | b'7', Some(path)) if !of.is_sparse => match path.ends_with('/') {
                true => TarEntry::Folder,
                false => TarEntry::File { path, bytes },
            },
            _ => TarEntry::Other,
        })
    }

    /// The next head; none where a block of zeros ends the archive.
    fn head(&mut self) -> Result<Option<[u8; BLOCK]>, String> {
        let mut head = [0; BLOCK];
        self.from.read_exact(&mut head).map_err(|error| cut(&error))?;
        if head.iter().all(|byte| *byte == 0) {
            // What fills the last record is read, so that who writes it is not cut off.
            io::copy(&mut (&mut self.from).take(1 << 20), &mut io::sink()).map_err(|error| cut(&error))?;
            return Ok(None);
        }
        // The sum of all bytes, with blanks in the place of the sum.
        let plain = |at: usize| if (148..156).contains(&at) { 32 } else { u64::from(head[at]) };
        let sum: u64 = (0..BLOCK).map(plain).sum();
        if !head[257..].starts_with(b"ustar") || octal(&head[148..156]) != Some(sum) {
            return Err("it is no tar archive".to_owned());
        }
        Ok(Some(head))
    }

    fn content(&mut self, bytes: u64) -> Result<(), String> {
        let blocks = bytes.checked_next_multiple_of(BLOCK as u64);
        self.filling = blocks.ok_or("an entry has a size that no file has")? - bytes;
        self.left = bytes;
        Ok(())
    }

    /// The content of a record, which fits into memory.
    fn small(&mut self, bytes: u64, most: u64) -> Result<Vec<u8>, String> {
        if bytes > most {
            return Err("it has a name that is longer than any".to_owned());
        }
        self.content(bytes)?;
        let mut all = Vec::new();
        self.read_to_end(&mut all).map_err(|error| cut(&error))?;
        match all.len() as u64 == bytes {
            true => Ok(all),
            false => Err("it was cut".to_owned()),
        }
    }

    fn pax(&mut self, bytes: u64, extended: &mut Extended) -> Result<(), String> {
        let all = self.small(bytes, MOST_PAX)?;
        let mut rest = &all[..];
        while !rest.is_empty() {
            let record = pax_record(rest).ok_or("a record of it has another form")?;
            rest = &rest[record.length..];
            match record.key {
                b"path" => {
                    extended.path = text_of(record.value);
                    extended.is_unnamed |= extended.path.is_none();
                }
                b"size" => {
                    let size = text_of(record.value).and_then(|text| text.parse().ok());
                    extended.bytes = Some(size.ok_or("a size in it is no number")?);
                }
                key => extended.is_sparse |= key.starts_with(b"GNU.sparse"),
            }
        }
        Ok(())
    }

    fn pass_over(&mut self) -> Result<(), String> {
        let all = self.left.saturating_add(self.filling);
        let passed = io::copy(&mut (&mut self.from).take(all), &mut io::sink());
        (self.left, self.filling) = (0, 0);
        match passed {
            Ok(passed) if passed == all => Ok(()),
            Ok(_) => Err("it was cut".to_owned()),
            Err(error) => Err(cut(&error)),
        }
    }
}

/// The content of the entry.
impl<R: Read> Read for TarReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = (&mut self.from).take(self.left).read(buffer)?;
        self.left -= read as u64;
        Ok(read)
    }
}

struct PaxRecord<'a> {
    key: &'a [u8],
    value: &'a [u8],
    length: usize,
}

/// `LENGTH KEY=VALUE\n`, the length that of all of it.
fn pax_record(rest: &[u8]) -> Option<PaxRecord<'_>> {
    let digits = rest.iter().take(8).position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    let record = rest.get(digits + 1..length.checked_sub(1)?)?;
    let at = record.iter().position(|byte| *byte == b'=')?;
    (rest.get(length - 1) == Some(&b'\n')).then_some(PaxRecord {
        key: &record[..at],
        value: &record[at + 1..],
        length,
    })
}

fn cut(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "it was cut".to_owned(),
        _ => format!("it cannot be read ({error})"),
    }
}

fn size(head: &[u8; BLOCK]) -> Result<u64, String> {
    let field = &head[124..136];
    // GNU's form of large numbers: bytes, the first of which is marked.
    let number = match field[0] {
        0x80 if field[1..4] == [0; 3] => {
            field[4..].iter().try_fold(0u64, |sum, byte| sum.checked_mul(256)?.checked_add(u64::from(*byte)))
        }
        _ => octal(field),
    };
    number.ok_or_else(|| "a size in it is no number".to_owned())
}

/// Octal digits between blanks and zeros.
fn octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?.trim_matches(|c| c == ' ' || c == '\0');
    if text.is_empty() { Some(0) } else { u64::from_str_radix(text, 8).ok() }
}

fn name(head: &[u8; BLOCK]) -> Option<String> {
    let until_zero = |field: &[u8]| text_of(field.split(|byte| *byte == 0).next().unwrap_or_default());
    let name = until_zero(&head[..100])?;
    // GNU's own format has other things in the place of the prefix.
    let prefix = if head[257..263] == *b"ustar\0" { until_zero(&head[345..500])? } else { String::new() };
    Some(if prefix.is_empty() { name } else { format!("{prefix}/{name}") })
}

fn text_of(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

/// What ends an archive.
pub const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// What fills the last block of a file's content.
pub fn filling(bytes: u64) -> impl Iterator<Item = u8> {
    std::iter::repeat_n(0, (bytes.next_multiple_of(BLOCK as u64) - bytes) as usize)
}

/// What stands before a file's content: a path that has no place in it gets a record of its own, of
/// the pax format.
pub fn head_of(path: &str, bytes: u64) -> Vec<u8> {
    let mut all = Vec::new();
    if path.len() > LONGEST_PLAIN {
        let record = pax_path(path);
        all.extend(plain_head(b'x', "pax", record.len() as u64));
        all.extend(record.bytes());
        all.extend(filling(record.len() as u64));
    }
    let mut end = path.len().min(LONGEST_PLAIN);
    while !path.is_char_boundary(end) {
        end -= 1;
    }
    all.extend(plain_head(b'0', &path[..end], bytes));
    all
}

/// Its length counts its own digits.
fn pax_path(path: &str) -> String {
    let rest = format!(" path={path}\n");
    let mut length = rest.len();
    while length != rest.len() + length.to_string().len() {
        length = rest.len() + length.to_string().len();
    }
    format!("{length}{rest}")
}

fn plain_head(kind: u8, name: &str, bytes: u64) -> [u8; BLOCK] {
    let mut head = [0u8; BLOCK];
    head[..name.len()].copy_from_slice(name.as_bytes());
    head[100..108].copy_from_slice(b"0000644\0");
    head[108..116].copy_from_slice(b"0000000\0");
    head[116..124].copy_from_slice(b"0000000\0");
    head[124..136].copy_from_slice(format!("{:011o}\0", bytes.min(MOST_PLAIN)).as_bytes());
    head[136..148].copy_from_slice(b"00000000000\0");
    head[156] = kind;
    head[257..265].copy_from_slice(b"ustar\x0000");
    sum(&mut head);
    head
}

/// Sets the sum of a head right.
fn sum(head: &mut [u8]) {
    head[148..156].fill(b' ');
    let sum: u64 = head[..BLOCK].iter().map(|byte| u64::from(*byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

/// Archives for tests.
#[cfg(test)]
pub mod made {
    use super::BLOCK;

    /// An entry of a kind: `b'0'` is a file.
    pub fn entry(kind: u8, name: &str, content: &[u8]) -> Vec<u8> {
        let mut all = super::plain_head(kind, name, content.len() as u64).to_vec();
        all.extend(content);
        all.resize(all.len().next_multiple_of(BLOCK), 0);
        all
    }

    /// Sets the sum of a head right.
    pub fn summed(head: &mut [u8]) {
        super::sum(head);
    }

    /// An archive of entries.
    pub fn archive(entries: &[Vec<u8>]) -> Vec<u8> {
        let mut all = entries.concat();
        all.extend([0; 2 * BLOCK]);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::made::{archive, entry, summed};
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Result<Vec<(TarEntry, Vec<u8>)>, String> {
        let mut reader = TarReader::new(bytes);
        let mut all = Vec::new();
        while let Some(entry) = reader.next_entry()? {
            let mut content = Vec::new();
            reader.read_to_end(&mut content).map_err(|error| error.to_string())?;
            all.push((entry, content));
        }
        Ok(all)
    }

    fn file(path: &str, content: &[u8]) -> (TarEntry, Vec<u8>) {
        (TarEntry::File { path: path.into(), bytes: content.len() as u64 }, content.to_vec())
    }

    #[test]
    fn files_are_read_by_their_names_long_and_short() {
        let long = "x/".repeat(90) + "y";
        let pax = format!("{} path={long}\n", long.len() + 10);
        let all = archive(&[
            entry(b'5', "a/", b""),
            entry(b'0', "a/b", b"12"),
            entry(b'L', "././@LongLink", format!("{long}\0").as_bytes()),
            entry(b'0', "short", &[7; 600]),
            entry(b'x', "pax", pax.as_bytes()),
            entry(b'0', "short", b"3"),
            entry(b'g', "pax", b"20 comment=whatever\n"),
            entry(0, "old", b""),
        ]);
        let wanted = vec![
            (TarEntry::Folder, vec![]),
            file("a/b", b"12"),
            file(&long, &[7; 600]),
            file(&long, b"3"),
            file("old", b""),
        ];
        assert_eq!(read(&all).unwrap(), wanted);
    }

    #[test]
    fn links_devices_and_sparse_files_are_told_and_never_made() {
        let mut link = entry(b'2', "a/link", b"");
        link[157..168].copy_from_slice(b"/etc/passwd");
        summed(&mut link);
        let mut kinds = vec![link];
        kinds.extend([b'1', b'3', b'4', b'6', b'S', b'V', b'Z'].map(|kind| entry(kind, "x", b"")));
        kinds.push(entry(b'x', "p", b"22 GNU.sparse.major=1\n"));
        kinds.push(entry(b'0', "sparse", b""));
        let found = read(&archive(&kinds)).unwrap();
        assert!(found.len() == 9 && found.iter().all(|(entry, _)| *entry == TarEntry::Other), "{found:?}");
    }

    #[test]
    fn what_is_cut_or_lies_is_refused() {
        let whole = archive(&[entry(b'0', "a", &[1; 700])]);
        for length in [0, 100, 512, 600, 1_300, whole.len() - 2 * BLOCK] {
            assert!(read(&whole[..length]).is_err(), "{length}");
        }
        let mut huge = entry(b'0', "a", b"");
        huge[124..136].copy_from_slice(&[0x80, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
        summed(&mut huge);
        assert!(read(&archive(&[huge])).is_err());
        let name = vec![b'a'; LONGEST_NAME as usize + 1];
        for records in [
            vec![entry(b'L', "l", &name)],
            vec![entry(b'x', "p", &vec![b'1'; MOST_PAX as usize + 1])],
            vec![entry(b'x', "p", b"99 path=a\n")],
            vec![entry(b'x', "p", b"0 path=a\n")],
            vec![entry(b'x', "p", b"9 size=x\n")],
            vec![entry(b'g', "p", b""); 20],
        ] {
            assert!(read(&archive(&records)).is_err());
        }
        let mut damaged = whole;
        damaged[0] = b'b';
        assert!(read(&damaged).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_archive_or_a_refusal(
            bytes in prop::collection::vec(any::<u8>(), 0..2_000), at in 0usize..1_024, value in any::<u8>(),
        ) {
            let _ = read(&bytes);
            let mut all = archive(&[entry(b'0', "a", &[1; 700]), entry(b'x', "p", b"10 path=b\n")]);
            let at = at % all.len();
            all[at] = value;
            let head = at / BLOCK * BLOCK;
            summed(&mut all[head..]);
            let _ = read(&all);
        }
    }
}
