//! `weir`, the command people type. Reads what was asked, does it, and ends with a status that scripts can rely on.
//!
//! ```text
//! cli -> plan_from -> run -> record -> text | json
//! ```
#![forbid(unsafe_code)]

mod cli;
mod error;
mod output;
mod style;
mod template;
mod values;

mod host;
mod plan_from;
mod progress;
mod run;
mod signals;
mod store;
mod text;

mod completions;
mod demo;
mod origin_cmd;
mod profiles_cmd;

#[cfg(test)]
mod fixture;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use cli::{Cli, Command};
use error::Stop;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version are no errors, and have their own layout.
        Err(asked) if !asked.use_stderr() || is_bare(&asked) => asked.exit(),
        Err(wrong) => return Stop::from(wrong).say(),
    };
    done(cli.command).unwrap_or_else(|stop| stop.say())
}

/// `weir` alone: what there is to do is all there is to say.
fn is_bare(error: &clap::Error) -> bool {
    error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}

fn done(command: Command) -> Result<ExitCode, Stop> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Origin(args) => origin_cmd::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Profiles(args) => profiles_cmd::run(&args),
        Command::Completions(args) => completions::run(&args),
    }
}
