//! `man`: manual pages, made from what `--help` says.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use sessionlog::Error;

use super::Cli;
use super::exit::Failure;
use super::output;

/// Prints a manual page, or writes all of them into a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog man | man -l -
  sessionlog man read | man -l -
  sessionlog man --all share/man/man1")]
pub(crate) struct Args {
    /// The command [default: the program]
    #[arg(conflicts_with = "all")]
    command: Option<String>,

    /// Write the pages of the program and all commands into this folder, which is made when it is missing; no file is
    /// overwritten
    #[arg(long, value_name = "DIR")]
    all: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    if let Some(folder) = &args.all {
        return all(&program, folder);
    }
    let text = match &args.command {
        None => page(&program)?,
        Some(name) => {
            let found = program.get_subcommands().find(|command| command.get_name() == name);
            page(found.ok_or_else(|| Failure::usage(format!("there is no command `{name}`")))?)?
        }
    };
    output::write(out, &text)?;
    output::flush(out)
}

fn all(program: &Command, folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    for command in std::iter::once(program).chain(program.get_subcommands()) {
        let path = folder.join(Man::new(command.clone()).get_filename());
        let text = page(command)?;
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        file.and_then(|mut file| file.write_all(&text)).map_err(|error| failed(&path, &error))?;
    }
    Ok(())
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::of(&Error::OutputExists { path: path.to_owned() }),
        _ => Failure::io(&format!("cannot write {}", path.display()), error),
    }
}

/// Into memory: a closed pipe is told apart from failures where it is written.
fn page(command: &Command) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    let made = Man::new(command.clone()).render(&mut text);
    made.map_err(|error| Failure::io("cannot make the page", &error))?;
    Ok(text)
}
