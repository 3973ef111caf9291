//! `label`: a session's title and labels.

use std::io::Write;

use sessionlog::{LabelChange, Labels, SessionId};

use super::exit::Failure;
use super::output::{self, printable};
use super::place::Place;

/// Sets a session's title and labels, and prints what they are then
///
/// They can be changed at any time; a fork starts without any.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog label ID --title 'Release notes' branch=main reviewed=yes
  sessionlog label ID reviewed=      # removes the label
  sessionlog label ID --title ''     # removes the title
  sessionlog ls --label branch=main")]
pub(crate) struct Args {
    /// The session's full id
    id: SessionId,

    /// What people call it; an empty one is removed
    #[arg(long)]
    title: Option<String>,

    /// Labels; one without a value is removed. Title and labels may have 4 KiB together
    #[arg(value_name = "K=V", value_parser = name_and_value)]
    labels: Vec<(String, String)>,

    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(place: &Place, args: Args, out: &mut impl Write) -> Result<(), Failure> {
    let store = place.open()?;
    let session = store.session(&args.id)?;
    let labels = if args.title.is_none() && args.labels.is_empty() {
        session.labels()
    } else {
        let change = match args.title {
            Some(title) => LabelChange::new().title(title),
            None => LabelChange::new(),
        };
        session
            .label(args.labels.into_iter().fold(change, |change, (name, value)| change.set(name, value)))?
    };
    if args.json {
        let record = serde_json::json!({ "title": labels.title, "labels": labels.labels });
        output::line(out, &record.to_string())?;
    } else {
        for line in lines(&labels) {
            output::line(out, &line)?;
        }
    }
    output::flush(out)?;
    Ok(store.close()?)
}

fn lines(labels: &Labels) -> Vec<String> {
    let title = labels.title.iter().map(|title| format!("title: {}", printable(title)));
    title.chain(labels.labels.iter().map(|(name, value)| printable(&format!("{name}={value}")))).collect()
}

/// Takes `K=V` apart.
pub(crate) fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some(("", _)) => Err("the name before `=` is empty".into()),
        Some((name, value)) => Ok((name.into(), value.into())),
        None => Err("NAME=VALUE expected".into()),
    }
}
