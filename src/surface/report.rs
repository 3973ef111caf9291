//! What had to be added or left out to make a request that can be sent.

use std::collections::HashSet;
use std::fmt;

use super::entry::What;
use super::{ReplaceFault, Surface};
use crate::id::Seq;

/// What the messages of a surface have that the log has not, and the reverse. Empty: they say what was logged.
///
/// Where nothing is lost nothing is reported: content that is empty is dropped, a message that was logged between a
/// call and its result comes behind the result, an id that is taken gets a `#2`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// One for each, ascending by seq.
    pub mends: Vec<Mend>,
}

/// One thing that was mended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mend {
    /// The event concerned.
    pub seq: Seq,
    /// What is wrong with it, and so what was done.
    pub fault: SurfaceFault,
}

/// Why an event cannot be part of a request as it was logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SurfaceFault {
    /// A call that has no result; [`MISSING_RESULT`](crate::MISSING_RESULT) stands in.
    #[error("the call has no result: something stands in for it")]
    NoResult,
    /// A result whose call is not there, or was replaced; it is left out.
    #[error("the result answers no call: left out")]
    NoCall,
    /// A result of a call that has one; it is left out.
    #[error("the call was answered before: left out")]
    SecondResult,
    /// A replace that an append would have refused (it was imported); it replaces nothing and comes behind what is there.
    #[error("{0}: replaces nothing")]
    Replace(ReplaceFault),
}

impl Report {
    /// Whether nothing was mended.
    pub fn is_empty(&self) -> bool {
        self.mends.is_empty()
    }
}

/// One line for each.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Mend { seq, fault }) in self.mends.iter().enumerate() {
            let line_end = if index == 0 { "" } else { "\n" };
            write!(f, "{line_end}event {seq}: {fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Report {}

impl Surface {
    /// Returns what [`messages`](Self::messages) adds or leaves out.
    ///
    /// ```
    /// use sessionlog::{Event, SurfaceFault, Surface};
    /// let call = r#"{"type":"tool/call","seq":0,"id":"c1","name":"ls","args":{},"timestamp":0}"#;
    /// let mut surface = Surface::default();
    /// surface.push(&Event::from_json(call.as_bytes())?);
    /// assert_eq!(surface.messages().len(), 2); // the call, and what stands in for its result
    /// assert_eq!(surface.report().mends[0].fault, SurfaceFault::NoResult);
    /// # Ok::<(), sessionlog::EventError>(())
    /// ```
    ///
    /// # Cost
    /// Constant when there is nothing to report, else a look at all that stands.
    pub fn report(&self) -> Report {
        let mut mends = Vec::new();
        if self.is_mended() {
            let mut answered = HashSet::new();
            for entry in self.entries.iter() {
                let fault = match &entry.what {
                    What::Call(call) if call.answer.is_none() => Some(SurfaceFault::NoResult),
                    What::Call(call) => {
                        answered.insert(call.id.to_str());
                        None
                    }
                    What::Result(answer) if answer.call.is_none() => {
                        let second = answered.contains(&answer.id.to_str());
                        Some(if second { SurfaceFault::SecondResult } else { SurfaceFault::NoCall })
                    }
                    _ => None,
                };
                mends.extend(fault.map(|fault| Mend { seq: Seq::new(entry.seq), fault }));
            }
            let replaces = self.bad_replaces.iter();
            mends.extend(
                replaces
                    .map(|(seq, fault)| Mend { seq: Seq::new(*seq), fault: SurfaceFault::Replace(*fault) }),
            );
            mends.sort_by_key(|mend| mend.seq);
        }
        Report { mends }
    }

    /// Whether the report is not empty.
    pub(super) fn is_mended(&self) -> bool {
        self.open.len() + self.left_out + self.bad_replaces.len() > 0
    }
}
