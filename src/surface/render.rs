//! From what stands to messages: calls into assistant messages, results right behind them.

use super::entry::{Answer, Call, Entry, What};
use super::message::{Message, ToolCall};
use super::origin::joins;
use super::{MISSING_RESULT, Report, Surface, content};
use crate::event::Content;

/// The messages that were made so far, and from where on they have to be made anew.
#[derive(Clone, Debug)]
pub(super) struct Rendered {
    messages: Vec<Message>,
    /// Where each comes from; as many as messages.
    pub(super) origins: Vec<Origin>,
    /// The lowest order at which something changed.
    touched: u64,
    generation: u64,
}

/// Where a message comes from, in orders: they ascend with `head`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// The first entry of the assistant message that it is, or answers; its own entry where there is none.
    pub(super) head: u64,
    /// Its own first entry; for what stands in for a result, the call.
    pub(super) own: u64,
}

/// How many entries are worth rendering ahead.
const RENDERED_AHEAD: usize = 1_024;
/// Nothing changed.
const UNTOUCHED: u64 = u64::MAX;

impl Default for Rendered {
    fn default() -> Self {
        Self { messages: Vec::new(), origins: Vec::new(), touched: UNTOUCHED, generation: 0 }
    }
}

impl Rendered {
    /// Says that what stands at or behind this order changed.
    pub(super) fn touch(&mut self, order: u64) {
        self.touched = self.touched.min(order);
    }

    pub(super) fn is_tool(&self, index: usize) -> bool {
        matches!(self.messages.get(index), Some(Message::Tool { .. }))
    }

    fn put(&mut self, head: u64, own: u64, message: Message) {
        self.messages.push(message);
        self.origins.push(Origin { head, own });
    }
}

impl Surface {
    /// Returns the messages of the next request: the chat API's array. They can be sent, whatever was logged.
    ///
    /// - Calls join the assistant message before them when only chunks, custom events or calls stand between.
    /// - Results come right behind it, in log order; what was logged in between comes behind them. For a call without a
    ///   result [`MISSING_RESULT`] stands in; a result without a call is left out.
    /// - Of calls with the same id that are open at once the second is shown as `id#2`, and so is its result.
    /// - Empty assistant content is null beside calls, and no message alone; empty text parts are dropped.
    ///
    /// # Cost
    /// What was pushed since the last call, and for a replace or a late result what stands behind it.
    pub fn messages(&mut self) -> &[Message] {
        self.render();
        &self.rendered.messages
    }

    /// Returns the messages, unless something would have to be added or left out.
    ///
    /// # Errors
    /// The [`Report`], when it is not empty.
    pub fn strict_messages(&mut self) -> Result<&[Message], Report> {
        if self.is_mended() { Err(self.report()) } else { Ok(self.messages()) }
    }

    /// Returns the messages without keeping anything.
    #[must_use]
    pub fn into_messages(mut self) -> Vec<Message> {
        self.take_messages()
    }

    /// Gives the messages, and leaves what they were made from for somebody to drop.
    pub(crate) fn take_messages(&mut self) -> Vec<Message> {
        self.render();
        std::mem::take(&mut self.rendered.messages)
    }

    /// Returns one message for each event that stands, as it was logged: nothing merged, moved, renamed, added or
    /// dropped. Made to look at; a provider may refuse it.
    ///
    /// # Cost
    /// All that stands.
    pub fn plain_messages(&self) -> Vec<Message> {
        let plain = |entry: &Entry| match &entry.what {
            What::User(content) => Some(Message::User { content: content.clone() }),
            What::Assistant(content) => {
                Some(Message::Assistant { content: content.clone(), tool_calls: Vec::new() })
            }
            What::Call(call) => {
                let call = ToolCall::new(call.id.clone(), call.name.clone(), &call.args);
                Some(Message::Assistant { content: Content::null(), tool_calls: vec![call] })
            }
            What::Result(answer) => {
                let content = content::of_result(&answer.outcome, self.options.results_as_json);
                Some(Message::Tool { tool_call_id: answer.id.clone(), content })
            }
            What::Gone => None,
        };
        self.entries.iter().filter_map(plain).collect()
    }

