//! Parser of the kernel's descriptions of its records, `events/*/*/format`, and of its pages,
//! `events/header_page`.
//!
//! Source: `f_show` in kernel/trace/trace_events.c, `ring_buffer_print_page_header` in
//! kernel/trace/ring_buffer.c, and Documentation/trace/events.rst, "Event formats".

/// Limit of a text in bytes: the kernel's longest (mmap flags, page flags) have some 8 KiB.
const TEXT_LIMIT: usize = 256 << 10;
/// Limit of fields of an event; kernels have a few dozen.
const FIELD_LIMIT: usize = 256;
/// Limit of an offset in bytes: fields lie within the largest record, and the data of a page within
/// the largest sub-buffer.
const OFFSET_LIMIT: usize = 1 << 27;

/// Location of a field's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the field itself.
    Inside,
    /// At the record's start plus the low half of the field; the high half is the length.
    DataLoc,
    /// At such an offset from the end of the field.
    RelLoc,
}

/// Field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name, without brackets.
    pub name: String,
    /// C type as printed, without `__data_loc` and `__rel_loc`.
    pub kind: String,
    /// Offset from the start of the record in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// True for a signed number.
    pub signed: bool,
    /// Location of its bytes.
    pub place: Place,
}

/// Format of an event's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    pub name: String,
    /// Number of the event, in `common_type` of its records.
    pub id: u16,
    /// Fields, the common ones first.
    pub fields: Vec<Field>,
}

impl Format {
    /// Parses the text of a `format` file, without the print format at its end.
    pub fn parse(text: &str) -> Result<Format, String> {
        let lines = lines_of(text)?;
        let value = |key: &str| {
            let mut values = lines.clone().filter_map(|line| line.strip_prefix(key));
            values.next().map(str::trim).ok_or_else(|| format!("a format without '{key}'"))
        };
        let name = value("name:")?;
        if name.is_empty() || name.len() > 128 || !name.bytes().all(|b| b.is_ascii_graphic()) {
            return Err("a format without a name".to_owned());
        }
        let id = value("ID:")?.parse().map_err(|_| format!("{name}: no number after 'ID:'"))?;
        let fields = fields_of(lines).map_err(|why| format!("{name}: {why}"))?;
        Ok(Format { name: name.to_owned(), id, fields })
    }

    /// Field with this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// Layout of a page, or of the larger sub-buffer of kernels since 6.8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    /// Offset of the committed length from the start of the page; the 8-byte time is at 0.
    pub commit_offset: usize,
    /// Size of the kernel's `long`: 4 or 8.
    pub commit_size: usize,
    /// Offset of the records.
    pub data_offset: usize,
    /// Room for records in bytes.
    pub data_size: usize,
}

impl PageLayout {
    /// Parses the text of `events/header_page`.
    pub fn parse(text: &str) -> Result<PageLayout, String> {
        let fields = fields_of(lines_of(text)?).map_err(|why| format!("header_page: {why}"))?;
        let find = |name: &str| {
            let field = fields.iter().find(|field| field.name == name);
            field.ok_or_else(|| format!("header_page: no field {name}"))
        };
        let (time, commit, data) = (find("timestamp")?, find("commit")?, find("data")?);
        let sound = time.offset == 0
            && time.size == 8
            && commit.offset >= 8
            && matches!(commit.size, 4 | 8)
            && data.offset >= commit.offset + commit.size
            && data.size >= 8
            && data.offset <= 64;
        if !sound {
            return Err("header_page: unknown layout".to_owned());
        }
        Ok(PageLayout {
            commit_offset: commit.offset,
            commit_size: commit.size,
            data_offset: data.offset,
            data_size: data.size,
        })
    }

    /// Size of a full page in bytes: the most that one read of `trace_pipe_raw` returns.
    pub fn page_size(&self) -> usize {
        self.data_offset + self.data_size
    }
}

fn lines_of(text: &str) -> Result<impl Iterator<Item = &str> + Clone, String> {
    if text.len() > TEXT_LIMIT {
        return Err("a format longer than any of the kernel's".to_owned());
    }
    Ok(text.lines().map(str::trim).take_while(|line| !line.starts_with("print fmt:")))
}

fn fields_of<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Vec<Field>, String> {
    let mut fields = Vec::new();
    for line in lines.filter_map(|line| line.strip_prefix("field:")) {
        if fields.len() == FIELD_LIMIT {
            return Err("more fields than any event has".to_owned());
        }
        fields.push(field_of(line).ok_or_else(|| format!("field {} cannot be read", fields.len() + 1))?);
    }
    Ok(fields)
}

