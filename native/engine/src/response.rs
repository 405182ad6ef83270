//! Is an answer a RunFunctionResponse? Checked on the wire, so that what Crossplane receives is
//! something it can decode. Iterative: an answer may nest as deep as it likes.

/// A message type, as far as it matters on the wire.
#[derive(Clone, Copy)]
enum Message {
    Response,
    Meta,
    Duration,
    State,
    Resource,
    ResourceEntry,
    ConnectionDetailEntry,
    Struct,
    StructEntry,
    Value,
    ListValue,
    Result,
    Requirements,
    SelectorEntry,
    Selector,
    MatchLabels,
    LabelEntry,
    SchemaSelectorEntry,
    SchemaSelector,
    Condition,
}

/// How a known field is encoded.
#[derive(Clone, Copy)]
enum Field {
    Varint,
    Fixed64,
    Bytes,
    Text,
    Nested(Message),
}

/// The known fields; anything else is an unknown field, skipped like a decoder would.
fn field(message: Message, number: u32) -> Option<Field> {
    use Field::{Bytes, Fixed64, Nested, Text, Varint};
    use Message as M;

    let field = match (message, number) {
        (M::Response, 1) => Nested(M::Meta),
        (M::Response, 2) => Nested(M::State),
        (M::Response, 3) => Nested(M::Result),
        (M::Response, 4 | 7) | (M::Resource, 1) | (M::Value, 5) => Nested(M::Struct),
        (M::Response, 5) => Nested(M::Requirements),
        (M::Response, 6) => Nested(M::Condition),
        (M::Meta, 2) => Nested(M::Duration),
        (M::State, 1) | (M::ResourceEntry, 2) => Nested(M::Resource),
        (M::State, 2) => Nested(M::ResourceEntry),
        (M::Resource, 2) => Nested(M::ConnectionDetailEntry),
        (M::ConnectionDetailEntry, 2) => Bytes,
        (M::Struct, 1) => Nested(M::StructEntry),
        (M::StructEntry, 2) | (M::ListValue, 1) => Nested(M::Value),
        (M::Value, 2) => Fixed64,
        (M::Value, 6) => Nested(M::ListValue),
        (M::Requirements, 1 | 2) => Nested(M::SelectorEntry),
        (M::Requirements, 3) => Nested(M::SchemaSelectorEntry),
        (M::SelectorEntry, 2) => Nested(M::Selector),
        (M::Selector, 4) => Nested(M::MatchLabels),
        (M::MatchLabels, 1) => Nested(M::LabelEntry),
        (M::SchemaSelectorEntry, 2) => Nested(M::SchemaSelector),
        (M::Meta, 1)
        | (
            M::ResourceEntry
            | M::ConnectionDetailEntry
            | M::StructEntry
            | M::SelectorEntry
            | M::SchemaSelectorEntry,
            1,
        )
        | (M::Value, 3)
        | (M::LabelEntry | M::SchemaSelector, 1 | 2)
        | (M::Selector, 1 | 2 | 3 | 5)
        | (M::Result, 2 | 3)
        | (M::Condition, 1 | 3 | 4) => Text,
        (M::Duration, 1 | 2)
        | (M::Resource, 3)
        | (M::Value, 1 | 4)
        | (M::Result, 1 | 4)
        | (M::Condition, 2 | 5) => Varint,
        _ => return None,
    };
    Some(field)
}

/// Checks that `bytes` decode as a RunFunctionResponse, whatever depth the decoder follows.
///
/// # Errors
///
/// One line that says where it stops being one.
pub(crate) fn check(bytes: &[u8]) -> Result<(), String> {
    let mut open = vec![(Message::Response, bytes.len())];
    let mut reader = Reader { bytes, at: 0 };
    while let Some((message, end)) = open.last().copied() {
        if reader.at == end {
            open.pop();
            continue;
        }
        let (number, wire) = reader.tag(end)?;
        let Some(known) = field(message, number) else {
            reader.skip(number, wire, end)?;
            continue;
        };
        match (known, wire) {
            (Field::Varint, 0) => {
                reader.varint(end)?;
            }
            (Field::Fixed64, 1) => {
                reader.take(8, end)?;
            }
            (Field::Bytes, 2) => {
                let length = reader.length(end)?;
                reader.take(length, end)?;
            }
            (Field::Text, 2) => {
                let at = reader.at;
                let length = reader.length(end)?;
                if str::from_utf8(reader.take(length, end)?).is_err() {
                    return Err(not_one(&format!(
                        "the text at byte {at} is not valid UTF-8"
                    )));
                }
            }
            (Field::Nested(nested), 2) => {
                let length = reader.length(end)?;
                let nested_end = reader.at.saturating_add(length);
                if nested_end > end {
                    return Err(reader.truncated());
                }
                open.push((nested, nested_end));
            }
            // A decoder takes a known number with another wire type for an unknown field.
            _ => reader.skip(number, wire, end)?,
        }
    }
    Ok(())
}