    /// Returns a number that stays the same as long as messages are only added behind those that
    /// [`messages`](Self::messages) gave before. When it changes, earlier ones have changed: a cache starts anew.
    ///
    /// It changes with a replace, and when a call's result comes after messages were asked for without it. It is not
    /// kept in a [snapshot](Self::to_snapshot).
    pub fn generation(&self) -> u64 {
        self.rendered.generation
    }

    /// Makes anew the messages that changed.
    fn render(&mut self) {
        if self.rendered.touched == UNTOUCHED {
            return;
        }
        let from = self.head_of(self.entries.at_or_behind(self.rendered.touched));
        let order = self.entries.get(from).map_or(UNTOUCHED, |entry| entry.order);
        let rendered = &mut self.rendered;
        rendered.touched = UNTOUCHED;
        let kept = rendered.origins.partition_point(|origin| origin.head < order);
        let old = rendered.messages.split_off(kept);
        rendered.origins.truncate(kept);
        self.render_from(from);
        // Most often nothing is old, or a last message has grown.
        if !self.rendered.messages.get(kept..).unwrap_or_default().starts_with(&old) {
            self.rendered.generation += 1;
        }
    }

    /// Makes messages while more events are to come, for who reads on meanwhile. Only where little changed: what has
    /// to be made anew from far back is left to the end, for it may change again.
    pub(crate) fn render_ahead(&mut self) {
        let changed = self.entries.len() - self.entries.at_or_behind(self.rendered.touched);
        if changed <= RENDERED_AHEAD {
            self.render();
        }
    }

    /// The first entry of the message that the entry at `index` is part of.
    fn head_of(&self, index: usize) -> usize {
        let mut head = index;
        while let (Some(entry), Some((before, joined))) = (self.entries.get(head), self.entries.before(head))
        {
            // A slot that is gone is part of what stands before it.
            if !(entry.is_gone() || joins(entry) && joined.can_be_joined()) {
                break;
            }
            head = before;
        }
        head
    }

    fn render_from(&mut self, from: usize) {
        let entries = &self.entries;
        let rendered = &mut self.rendered;
        let as_json = self.options.results_as_json;
        let mut rest = entries.from(from).peekable();
        let mut calls: Vec<(u64, &Call)> = Vec::new();
        while let Some(entry) = rest.next() {
            let head = entry.order;
            calls.clear();
            let content = match &entry.what {
                What::User(content) => {
                    rendered.put(head, head, Message::User { content: content::of_user(content) });
                    continue;
                }
                // It stands behind its call's message, or nowhere.
                What::Result(_) | What::Gone => continue,
                What::Assistant(content) => content::of_assistant(content),
                What::Call(call) => {
                    calls.push((head, call));
                    Content::null()
                }
            };
            while let Some(Entry { order, what: What::Call(call), .. }) = rest.next_if(|next| joins(next)) {
                calls.push((*order, call));
            }
            if calls.is_empty() && content.is_null() {
                continue;
            }
            let tool_call =
                |(_, call): &(u64, &Call)| ToolCall::new(call.shown_id(), call.name.clone(), &call.args);
            let tool_calls = calls.iter().map(tool_call).collect();
            rendered.put(head, head, Message::Assistant { content, tool_calls });

            // In the order in which the results stand; calls without one come last.
            calls.sort_by_key(|(_, call)| call.answer.unwrap_or(u64::MAX));
            for (order, call) in &calls {
                let answer = call.answer.and_then(|at| Some((at, answer_at(entries.of_order(at)?)?)));
                let (own, content) = match answer {
                    Some((own, answer)) => (own, content::of_result(&answer.outcome, as_json)),
                    None => (*order, Content::text(MISSING_RESULT)),
                };
                rendered.put(head, own, Message::Tool { tool_call_id: call.shown_id(), content });
            }
        }
    }
}

fn answer_at(entry: &Entry) -> Option<&Answer> {
    match &entry.what {
        What::Result(answer) => Some(answer),
        _ => None,
    }
}
