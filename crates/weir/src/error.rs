//! What ends the command early: said as `weir: what` and `hint: what to do`, with its exit status.

use std::fmt;
use std::process::ExitCode;

use weir_load::LoadError;
use weir_model::units::UsageError;
use weir_origin::OriginError;

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
    /// Clap's first paragraph is what is wrong; its tip, or the values it knows, is what to do.
    fn from(error: clap::Error) -> Stop {
        let text = error.render().to_string();
        let paragraphs: Vec<&str> = text.split("\n\n").map(str::trim).collect();
        let first = paragraphs.first().copied().unwrap_or_default();
        let first = first.strip_prefix("error: ").unwrap_or(first);
        let (message, values) = match first.split_once("\n") {
            Some((message, rest)) => (message, one_line(rest)),
            None => (first, String::new()),
        };
        let tip = paragraphs.iter().filter_map(|p| p.strip_prefix("tip: ")).map(one_line).next();
        let tip = tip.map(|tip| tip.split(" tip: ").next().unwrap_or_default().to_owned());
        let values = values.trim_matches(['[', ']']).to_owned();
        let hint = match (tip, values.is_empty()) {
            (Some(tip), true) => tip,
            (Some(tip), false) => format!("{tip}; {values}"),
            (None, false) => values,
            (None, true) => "`weir --help` and `weir run --help` list the flags".to_owned(),
        };
        Stop::usage(message, hint)
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
