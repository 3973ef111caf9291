//! Token usage: the fields of the providers, summed as they are named.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::event::JsonText;

/// Sums of what assistant messages tell in `usage`, under the names that the providers gave them.
///
/// They are not added across providers: OpenAI's `prompt_tokens` contain the cached ones, Anthropic's `input_tokens`
/// do not. What is no whole number of tokens does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TokenUsage {
    /// Messages that tell their usage.
    pub messages: u64,
    /// OpenAI (chat): tokens of the request.
    pub prompt_tokens: u64,
    /// OpenAI (chat): tokens of the answer.
    pub completion_tokens: u64,
    /// OpenAI: both.
    pub total_tokens: u64,
    /// OpenAI: `cached_tokens` in `prompt_tokens_details` or `input_tokens_details`.
    pub cached_tokens: u64,
    /// OpenAI: `reasoning_tokens` in `completion_tokens_details` or `output_tokens_details`.
    pub reasoning_tokens: u64,
    /// Anthropic (and OpenAI's responses): tokens of the request.
    pub input_tokens: u64,
    /// Anthropic (and OpenAI's responses): tokens of the answer.
    pub output_tokens: u64,
    /// Anthropic: tokens written to the cache.
    pub cache_creation_input_tokens: u64,
    /// Anthropic: tokens read from the cache.
    pub cache_read_input_tokens: u64,
}

impl TokenUsage {
    /// Adds a message's `usage`; a null is none.
    pub(super) fn add(&mut self, usage: &JsonText) {
        if usage.is_null() {
            return;
        }
        // Checked when it was appended: an object, whatever is in it.
        let told = usage.deserialize::<Told>().map(|told| told.0).unwrap_or_default();
        self.merge(&Self { messages: 1, ..told });
    }

    pub(super) fn merge(&mut self, other: &Self) {
        let mut other = *other;
        for (mine, theirs) in self.figures().into_iter().zip(other.figures()) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    fn figures(&mut self) -> [&mut u64; 10] {
        [
            &mut self.messages,
            &mut self.prompt_tokens,
            &mut self.completion_tokens,
            &mut self.total_tokens,
            &mut self.cached_tokens,
            &mut self.reasoning_tokens,
            &mut self.input_tokens,
            &mut self.output_tokens,
            &mut self.cache_creation_input_tokens,
            &mut self.cache_read_input_tokens,
        ]
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Name {
    PromptTokens,
    CompletionTokens,
    TotalTokens,
    InputTokens,
    OutputTokens,
    CacheCreationInputTokens,
    CacheReadInputTokens,
    PromptTokensDetails,
    InputTokensDetails,
    CompletionTokensDetails,
    OutputTokensDetails,
    // In the details.
    CachedTokens,
    ReasoningTokens,
    #[serde(other)]
    Other,
}

/// What one message tells. A field that stands twice counts as it stands last; one that is no number does not spoil
/// the others.
#[derive(Default)]
struct Told(TokenUsage);

impl<'de> Deserialize<'de> for Told {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields { in_details: false })
    }
}

struct Details(TokenUsage);

impl<'de> Deserialize<'de> for Details {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields { in_details: true }).map(|told| Self(told.0))
    }
}

struct Fields {
    in_details: bool,
}

impl<'de> Visitor<'de> for Fields {
    type Value = Told;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Told, A::Error> {
        let mut told = TokenUsage::default();
        while let Some(name) = map.next_key::<Name>()? {
            let slot = match (name, self.in_details) {
                (Name::PromptTokens, false) => &mut told.prompt_tokens,
                (Name::CompletionTokens, false) => &mut told.completion_tokens,
                (Name::TotalTokens, false) => &mut told.total_tokens,
                (Name::InputTokens, false) => &mut told.input_tokens,
                (Name::OutputTokens, false) => &mut told.output_tokens,
                (Name::CacheCreationInputTokens, false) => &mut told.cache_creation_input_tokens,
                (Name::CacheReadInputTokens, false) => &mut told.cache_read_input_tokens,
                (Name::CachedTokens, true) => &mut told.cached_tokens,
                (Name::ReasoningTokens, true) => &mut told.reasoning_tokens,
                (Name::PromptTokensDetails | Name::InputTokensDetails, false) => {
                    told.cached_tokens = details(map.next_value()?).cached_tokens;
                    continue;
                }
                (Name::CompletionTokensDetails | Name::OutputTokensDetails, false) => {
                    told.reasoning_tokens = details(map.next_value()?).reasoning_tokens;
                    continue;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let value: &RawValue = map.next_value()?;
            *slot = value.get().parse().unwrap_or(0);
        }
        Ok(Told(told))
    }
}

/// Details that are no object tell nothing.
fn details(value: &RawValue) -> TokenUsage {
    serde_json::from_str::<Details>(value.get()).map(|details| details.0).unwrap_or_default()
}
