//! Colours, or none. Decided once, from the terminal and what the user said.

use std::io::IsTerminal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    Colours,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Style {
    /// Colours only on a terminal, and only if neither `--no-color` nor the variable NO_COLOR (no-color.org) is there.
    pub fn of(stream: &impl IsTerminal, no_color: bool) -> Style {
        let refused = no_color || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if stream.is_terminal() && !refused { Style::Colours } else { Style::Plain }
    }

    pub fn paint(self, colour: Colour, text: &str) -> String {
        if self == Style::Plain || text.is_empty() {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Bold => "1",
            Colour::Dim => "2",
            Colour::Red => "31",
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Cyan => "36",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
