//! The first line of a file: what a session is, apart from its events.

use std::collections::BTreeMap;

use super::fault::{Fault, FaultKind, Faults};
use super::lines::Line;
use crate::error::Result;
use crate::{
    EventFault, JsonMember, JsonString, JsonText, LabelChange, Labels, NewSession, RunningHash, Session,
    SessionId, Timestamp,
};

/// The version of the form that is written here, and the newest that is read.
pub(super) const VERSION: u64 = 1;

/// A header, as its line says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) id: SessionId,
    pub(super) created_at: Timestamp,
    pub(super) parent: Option<JsonText>,
    pub(super) prefix_len: Option<JsonText>,
    pub(super) first_seq: u64,
    pub(super) len: Option<u64>,
    pub(super) hash: Option<RunningHash>,
    pub(super) labels: Labels,
    pub(super) meta: BTreeMap<String, String>,
    pub(super) extra: Vec<(JsonString, JsonText)>,
}

impl Header {
    /// The header of the first `len` events of a session, for a file that begins with `first_seq`.
    pub(super) fn of(session: &Session, first_seq: u64, len: u64) -> Result<Self> {
        let info = session.info()?;
        let header = info.header;
        let mut extra = header.extra;
        // What an import noted stands where it stood; a parent here goes before it.
        let mut noted = |name: &str| {
            let at = extra.iter().position(|(field, _)| field.spelling() == name)?;
            Some(extra.remove(at).1)
        };
        let (mut parent, mut prefix_len) = (noted("parent"), noted("prefixLength"));
        if let Some(fork) = &header.parent {
            parent = fork.session.as_ref().map(|id| JsonText::from(id.as_str()));
            prefix_len = Some(serde_json::Value::from(fork.prefix_len).into());
        }
        Ok(Self {
            id: header.id,
            created_at: header.created_at,
            parent,
            prefix_len,
            first_seq,
            len: Some(len),
            hash: Some(session.running_hash(crate::Seq::new(len))?),
            labels: info.labels,
            meta: header.meta,
            extra,
        })
    }