/// Parses `__data_loc char[] name; offset:12; size:4; signed:0;`, with tabs.
fn field_of(line: &str) -> Option<Field> {
    let mut parts = line.split(';').map(str::trim);
    let declaration = parts.next()?;
    let number = |part: Option<&str>, key: &str| part?.strip_prefix(key)?.parse::<usize>().ok();
    let offset = number(parts.next(), "offset:")?;
    let size = number(parts.next(), "size:")?;
    // The oldest kernels do not print it.
    let signed = number(parts.next(), "signed:") == Some(1);
    let (place, declaration) = match declaration.split_once(' ')? {
        ("__data_loc", rest) => (Place::DataLoc, rest),
        ("__rel_loc", rest) => (Place::RelLoc, rest),
        _ => (Place::Inside, declaration),
    };
    // The length of an array follows the name, except in the type of data stored elsewhere.
    let named = match declaration.rfind('[') {
        Some(at) if declaration.ends_with(']') => &declaration[..at],
        _ => declaration,
    };
    let begin = named.rfind([' ', '*', ']']).map_or(0, |at| at + 1);
    let (kind, name) = named.split_at(begin);
    let fine = !name.is_empty() && offset <= OFFSET_LIMIT && size <= OFFSET_LIMIT;
    let loc = place == Place::Inside || size == 4;
    (fine && loc).then(|| Field {
        name: name.to_owned(),
        kind: kind.trim().to_owned(),
        offset,
        size,
        signed,
        place,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "name: irq_handler_entry\nID: 225\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n\
        \tfield:void * function;\toffset:64;\tsize:8;\tsigned:0;\n\
        \tfield:void *address;\toffset:72;\tsize:8;\tsigned:0;\n\
        \tfield:__rel_loc char[] tail;\toffset:80;\tsize:4;\tsigned:0;\n\
        \tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"irq=%d field:int x;\", REC->irq\n";

    #[test]
    fn a_format_has_its_fields() {
        let format = Format::parse(TEXT).unwrap();
        assert_eq!((format.name.as_str(), format.id, format.fields.len()), ("irq_handler_entry", 225, 7));
        let field = |name| format.field(name).unwrap();
        assert_eq!((field("args").kind.as_str(), field("args").size), ("unsigned long", 48));
        assert_eq!((field("function").kind.as_str(), field("function").offset), ("void *", 64));
        assert_eq!(field("address").kind, "void *");
        assert_eq!((field("name").place, field("name").kind.as_str()), (Place::DataLoc, "char[]"));
        assert_eq!(field("tail").place, Place::RelLoc);
        assert!(field("common_pid").signed && !field("common_type").signed);
    }

    #[test]
    fn what_is_no_format_is_refused() {
        for text in
            ["", "name: a\n", "name: a\nID: 65536\n", "name: a\nID: 1\nfield:int;\toffset:a;", "ID: 1"]
        {
            assert!(Format::parse(text).is_err(), "{text}");
        }
        let many = format!("name: a\nID: 1\n{}", "field:int a;offset:0;size:4;signed:1;\n".repeat(257));
        assert!(Format::parse(&many).is_err());
    }

    #[test]
    fn a_page_of_either_word_is_laid_out() {
        let text = |commit: usize, data: usize| {
            format!(
                "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                 \tfield: local_t commit;\toffset:8;\tsize:{commit};\tsigned:1;\n\
                 \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
                 \tfield: char data;\toffset:{data};\tsize:4080;\tsigned:0;\n"
            )
        };
        let wide = PageLayout::parse(&text(8, 16)).unwrap();
        assert_eq!((wide.commit_size, wide.data_offset, wide.page_size()), (8, 16, 4096));
        assert_eq!(PageLayout::parse(&text(4, 12)).map(|layout| layout.data_offset), Ok(12));
        assert!(PageLayout::parse(&text(2, 16)).is_err() && PageLayout::parse(&text(8, 12)).is_err());
        assert!(PageLayout::parse("").is_err());
    }

    proptest! {
        #[test]
        fn damaged_texts_do_no_harm(at in 0usize..TEXT.len(), put in "\\PC{0,4}", drop in 0usize..40) {
            let end = (at + drop).min(TEXT.len());
            let text = format!("{}{put}{}", &TEXT[..at], &TEXT[end..]);
            if let Ok(format) = Format::parse(&text) {
                prop_assert!(format.fields.iter().all(|f| !f.name.is_empty() && f.offset <= OFFSET_LIMIT));
            }
            let _ = PageLayout::parse(&text);
        }

        #[test]
        fn parsers_are_total(text in "(name: a\nID: 1\n)?(field:|\\PC|;|\t|offset:[0-9]{0,20}|\n){0,60}") {
            let _ = Format::parse(&text);
            let _ = PageLayout::parse(&text);
        }
    }
}
