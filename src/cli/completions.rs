//! `completions`: what a shell needs to complete this command line.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;
use super::exit::Failure;
use super::output;

/// Prints the completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog completions bash > ~/.local/share/bash-completion/completions/sessionlog
  sessionlog completions zsh > ~/.zfunc/_sessionlog
  sessionlog completions fish > ~/.config/fish/completions/sessionlog.fish")]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    // Into memory: what writes it panics when the pipe is closed.
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "sessionlog", &mut text);
    output::write(out, &text)?;
    output::flush(out)
}
