//! Standard output. A reader that has gone away is not an error: what was to be kept is kept already.

use std::io::{ErrorKind, Write};

use serde::Serialize;

use crate::error::Stop;

pub fn print(text: &str) -> Result<(), Stop> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Stop::could_not_run(format!("cannot write to standard output: {e}"), ""))
        }
        _ => Ok(()),
    }
}

/// Pretty-printed, with a line end.
pub fn json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain data has a JSON form");
    text.push('\n');
    text
}
