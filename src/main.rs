//! Stand-in until the command line is merged.
fn main() {}
