//! Recognises `{{…}}` in URLs, headers and bodies, so that a misspelt one is refused before anything is sent. What a
//! template becomes is the loader's affair.

use weir_model::units::UsageError;

/// Letters and digits that a URL parser leaves as they are, and nobody types.
const HIDDEN: &str = "weirtemplate0x7e1";

/// Refuses templates that nobody would fill in.
pub fn check(text: &str) -> Result<(), UsageError> {
    for (_, name) in find(text) {
        if !is_known(name.trim()) {
            return Err(UsageError::new(
                format!("unknown template `{{{{{name}}}}}`"),
                "one of {{counter}}, {{random}}, {{random:LO-HI}}, {{uuid}}; a body from a file is sent as it is",
            ));
        }
    }
    Ok(())
}

/// Replaces each template by a word that survives URL parsing; `show` puts them back.
pub fn hide(text: &str) -> (String, Vec<String>) {
    let mut hidden = String::new();
    let mut templates = Vec::new();
    let mut from = 0;
    for (at, name) in find(text) {
        let end = at + name.len() + 4;
        hidden.push_str(&text[from..at]);
        hidden.push_str(&format!("{HIDDEN}n{}n", templates.len()));
        templates.push(text[at..end].to_owned());
        from = end;
    }
    hidden.push_str(&text[from..]);
    (hidden, templates)
}

pub fn show(hidden: &str, templates: &[String]) -> String {
    let replace = |text: String, (index, template): (usize, &String)| {
        text.replace(&format!("{HIDDEN}n{index}n"), template)
    };
    templates.iter().enumerate().fold(hidden.to_owned(), replace)
}

pub fn is_in(hidden: &str) -> bool {
    hidden.contains(HIDDEN)
}

/// Where each `{{name}}` begins, and its name.
fn find(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find("{{").map(|at| at + from) {
        let Some(length) = text[at + 2..].find("}}") else { break };
        found.push((at, &text[at + 2..at + 2 + length]));
        from = at + length + 4;
    }
    found
}

fn is_known(name: &str) -> bool {
    match name.split_once(':') {
        None => matches!(name, "counter" | "random" | "uuid"),
        Some(("random", range)) => is_range(range),
        Some(_) => false,
    }
}

fn is_range(text: &str) -> bool {
    let ends =
        text.split_once('-').and_then(|(low, high)| Some((low.parse::<u64>().ok()?, high.parse().ok()?)));
    ends.is_some_and(|(low, high)| low <= high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_templates_pass() {
        for text in ["", "{{counter}}", "a{{random}}b{{uuid}}", "{{random:1-10}}", "{ {x} }", "{{unclosed"] {
            assert!(check(text).is_ok(), "{text}");
        }
        for text in ["{{countr}}", "{{random:9-1}}", "{{random:a-b}}", "{{}}", "{{counter}}{{x}}"] {
            assert!(check(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_template_survives_being_hidden() {
        let text = "http://h/{{counter}}/a?b={{random:1-2}}";
        let (hidden, templates) = hide(text);
        assert!(!hidden.contains('{') && is_in(&hidden));
        assert_eq!(show(&hidden, &templates), text);
    }
}
