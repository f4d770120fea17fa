//! `weir profiles`: the built-in connection policies, and where each of their values is read.

use std::fmt::Write;
use std::process::ExitCode;

use serde_json::{Value, json};
use weir_model::profiles::{self, Profile};
use weir_model::units::Nanos;

use crate::cli::{Format, ProfilesArgs};
use crate::error::Stop;
use crate::{output, text};

pub fn run(args: &ProfilesArgs) -> Result<ExitCode, Stop> {
    let shown = match (&args.id, args.format) {
        (None, Format::Text) => list(),
        (None, Format::Json) => output::json(&profiles::all().iter().map(as_json).collect::<Vec<_>>()),
        (Some(id), Format::Text) => show(&named(id)?),
        (Some(id), Format::Json) => output::json(&as_json(&named(id)?)),
    };
    output::print(&shown)?;
    Ok(ExitCode::SUCCESS)
}

fn named(id: &str) -> Result<Profile, Stop> {
    profiles::find(id, profiles::WIDTH).ok_or_else(|| {
        let ids: Vec<&str> = profiles::all().iter().map(|profile| profile.id).collect();
        Stop::usage(format!("unknown profile `{id}`"), format!("one of {}", ids.join(", ")))
    })
}

fn list() -> String {
    let mut out = String::new();
    for profile in profiles::all() {
        text::hanging(&mut out, &format!("{:<18}", profile.id), profile.about);
    }
    out.push_str("\n`weir profiles ID` shows a profile's values and their sources.\n");
    out
}

fn show(profile: &Profile) -> String {
    let mut out = format!("{}: {}\n", profile.id, profile.name);
    text::hanging(&mut out, "  ", profile.about);
    out.push('\n');
    for (key, value) in values(profile) {
        writeln!(out, "  {key:<25}{}", words(&key, &value)).expect("a string takes every write");
        for (_, source) in profile.sources.iter().filter(|(parameter, _)| *parameter == key) {
            text::hanging(&mut out, "      from ", source);
        }
    }
    out
}

/// The policy's values by name, in the order in which it declares them.
fn values(profile: &Profile) -> Vec<(String, Value)> {
    let policy = serde_json::to_value(&profile.policy).expect("a policy is plain data");
    policy.as_object().expect("a policy has fields").clone().into_iter().collect()
}

/// As `--pool-set` takes it.
fn words(key: &str, value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Number(ns) if is_span(key) => text::span(Nanos(ns.as_u64().unwrap_or_default())),
        Value::String(name) => name.clone(),
        other => other.to_string(),
    }
}

fn is_span(key: &str) -> bool {
    key.ends_with("_timeout") || key == "max_lifetime"
}

fn as_json(profile: &Profile) -> Value {
    let sources: serde_json::Map<String, Value> =
        profile.sources.iter().map(|(key, source)| ((*key).to_owned(), json!(source))).collect();
    json!({
        "id": profile.id,
        "name": profile.name,
        "about": profile.about,
        "policy": profile.policy,
        "sources": sources,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_in_the_list_and_can_be_shown() {
        let list = list();
        for profile in profiles::all() {
            assert!(list.contains(profile.id), "{}", profile.id);
            let shown = show(&profile);
            for (_, source) in profile.sources {
                let first_word = source.split(' ').next().unwrap_or_default();
                assert!(shown.contains(first_word), "{}: {source}", profile.id);
            }
        }
    }

    #[test]
    fn spans_read_as_spans() {
        assert_eq!(words("idle_timeout", &json!(90_000_000_000u64)), "90 s");
        assert_eq!(words("max_idle", &json!(2)), "2");
        assert_eq!(words("max_lifetime", &Value::Null), "none");
    }
}
