//! `weir completions`: the script with which a shell completes subcommands and flags.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::{generate, shells};

use crate::cli::{Cli, CompletionsArgs, Shell};
use crate::error::Stop;
use crate::output;

pub fn run(args: &CompletionsArgs) -> Result<ExitCode, Stop> {
    output::print(&script(args.shell))?;
    Ok(ExitCode::SUCCESS)
}

fn script(shell: Shell) -> String {
    let mut command = Cli::command();
    let mut script = Vec::new();
    match shell {
        Shell::Bash => generate(shells::Bash, &mut command, "weir", &mut script),
        Shell::Zsh => generate(shells::Zsh, &mut command, "weir", &mut script),
        Shell::Fish => generate(shells::Fish, &mut command, "weir", &mut script),
    }
    String::from_utf8(script).expect("flags and their help are UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_learns_the_flags_of_run() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            assert!(script.contains("max-pending"), "{shell:?}");
            assert!(script.contains("keepalive-timeout"), "{shell:?}");
        }
    }
}
