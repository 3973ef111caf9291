//! The command `sessionlog`: a thin layer over the library's public items.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
