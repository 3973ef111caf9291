//! The command line: parse, call the library, print, exit. One file per command.
//!
//! Data goes to standard output, everything said about it to standard error. Nothing here uses `print!`: that panics
//! when the reader of a pipe goes away, which is no fault (see [`exit`]).

mod append;
mod backup;
mod compact;
mod completions;
mod create;
mod demo;
mod diff;
mod exit;
mod export;
mod fork;
mod grep;
mod import;
mod inspect;
mod label;
mod lines;
mod ls;
mod man;
mod messages;
mod output;
mod place;
mod progress;
mod prune;
mod read;
mod repair;
mod replay;
mod resolve;
mod resume;
mod rm;
mod said;
mod salvage;
mod scan;
mod show;
mod stats;
mod style;
mod time;
mod tree;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use exit::Failure;
use place::Place;

/// An embedded, durable, append-only event log for AI-agent sessions
#[derive(Debug, Parser)]
#[command(name = "sessionlog", version, about, arg_required_else_help = true, after_help = AFTER_HELP)]
struct Cli {
    /// The store's folder [default: $SESSIONLOG_STORE, else `sessionlog` in the data folder of this system]
    #[arg(long, global = true, value_name = "DIR")]
    store: Option<PathBuf>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Create(create::Args),
    Append(append::Args),
    Read(read::Args),
    Messages(messages::Args),
    Fork(fork::Args),
    Label(label::Args),
    Export(export::Args),
    Import(import::Args),
    Ls(ls::Args),
    Tree(tree::Args),
    Show(show::Args),
    Stats(stats::Args),
    Diff(diff::Args),
    Grep(grep::Args),
    Inspect(inspect::Args),
    Resume(resume::Args),
    Replay(replay::Args),
    Salvage(salvage::Args),
    Scan(scan::Args),
    Repair(repair::Args),
    Backup(backup::Args),
    Compact(compact::Args),
    Rm(rm::Args),
    Prune(prune::Args),
    Completions(completions::Args),
    Man(man::Args),
}

const AFTER_HELP: &str = "\
Examples:
  sessionlog demo
  id=$(sessionlog create --meta model=small)
  echo '{\"type\":\"user/message\",\"content\":\"hello\"}' | sessionlog append $id
  sessionlog read $id
  sessionlog messages $id

Exit codes:
  0    fine, also when the reader of the output went away
  1    findings, not found, refused input or state, conflict, no match, a difference, I/O error
  2    wrong usage, bad session id, output exists
  3    the store cannot be opened: none here, in use, newer format, damaged, no permission
  130  stopped by Ctrl-C; the store is sound

Data goes to standard output, all else to standard error. Colours and progress are for terminals; NO_COLOR=1 turns
colours off.";

/// Runs the program and returns its exit code.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(report) => {
            // A help text that nobody reads to its end is no failure.
            let _ = report.print();
            return exit::of_parser(&report);
        }
    };
    silence_the_engine();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Keeps the engine's panics off standard error. The library catches them, on files that are damaged, and says in an
/// error what is wrong; the engine's words quote whole pages.
fn silence_the_engine() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let in_engine = panic.location().is_some_and(|location| location.file().contains("/sled-"));
        if !in_engine {
            told(panic);
        }
    }));
}

fn run(cli: Cli) -> Result<(), Failure> {
    // Locked once: commands print from one thread.
    let mut out = io::stdout().lock();
    let place = Place::new(cli.store);
    match cli.command {
        Command::Demo(_) => demo::run(&mut out),
        Command::Create(args) => create::run(&place, args, &mut out),
        Command::Append(args) => append::run(&place, &args, io::stdin().lock(), &mut out),
        Command::Read(args) => read::run(&place, &args, &mut out),
        Command::Messages(args) => messages::run(&place, &args, &mut out),
        Command::Fork(args) => fork::run(&place, args, &mut out),
        Command::Export(args) => export::run(&place, &args, &mut out),
        Command::Import(args) => import::run(&place, &args, io::stdin().lock(), &mut out),
        Command::Label(args) => label::run(&place, args, &mut out),
        Command::Ls(args) => ls::run(&place, &args, &mut out),
        Command::Tree(args) => tree::run(&place, &args, &mut out),
        Command::Show(args) => show::run(&place, &args, &mut out),
        Command::Stats(args) => stats::run(&place, &args, &mut out),
        Command::Diff(args) => diff::run(&place, &args, &mut out),
        Command::Grep(args) => grep::run(&place, &args, &mut out),
        Command::Inspect(args) => inspect::run(&place, &args, &mut out),
        Command::Resume(args) => resume::run(&place, &args, &mut out),
        Command::Replay(args) => replay::run(&place, &args, &mut out),
        Command::Salvage(args) => salvage::run(&args, &mut out),
        Command::Scan(args) => scan::run(&place, &args, &mut out),
        Command::Repair(args) => repair::run(&place, &args, &mut out),
        Command::Backup(args) => backup::run(&place, &args, &mut out),
        Command::Compact(args) => compact::run(&place, &args, &mut out),
        Command::Rm(args) => rm::run(&place, &args),
        Command::Prune(args) => prune::run(&place, &args, &mut out),
        Command::Completions(args) => completions::run(&args, &mut out),
        Command::Man(args) => man::run(&args, &mut out),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Cli;

    /// Goal: the definition of the command line does not contradict itself (clap checks that only when it runs), and
    /// every command shows an example.
    #[test]
    fn parser_is_sound_and_every_command_has_an_example() {
        let mut command = Cli::command();
        command.build();
        command.clone().debug_assert();
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            let help = sub.clone().render_long_help().to_string();
            assert!(help.contains("Example"), "{} has no example", sub.get_name());
        }
    }
}
