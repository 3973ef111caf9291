//! The JSON form of events.
