//! The members of any JSON object, for those who read headers.

use super::escape::unescape;
use super::names::SeenNames;
use super::scan::{Scanner, with_text};
use super::{JsonString, JsonText};
use crate::error::{EventError, EventFault};

/// A member of a JSON object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JsonMember {
    /// Where its value stands, in bytes from 1.
    pub column: usize,
    /// Its name.
    pub name: JsonString,
    /// Its value.
    pub value: JsonText,
}

impl JsonMember {
    /// Reads a JSON object, and gives its members as they came.
    ///
    /// ```
    /// use sessionlog::JsonMember;
    /// let members = JsonMember::parse_object(r#"{"a": [1, 2], "b": null}"#).unwrap();
    /// assert_eq!((members[0].column, members[0].value.as_str()), (7, "[1,2]"));
    /// ```
    ///
    /// # Errors
    /// The first fault, with its column: as [`JsonText::parse`]; no object; a name that stands twice.
    pub fn parse_object(text: impl AsRef<[u8]>) -> Result<Vec<Self>, EventError> {
        with_text(text.as_ref(), |text| {
            let mut scanner = Scanner::new(text);
            scanner.skip_space();
            scanner.open(b'{', "an object")?;
            let mut members = Vec::new();
            let mut seen = SeenNames::default();
            while let Some((at, name)) = scanner.next_member(members.is_empty())? {
                if !seen.add(unescape(name)) {
                    return Err(EventError::new(EventFault::DuplicateField).at(at).field(&unescape(name)));
                }
                let value = scanner.value()?;
                members.push(Self {
                    column: value.at + 1,
                    name: JsonString::from_checked(name),
                    value: JsonText::from_scanned(value.into_text()),
                });
            }
            scanner.end()?;
            Ok(members)
        })
    }
}
