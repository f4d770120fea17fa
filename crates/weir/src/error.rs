//! What ends the command early: said as `weir: what` and `hint: what to do`, with its exit status.

use std::fmt;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::ErrorKind;
use weir_load::LoadError;
use weir_model::units::UsageError;
use weir_origin::OriginError;

use crate::cli::Cli;

/// Exit statuses, as `weir run --help` lists them.
pub mod exit {
    pub const OK: u8 = 0;
    pub const COULD_NOT_RUN: u8 = 1;
    pub const USAGE: u8 = 2;
    pub const GATE_FAILED: u8 = 3;
    pub const INVALID: u8 = 4;
    pub const INTERRUPTED: u8 = 130;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    pub message: String,
    pub hint: String,
    pub status: u8,
}

impl Stop {
    pub fn could_not_run(message: impl Into<String>, hint: impl Into<String>) -> Stop {
        Stop { message: message.into(), hint: hint.into(), status: exit::COULD_NOT_RUN }
    }

    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Stop {
        Stop { message: message.into(), hint: hint.into(), status: exit::USAGE }
    }

    /// Says it on standard error. Whoever closed that does not want to know.
    pub fn say(&self) -> ExitCode {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "{self}");
        ExitCode::from(self.status)
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "weir: {}", self.message)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, "\nhint: {}", self.hint) }
    }
}

impl From<UsageError> for Stop {
    fn from(error: UsageError) -> Stop {
        Stop::usage(error.message, error.hint)
    }
}

impl From<LoadError> for Stop {
    fn from(error: LoadError) -> Stop {
        Stop::could_not_run(error.message, error.hint)
    }
}

impl From<OriginError> for Stop {
    fn from(error: OriginError) -> Stop {
        Stop::could_not_run(error.message, error.hint)
    }
}

impl From<clap::Error> for Stop {
    /// Clap's first line is what is wrong. What to do is its tip and the values it knows, or what a value's own parser
    /// expected.
    fn from(error: clap::Error) -> Stop {
        let text = error.render().to_string();
        // A value may have lines of its own; clap's next part begins after an empty one.
        let message = text.split("\n\n").next().unwrap_or_default().trim_end();
        let message = match error.kind() {
            ErrorKind::ValueValidation => message,
            _ => message.lines().next().unwrap_or_default(),
        };
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let expected = std::error::Error::source(&error).map(|e| e.to_string());
        let message = match &expected {
            Some(expected) => message.strip_suffix(&format!(": {expected}")).unwrap_or(message),
            None => message,
        };
        let hints: Vec<String> = tip(&text).into_iter().chain(values(&text)).chain(missing(&text)).collect();
        let hint = match (expected, error.kind()) {
            (Some(expected), _) => expected,
            (None, _) if !hints.is_empty() => hints.join("; "),
            (None, ErrorKind::InvalidSubcommand | ErrorKind::MissingSubcommand) => subcommands(),
            (None, _) => "`weir --help`, `weir run --help` and so on list the flags".to_owned(),
        };
        Stop::usage(message.trim_end_matches(':'), hint)
    }
}

/// The first of `  tip: …`. How to pass what looks like a flag as a value is no help here: no value begins like one.
fn tip(text: &str) -> Option<String> {
    let mut tips = text.lines().filter_map(|line| line.trim_start().strip_prefix("tip: "));
    tips.find(|tip| !tip.contains("'-- ")).map(str::to_owned)
}

/// What stands in `  [possible values: …]`.
fn values(text: &str) -> Option<String> {
    let list = text.lines().find_map(|line| line.trim_start().strip_prefix("[possible values: "))?;
    Some(format!("one of {}", list.trim_end_matches(']')))
}

/// The arguments that are listed as required.
fn missing(text: &str) -> Option<String> {
    let listed = text.lines().skip(1).take_while(|line| line.starts_with("  ")).map(str::trim);
    let listed: Vec<&str> = listed.filter(|line| line.starts_with(['-', '<'])).collect();
    (!listed.is_empty()).then(|| format!("give {}", listed.join(" ")))
}

fn subcommands() -> String {
    let command = Cli::command();
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    format!("one of {}", names.join(", "))
}
