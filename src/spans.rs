//! Spans for `tracing`, with the feature of that name; without it they are nothing, and their fields are not evaluated.

/// Opens a span that lasts as long as what this gives: `let _span = span!("sync");`. Fields are names of numbers.
macro_rules! span {
    ($name:literal $(, $field:ident = $value:expr)*) => {{
        #[cfg(feature = "tracing")]
        let span = tracing::debug_span!(target: "sessionlog", $name $(, $field = $value)*).entered();
        #[cfg(not(feature = "tracing"))]
        let span = {
            // Named, so that what is there for a span only is in use.
            let _ = || {
                $(let _ = &$value;)*
            };
            $crate::spans::Off
        };
        span
    }};
}
pub(crate) use span;

/// No span.
#[cfg(not(feature = "tracing"))]
pub(crate) struct Off;
