//! The messages of the chat API.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::event::{Content, JsonString, JsonText};

/// A message of the OpenAI chat API, as a request has it.
///
/// [`Self::to_json`] and [`Serialize`] give exactly the API's JSON; content comes as it was logged, number for number.
///
/// ```
/// use sessionlog::{Event, Surface};
/// let mut surface = Surface::default();
/// for line in [
///     r#"{"type":"user/message","seq":0,"content":"2 + 2?","timestamp":0}"#,
///     r#"{"type":"tool/call","seq":1,"id":"c1","name":"add","args":{"a":2,"b":2},"timestamp":0}"#,
///     r#"{"type":"tool/result","seq":2,"id":"c1","result":4,"timestamp":0}"#,
/// ] {
///     surface.push(&Event::from_json(line.as_bytes())?);
/// }
/// let json: Vec<String> = surface.messages().iter().map(|message| message.to_json()).collect();
/// assert_eq!(json[0], r#"{"role":"user","content":"2 + 2?"}"#);
/// assert_eq!(json[1], concat!(
///     r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","#,
///     r#""function":{"name":"add","arguments":"{\"a\":2,\"b\":2}"}}]}"#,
/// ));
/// assert_eq!(json[2], r#"{"role":"tool","tool_call_id":"c1","content":"4"}"#);
/// # Ok::<(), sessionlog::EventError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message {
    /// What the user said.
    #[non_exhaustive]
    User {
        /// A text, or parts.
        content: Content,
    },
    /// What the model said, and the calls it made.
    #[non_exhaustive]
    Assistant {
        /// A text, or parts; null where it said nothing.
        content: Content,
        /// The calls, in the order in which they were made.
        tool_calls: Vec<ToolCall>,
    },
    /// What a tool answered.
    #[non_exhaustive]
    Tool {
        /// The call that it answers.
        tool_call_id: JsonString,
        /// A text, or parts that are texts.
        content: Content,
    },
}

/// A call in an assistant's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCall {
    /// Its id: the event's, or that with `#2`, `#3`, … while an earlier call of this id is open.
    pub id: JsonString,
    /// What is called.
    pub function: FunctionCall,
}

/// The function that a call names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FunctionCall {
    /// The tool.
    pub name: JsonString,
    /// The arguments as text: JSON, unless the model produced something else.
    pub arguments: JsonString,
}

impl Message {
    /// Returns the role: `user`, `assistant` or `tool`.
    pub fn role(&self) -> &'static str {
        match self {
            Self::User { .. } => "user",
            Self::Assistant { .. } => "assistant",
            Self::Tool { .. } => "tool",
        }
    }

    /// Returns the content.
    pub fn content(&self) -> &Content {
        match self {
            Self::User { content } | Self::Assistant { content, .. } | Self::Tool { content, .. } => content,
        }
    }

    /// Returns the calls of an assistant's message; none of any other.
    pub fn tool_calls(&self) -> &[ToolCall] {
        match self {
            Self::Assistant { tool_calls, .. } => tool_calls,
            _ => &[],
        }
    }

    /// Returns the message's JSON, without white space between tokens.
    pub fn to_json(&self) -> String {
        let mut json = String::new();
        self.write_json(&mut json);
        json
    }

    /// Appends the message's JSON to `out`.
    pub fn write_json(&self, out: &mut String) {
        out.push_str(r#"{"role":""#);
        out.push_str(self.role());
        out.push('"');
        if let Self::Tool { tool_call_id, .. } = self {
            out.push_str(r#","tool_call_id":"#);
            string(tool_call_id, out);
        }
        out.push_str(r#","content":"#);
        out.push_str(self.content().json().as_str());
        let calls = self.tool_calls();
        for (index, ToolCall { id, function }) in calls.iter().enumerate() {
            out.push_str(if index == 0 { r#","tool_calls":["# } else { "," });
            out.push_str(r#"{"id":"#);
            string(id, out);
            out.push_str(r#","type":"function","function":{"name":"#);
            string(&function.name, out);
            out.push_str(r#","arguments":"#);
            string(&function.arguments, out);
            out.push_str("}}");
        }
        out.push_str(if calls.is_empty() { "}" } else { "]}" });
    }
}

fn string(text: &JsonString, out: &mut String) {
    out.push('"');
    out.push_str(text.spelling());
    out.push('"');
}

impl ToolCall {
    /// The call with these `args`: a JSON string is the text that the model produced, anything else is JSON.
    pub(super) fn new(id: JsonString, name: JsonString, args: &JsonText) -> Self {
        let json = args.as_str();
        let text = json.strip_prefix('"').and_then(|json| json.strip_suffix('"'));
        let arguments = text.map_or_else(|| JsonString::new(json), JsonString::from_checked);
        Self { id, function: FunctionCall { name, arguments } }
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let calls = self.tool_calls();
        let third = !calls.is_empty() || matches!(self, Self::Tool { .. });
        let mut fields = serializer.serialize_struct("Message", 2 + usize::from(third))?;
        fields.serialize_field("role", self.role())?;
        if let Self::Tool { tool_call_id, .. } = self {
            fields.serialize_field("tool_call_id", tool_call_id)?;
        }
        fields.serialize_field("content", self.content())?;
        if !calls.is_empty() {
            fields.serialize_field("tool_calls", calls)?;
        }
        fields.end()
    }
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("ToolCall", 3)?;
        fields.serialize_field("id", &self.id)?;
        fields.serialize_field("type", "function")?;
        fields.serialize_field("function", &self.function)?;
        fields.end()
    }
}