    /// Appends the line, without its end.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(format!(r#"{{"type":"session","version":{VERSION},"id":"#).as_bytes());
        string(self.id.as_str(), out);
        out.extend_from_slice(format!(r#","createdAt":{}"#, self.created_at).as_bytes());
        for (name, json) in [("parent", &self.parent), ("prefixLength", &self.prefix_len)] {
            if let Some(json) = json {
                out.extend_from_slice(format!(r#","{name}":{json}"#).as_bytes());
            }
        }
        if self.first_seq > 0 {
            out.extend_from_slice(format!(r#","firstSeq":{}"#, self.first_seq).as_bytes());
        }
        if let Some(len) = self.len {
            out.extend_from_slice(format!(r#","length":{len}"#).as_bytes());
        }
        if let Some(hash) = self.hash {
            out.extend_from_slice(format!(r#","hash":"{hash}""#).as_bytes());
        }
        if let Some(title) = &self.labels.title {
            out.extend_from_slice(br#","title":"#);
            string(title, out);
        }
        for (name, pairs) in [("labels", &self.labels.labels), ("meta", &self.meta)] {
            if pairs.is_empty() {
                continue;
            }
            out.extend_from_slice(format!(r#","{name}":"#).as_bytes());
            for (index, (name, value)) in pairs.iter().enumerate() {
                out.push(if index == 0 { b'{' } else { b',' });
                string(name, out);
                out.push(b':');
                string(value, out);
            }
            out.push(b'}');
        }
        for (name, value) in &self.extra {
            out.extend_from_slice(format!(r#","{}":{value}"#, name.spelling()).as_bytes());
        }
        out.push(b'}');
    }
}

/// Whether a line is a header, whatever else is wrong with it.
pub(super) fn is_header(line: &[u8]) -> bool {
    let members = JsonMember::parse_object(line).unwrap_or_default();
    let is_type = |member: &&JsonMember| member.name.to_str() == "type";
    members
        .iter()
        .find(is_type)
        .and_then(|member| member.value.to_str())
        .is_some_and(|text| text == "session")
}

impl Header {
    /// Reads a header. `None` when something is wrong with it, which is added to `faults`.
    pub(super) fn read(line: &Line<'_>, faults: &mut Faults) -> Option<Self> {
        let before = faults.total;
        let members = match JsonMember::parse_object(line.text) {
            Ok(members) => members,
            Err(error) => {
                faults.add(Fault::in_line(line.number, line.offset, error));
                return None;
            }
        };
        let mut fields = Fields { members, line: line.number, offset: line.offset, faults };
        match fields.take("type").map(|member| member.value) {
            Some(json) if json.to_str().is_some_and(|text| text == "session") => {}
            _ => {
                fields.faults.add(Fault::new(line.number, FaultKind::NoHeader).at(line.offset + 1));
                return None;
            }
        }
        match fields.number("version") {
            Some(VERSION) => {}
            Some(found) => {
                let kind = FaultKind::UnsupportedVersion { found };
                fields.faults.add(Fault::new(line.number, kind).field("version"));
                return None;
            }
            None => fields.missing("version", before),
        }
        let id = fields.typed("id", "a session id: 1 to 255 bytes without control characters", |json| {
            SessionId::new(&json.to_str()?).ok()
        });
        if id.is_none() {
            fields.missing("id", before);
        }
        let created_at = fields.typed("createdAt", "an integer of milliseconds since 1970", |json| {
            json.as_str().parse().ok().and_then(Timestamp::from_millis)
        });
        if created_at.is_none() {
            fields.missing("createdAt", before);
        }
        let parent = fields.typed("parent", "a session id", |json| SessionId::new(&json.to_str()?).ok());
        let prefix_len = fields.number("prefixLength");
        let first_seq = fields.number("firstSeq").unwrap_or(0);
        let len = fields.number("length");
        let hash = fields.typed("hash", "64 hexadecimal digits", |json| json.to_str()?.parse().ok());
        let title = fields.typed("title", "a string", |json| json.to_str().map(String::from));
        let pairs = fields.pairs("labels");
        let meta = fields.pairs("meta");
        let mut change = LabelChange::new();
        if let Some(title) = title {
            change = change.title(title);
        }
        change = pairs.into_iter().fold(change, |change, (name, value)| change.set(name, value));
        let labels = Labels::default().changed(&change).unwrap_or_else(|error| {
            let kind = FaultKind::Labels { reason: error.to_string() };
            fields.faults.add(Fault::new(line.number, kind).field("labels"));
            Labels::default()
        });
        let extra = std::mem::take(&mut fields.members);
        let header = Self {
            id: id?,
            created_at: created_at?,
            parent: parent.map(|id| JsonText::from(id.as_str())),
            prefix_len: prefix_len.map(|len| serde_json::Value::from(len).into()),
            first_seq,
            len,
            hash,
            labels,
            meta,
            extra: extra.into_iter().map(|member| (member.name, member.value)).collect(),
        };
        if let Err(error) = header.new_session(&header.id, true).check() {
            let kind = FaultKind::Labels { reason: error.to_string() };
            faults.add(Fault::new(line.number, kind).field("meta"));
        }
        (faults.total == before).then_some(header)
    }

    /// The id of the parent, and how many events are shared with it.
    pub(super) fn fork(&self) -> Option<(SessionId, u64)> {
        let parent = SessionId::new(&self.parent.as_ref()?.to_str()?).ok()?;
        Some((parent, self.prefix_len.as_ref()?.as_str().parse().ok()?))
    }

    /// The session that it makes. `notes`: where it came from is noted, as that is not here.
    pub(super) fn new_session(&self, id: &SessionId, notes: bool) -> NewSession {
        let mut new = NewSession::with_id(id.clone()).created_at(self.created_at);
        for (name, value) in &self.meta {
            new = new.meta(name, value);
        }
        for (name, value) in [("parent", &self.parent), ("prefixLength", &self.prefix_len)] {
            if let Some(value) = value.as_ref().filter(|_| notes) {
                new = new.field(name, value.clone());
            }
        }
        self.extra.iter().fold(new, |new, (name, value)| new.field(name.clone(), value.clone()))
    }

    /// The title and labels that it gives.
    pub(super) fn label_change(&self) -> LabelChange {
        let mut change = LabelChange::new();
        if let Some(title) = &self.labels.title {
            change = change.title(title);
        }
        self.labels.labels.iter().fold(change, |change, (name, value)| change.set(name, value))
    }
}

/// The members of a header's object that were not taken yet.
struct Fields<'a> {
    members: Vec<JsonMember>,
    line: u64,
    offset: usize,
    faults: &'a mut Faults,
}

impl Fields<'_> {
    /// Takes a field; `null` counts as absent.
    fn take(&mut self, name: &str) -> Option<JsonMember> {
        let at = self.members.iter().position(|member| member.name.to_str() == name)?;
        Some(self.members.remove(at)).filter(|member| !member.value.is_null())
    }

    fn typed<T>(
        &mut self,
        name: &'static str,
        expected: &'static str,
        read: impl FnOnce(&JsonText) -> Option<T>,
    ) -> Option<T> {
        let member = self.take(name)?;
        let value = read(&member.value);
        if value.is_none() {
            let kind = FaultKind::Line(EventFault::WrongType { expected });
            self.faults.add(Fault::new(self.line, kind).at(self.offset + member.column).field(name));
        }
        value
    }

    fn number(&mut self, name: &'static str) -> Option<u64> {
        let plain = |json: &JsonText| json.as_str().bytes().all(|byte| byte.is_ascii_digit());
        self.typed(name, "a whole number", |json| {
            json.as_str().parse().ok().filter(|number: &u64| plain(json) && *number <= u64::MAX >> 1)
        })
    }

    /// An object of strings.
    fn pairs(&mut self, name: &'static str) -> BTreeMap<String, String> {
        let pairs = self.typed(name, "an object of strings, each name once", |json| {
            let members = JsonMember::parse_object(json.as_str()).ok()?;
            let pair = |member: JsonMember| {
                Some((member.name.to_str().into_owned(), member.value.to_str()?.into_owned()))
            };
            members.into_iter().map(pair).collect()
        });
        pairs.unwrap_or_default()
    }

    /// Tells of a field that is not there, unless something was wrong with it.
    fn missing(&mut self, name: &str, before: u64) {
        if self.faults.total == before {
            let kind = FaultKind::Line(EventFault::MissingField);
            self.faults.add(Fault::new(self.line, kind).field(name));
        }
    }
}

fn string(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(JsonText::from(text).as_str().as_bytes());
}