fn not_one(reason: &str) -> String {
    format!("the response is not a RunFunctionResponse: {reason}")
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn truncated(&self) -> String {
        not_one(&format!("it is cut off at byte {}", self.at))
    }

    fn take(&mut self, length: usize, end: usize) -> Result<&'a [u8], String> {
        let stop = self.at.saturating_add(length);
        if stop > end {
            return Err(self.truncated());
        }
        let taken = &self.bytes[self.at..stop];
        self.at = stop;
        Ok(taken)
    }

    fn varint(&mut self, end: usize) -> Result<u64, String> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            if self.at >= end {
                return Err(self.truncated());
            }
            let byte = self.bytes[self.at];
            self.at += 1;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(not_one(&format!(
            "the number before byte {} is too long",
            self.at
        )))
    }

    fn length(&mut self, end: usize) -> Result<usize, String> {
        usize::try_from(self.varint(end)?).map_err(|_| self.truncated())
    }

    fn tag(&mut self, end: usize) -> Result<(u32, u8), String> {
        let at = self.at;
        let tag = self.varint(end)?;
        match u32::try_from(tag >> 3) {
            Ok(number @ 1..=0x1fff_ffff) => Ok((number, (tag & 7) as u8)),
            _ => Err(not_one(&format!(
                "byte {at} holds field number {}",
                tag >> 3
            ))),
        }
    }

    /// Skips an unknown field; groups without recursion.
    fn skip(&mut self, number: u32, wire: u8, end: usize) -> Result<(), String> {
        let mut groups: Vec<u32> = Vec::new();
        let (mut number, mut wire) = (number, wire);
        loop {
            match wire {
                0 => {
                    self.varint(end)?;
                }
                1 => {
                    self.take(8, end)?;
                }
                2 => {
                    let length = self.length(end)?;
                    self.take(length, end)?;
                }
                3 => groups.push(number),
                4 if groups.last() == Some(&number) => {
                    groups.pop();
                }
                5 => {
                    self.take(4, end)?;
                }
                _ => {
                    return Err(not_one(&format!(
                        "field {number} before byte {} has wire type {wire}",
                        self.at
                    )));
                }
            }
            if groups.is_empty() {
                return Ok(());
            }
            (number, wire) = self.tag(end)?;
        }
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_a_decoder_accepts() {
        let cases: [(&str, &[u8]); 6] = [
            ("nothing at all", b""),
            ("meta with a tag", b"\x0a\x03\x0a\x01t"),
            ("an unknown field", b"\xba\x3e\x01x"),
            ("an unknown group", b"\xbb\x3e\xbb\x3e\xbc\x3e\xbc\x3e"),
            ("a known number with another wire type", b"\x08\x01"),
            ("a fatal result", b"\x1a\x06\x08\x01\x12\x02no"),
        ];
        for (name, bytes) in cases {
            assert_eq!(check(bytes), Ok(()), "{name}");
        }
    }

    #[test]
    fn refuses_what_a_decoder_refuses() {
        let cases: [(&[u8], &str); 8] = [
            (b"\xff", "cut off"),
            (b"hello", "field 13 before byte 3 has wire type 4"),
            (b"\x0a\x05a", "cut off"),
            (b"\x1a\x04\x12\x02\xff\xfe", "not valid UTF-8"),
            (b"\x00", "field number 0"),
            (b"\xbb\x3e", "cut off"),
            (b"\xbb\x3e\xc4\x3e", "wire type 4"),
            (b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "too long"),
        ];
        for (bytes, expected) in cases {
            let reason = check(bytes).unwrap_err();
            assert!(reason.contains(expected), "{bytes:?}: {reason}");
            assert!(reason.starts_with("the response is not a RunFunctionResponse: "));
        }
    }

    #[test]
    fn nesting_is_no_recursion() {
        // context: Struct { fields: { value: Value { list_value: { values: [Value { … }] } } } }
        let mut message = Reversed(Vec::new());
        for _ in 0..100_000 {
            message.frame(0x0a);
            message.frame(0x32);
        }
        message.frame(0x12);
        message.frame(0x0a);
        message.frame(0x22);
        assert_eq!(check(&message.bytes()), Ok(()));

        let (open, close) = (b"\xbb\x3e".repeat(100_000), b"\xbc\x3e".repeat(100_000));
        assert_eq!(check(&[open, close].concat()), Ok(()));
    }

    /// A message built from the inside out, last byte first, so that framing it is cheap.
    struct Reversed(Vec<u8>);

    impl Reversed {
        fn frame(&mut self, tag: u8) {
            let mut length = self.0.len();
            let mut prefix = vec![tag];
            while length >= 0x80 {
                prefix.push((length & 0x7f) as u8 | 0x80);
                length >>= 7;
            }
            prefix.push(length as u8);
            self.0.extend(prefix.iter().rev());
        }

        fn bytes(mut self) -> Vec<u8> {
            self.0.reverse();
            self.0
        }
    }
}
