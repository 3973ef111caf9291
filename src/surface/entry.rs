//! What stands on the surface, in order of position.
//!
//! A position is named by its *order*: the seq of the event that first stood there. What replaces others takes the
//! order of the first of them, so orders ascend from entry to entry, and an entry is found by a binary search.

use crate::event::{Content, JsonString, JsonText};

/// An event that has a position on the surface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) seq: u64,
    pub(super) order: u64,
    /// Whether a turn or step began or ended between the entry before it and this one.
    pub(super) breaks: bool,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    User(Content),
    Assistant(Content),
    Call(Box<Call>),
    Result(Box<Answer>),
    /// It was replaced together with an entry before it.
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: JsonString,
    /// Which of the calls with this id that are open at once; 1 for the first. Tells the id that is shown.
    pub(super) nth: u32,
    pub(super) name: JsonString,
    pub(super) args: JsonText,
    /// The order of its result.
    pub(super) answer: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) id: JsonString,
    pub(super) outcome: Outcome,
    /// The order of the call that it answers; `None`: it answers none, has a position and does not stand.
    pub(super) call: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A JSON string.
    Error(JsonText),
    Result(JsonText),
}

impl Entry {
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.what, What::Gone)
    }

    /// Whether it is part of what the model sees.
    pub(super) fn stands(&self) -> bool {
        match &self.what {
            What::Gone => false,
            What::Result(answer) => answer.call.is_some(),
            _ => true,
        }
    }

    /// Whether a call behind it can join the message that it is part of.
    pub(super) fn can_be_joined(&self) -> bool {
        matches!(self.what, What::Assistant(_) | What::Call(_))
    }

    /// The memory that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.what {
                What::User(content) | What::Assistant(content) => content.json().as_str().len(),
                What::Call(call) => {
                    let texts = call.id.spelling().len() + call.name.spelling().len();
                    size_of::<Call>() + texts + call.args.as_str().len()
                }
                What::Result(answer) => {
                    let (Outcome::Error(text) | Outcome::Result(text)) = &answer.outcome;
                    size_of::<Answer>() + answer.id.spelling().len() + text.as_str().len()
                }
                What::Gone => 0,
            }
    }
}

impl Call {
    /// The id that the model is shown.
    pub(super) fn shown_id(&self) -> JsonString {
        match self.nth {
            1 => self.id.clone(),
            nth => JsonString::from_checked(&format!("{}#{nth}", self.id.spelling())),
        }
    }
}

/// The entries, ascending by order.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    list: Vec<Entry>,
    gone: usize,
}

/// Fewer entries that are gone than this are not worth a sweep.
const SWEEP_AT: usize = 64;

impl Entries {
    pub(super) fn push(&mut self, entry: Entry) {
        self.list.push(entry);
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<&Entry> {
        self.list.get(index)
    }

    /// The first index at or behind this order.
    pub(super) fn at_or_behind(&self, order: u64) -> usize {
        // What was just put there is what is most often asked for.
        match self.list.last() {
            Some(last) if last.order < order => self.list.len(),
            Some(last) if last.order == order => self.list.len() - 1,
            _ => self.list.partition_point(|entry| entry.order < order),
        }
    }

    /// The index of the entry of this order, unless it is gone.
    pub(super) fn index_of(&self, order: u64) -> Option<usize> {
        let index = self.at_or_behind(order);
        self.get(index).filter(|entry| entry.order == order && !entry.is_gone())?;
        Some(index)
    }

    pub(super) fn of_order(&self, order: u64) -> Option<&Entry> {
        self.get(self.index_of(order)?)
    }

    pub(super) fn of_order_mut(&mut self, order: u64) -> Option<&mut Entry> {
        let index = self.index_of(order)?;
        self.list.get_mut(index)
    }

    /// The last entry before `index` that is not gone.
    pub(super) fn before(&self, index: usize) -> Option<(usize, &Entry)> {
        self.list.iter().enumerate().take(index).rev().find(|(_, entry)| !entry.is_gone())
    }

    /// The entries from `index` on that are not gone.
    pub(super) fn from(&self, index: usize) -> impl Iterator<Item = &Entry> {
        self.list.get(index..).unwrap_or_default().iter().filter(|entry| !entry.is_gone())
    }

    /// The entries from one index to another, both included, that are not gone.
    pub(super) fn within(&self, first: usize, last: usize) -> impl Iterator<Item = &Entry> {
        self.list.get(first..=last).unwrap_or_default().iter().filter(|entry| !entry.is_gone())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.from(0)
    }

    /// Puts `entry` in the place of those from one index to another, both included. Returns whether it now is the last.
    ///
    /// What is gone keeps its slot until half of all are: so a replace costs what it replaces, wherever it stands.
    pub(super) fn replace(&mut self, first: usize, last: usize, entry: Entry) -> bool {
        let range = self.list.get_mut(first..=last).unwrap_or_default();
        for old in range.iter_mut() {
            self.gone += usize::from(!old.is_gone());
            old.what = What::Gone;
        }
        if let Some(slot) = range.first_mut() {
            *slot = entry;
            self.gone -= 1;
        }
        while self.list.last().is_some_and(Entry::is_gone) {
            self.list.pop();
            self.gone -= 1;
        }
        let is_last = first + 1 == self.list.len();
        if self.gone > SWEEP_AT && self.gone * 2 > self.list.len() {
            self.list.retain(|entry| !entry.is_gone());
            self.list.shrink_to(self.list.len() * 2);
            self.gone = 0;
        }
        is_last
    }
}
