//! What the documents say of the repository, checked: who may use whom, where `unsafe` stands, where percentiles are
//! computed, that links and the code map lead somewhere.
//!
//! Reads text, line by line; it parses neither Rust nor TOML. Each rule is a function from text to what it complains
//! of, and is itself tried on text that breaks it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who may use whom among our own packages. A package without a row fails the test.
const ARROWS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("wire", &[]),
    ("net", &[]),
    ("load", &["model", "wire", "net"]),
    ("origin", &["model", "wire", "net"]),
    ("weir", &["model", "wire", "net", "load", "origin"]),
];

/// Packages whose `lib.rs` must forbid `unsafe`, not only do without it.
const FORBID_UNSAFE: &[&str] = &["model", "wire"];

/// The only place that may turn samples into percentiles.
const STATS: &str = "crates/model/src/stats";

const PERCENTILES: &[&str] = &["value_at_quantile", "value_at_percentile", "hdrhistogram"];
const UNFINISHED: &[&str] = &["todo!", "unimplemented!", "dbg!", "TODO", "FIXME"];

const FILE_BYTES_MAX: u64 = 1_000_000;

/// Spells out what it looks for, so the rules about words skip it.
const THIS_FILE: &str = "crates/weir/tests/tidy.rs";

#[test]
fn packages_depend_only_on_what_the_arrows_allow() {
    assert_none(packages().iter().flat_map(|package| {
        let path = format!("crates/{package}/Cargo.toml");
        forbidden_uses(package, &packages_in_manifest(&read(&path)), &path)
    }));
}

#[test]
fn sources_name_only_packages_that_the_arrows_allow() {
    assert_none(rust_files().into_iter().flat_map(|path| {
        let used = packages_in_source(&read(&path));
        forbidden_uses(package_of(&path), &used, &path)
    }));
}

#[test]
fn unsafe_stands_only_in_net_and_says_why_it_is_sound() {
    assert_none(rust_files().into_iter().flat_map(|path| {
        let text = read(&path);
        match package_of(&path) {
            "net" => located(&path, unexplained_unsafe(&text)),
            _ => located(&path, lines_with_unsafe(&text)),
        }
    }));
}

#[test]
fn model_and_wire_forbid_unsafe() {
    for package in FORBID_UNSAFE {
        let path = format!("crates/{package}/src/lib.rs");
        assert!(read(&path).contains("#![forbid(unsafe_code)]"), "{path}: no `#![forbid(unsafe_code)]`");
    }
}

#[test]
fn percentiles_are_computed_in_model_stats_and_nowhere_else() {
    let elsewhere = rust_files().into_iter().filter(|path| !path.starts_with(STATS));
    assert_none(elsewhere.flat_map(|path| located(&path, lines_with(PERCENTILES, &read(&path)))));
}

#[test]
fn nothing_is_left_unfinished() {
    let files = rust_files().into_iter();
    assert_none(files.flat_map(|path| located(&path, lines_with(UNFINISHED, &read(&path)))));
}

#[test]
fn every_module_says_what_it_is_for() {
    let sources = rust_files().into_iter().filter(|path| path.contains("/src/"));
    let silent = sources.filter(|path| !read(path).starts_with("//!"));
    assert_none(silent.map(|path| format!("{path}: does not open with `//!`")));
}

#[test]
fn links_in_the_documents_lead_to_files() {
    let documents = committed_files().into_iter().filter(|path| path.ends_with(".md"));
    assert_none(documents.flat_map(|document| dead_links(&document)));
}

#[test]
fn the_code_map_names_every_package() {
    let map = read("ARCHITECTURE.md");
    let unnamed = packages().into_iter().filter(|package| !map.contains(&format!("`crates/{package}/`")));
    assert_none(unnamed.map(|package| format!("ARCHITECTURE.md: no `crates/{package}/` in the code map")));
}

#[test]
fn both_licences_are_here() {
    assert!(read("LICENSE-APACHE").contains("Apache License"), "LICENSE-APACHE: not the Apache licence");
    assert!(read("LICENSE-MIT").contains("The Weir authors"), "LICENSE-MIT: not ours");
}

#[test]
fn every_dependency_comes_from_the_registry() {
    assert_none(located("Cargo.lock", foreign_sources(&read("Cargo.lock"))));
}

#[test]
fn no_large_file_is_committed() {
    let sizes = committed_files().into_iter().map(|path| (root().join(&path).metadata(), path));
    assert_none(sizes.filter_map(|(metadata, path)| {
        let bytes = metadata.expect("a file that was just listed").len();
        (bytes > FILE_BYTES_MAX).then(|| format!("{path}: {bytes} bytes, {FILE_BYTES_MAX} is the limit"))
    }));
}

// The rules. Those about lines number them from 1.

type Lines = Vec<(usize, String)>;

fn forbidden_uses(package: &str, used: &BTreeSet<String>, place: &str) -> Vec<String> {
    let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == package) else {
        return vec![format!("{place}: package `{package}` has no row in ARROWS")];
    };
    used.iter()
        .filter(|to| *to != package && !allowed.contains(&to.as_str()))
        .map(|to| format!("{place}: `{package}` may not use `{to}`"))
        .collect()
}

/// Our packages that a manifest depends on, in any of its dependency tables.
fn packages_in_manifest(manifest: &str) -> BTreeSet<String> {
    let mut in_dependencies = false;
    let mut used = BTreeSet::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            in_dependencies = header.contains("dependencies");
            used.extend(header.split(['.', ']']).filter_map(our_package));
        } else if in_dependencies {
            used.extend(line.split([' ', '=', '.']).next().and_then(our_package));
        }
    }
    used
}

fn our_package(name: &str) -> Option<String> {
    let (first, rest) = name.split_once(['-', '_'])?;
    (first == "weir").then(|| rest.to_owned())
}

/// Our packages that a source names as a path, such as `weir_wire::h1`.
fn packages_in_source(source: &str) -> BTreeSet<String> {
    let known = |name: &String| ARROWS.iter().any(|(package, _)| package == name);
    words(source).filter_map(our_package).filter(known).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
}

/// Lines whose code, comments apart, holds the keyword. `unsafe_code` in an attribute is another word.
fn lines_with_unsafe(source: &str) -> Lines {
    numbered(source).filter(|(_, line)| words(code_of(line)).any(|word| word == "unsafe")).collect()
}

/// Those of them with no `SAFETY:` on the line, in the three lines above, or in a comment that reaches into those.
fn unexplained_unsafe(source: &str) -> Lines {
    let lines: Vec<&str> = source.lines().collect();
    let explained = |number: usize| {
        let mut start = number.saturating_sub(4);
        while start > 0 && lines[start].trim_start().starts_with("//") {
            start -= 1;
        }
        lines[start..number].iter().any(|line| line.contains("SAFETY:") || line.contains("# Safety"))
    };
    lines_with_unsafe(source).into_iter().filter(|(number, _)| !explained(*number)).collect()
}

/// A line up to its comment. Its price: code after a string that holds `//`, on the same line, goes unseen.
fn code_of(line: &str) -> &str {
    line.split("//").next().unwrap_or("")
}

fn lines_with(patterns: &[&str], source: &str) -> Lines {
    numbered(source).filter(|(_, line)| patterns.iter().any(|pattern| line.contains(pattern))).collect()
}

/// Targets of `[text](target)` that are files here, without their `#fragment`.
fn relative_links(markdown: &str) -> Vec<String> {
    let targets = markdown.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .filter_map(|target| target.split('#').next())
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect()
}

fn foreign_sources(lock: &str) -> Lines {
    let registry = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
    numbered(lock).filter(|(_, line)| line.starts_with("source = ") && line != registry).collect()
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, String)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line.to_owned()))
}

fn located(path: &str, lines: Lines) -> Vec<String> {
    lines.into_iter().map(|(number, line)| format!("{path}:{number}: {}", line.trim())).collect()
}

fn assert_none(complaints: impl IntoIterator<Item = String>) {
    let complaints: Vec<String> = complaints.into_iter().collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

// The repository.

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Names in a folder, in order.
fn names_in(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.expect("a readable folder").file_name().into_string().expect("a name in UTF-8")
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

fn packages() -> Vec<String> {
    names_in("crates")
}

fn package_of(path: &str) -> &str {
    path.split('/').nth(1).expect("a path under `crates`")
}

/// Every Rust file of every package, tests included.
fn rust_files() -> Vec<String> {
    let mut files = rust_files_in("crates");
    files.retain(|path| path != THIS_FILE);
    assert!(!files.is_empty(), "no Rust files under `crates`");
    files
}

fn rust_files_in(folder: &str) -> Vec<String> {
    let paths = names_in(folder).into_iter().map(|name| format!("{folder}/{name}"));
    let files =
        paths.flat_map(|path| if root().join(&path).is_dir() { rust_files_in(&path) } else { vec![path] });
    files.filter(|path| path.ends_with(".rs")).collect()
}

/// What git tracks and the working tree still has.
fn committed_files() -> Vec<String> {
    let listing = Command::new("git").arg("-C").arg(root()).args(["ls-files", "-z"]).output();
    let listing = listing.expect("git, to list the committed files");
    assert!(listing.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listing.stderr));
    let names = String::from_utf8(listing.stdout).expect("names in UTF-8");
    names.split_terminator('\0').filter(|path| root().join(path).exists()).map(str::to_owned).collect()
}

fn dead_links(document: &str) -> Vec<String> {
    let folder = Path::new(document).parent().expect("the folder of a file");
    let links = relative_links(&read(document)).into_iter();
    let dead = links.filter(|link| !root().join(folder).join(link).exists());
    dead.map(|link| format!("{document}: `{link}` is not there")).collect()
}

mod rules {
    //! The rules, tried on texts that keep them and on texts that break them.

    use super::*;

    fn numbers(lines: Lines) -> Vec<usize> {
        lines.into_iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn an_arrow_that_is_not_drawn_is_a_complaint() {
        let check = |from: &str, to: &str, complaints: usize| {
            let used = BTreeSet::from([to.to_owned()]);
            assert_eq!(forbidden_uses(from, &used, "here").len(), complaints, "{from} -> {to}");
        };
        check("wire", "net", 1);
        check("net", "model", 1);
        check("model", "wire", 1);
        check("load", "origin", 1);
        check("origin", "load", 1);
        check("load", "weir", 1);
        check("newcomer", "model", 1);
        check("load", "wire", 0);
        check("load", "load", 0);
        check("weir", "origin", 0);
    }

    #[test]
    fn our_packages_are_found_in_every_kind_of_dependency_table() {
        let check = |manifest: &str, expected: &[&str]| {
            let found: Vec<String> = packages_in_manifest(manifest).into_iter().collect();
            assert_eq!(found, expected, "{manifest}");
        };
        check("[package]\nname = \"weir-load\"\n", &[]);
        check("[dependencies]\nserde = \"1\"\nweir-net = { path = \"../net\" }\n", &["net"]);
        check("[dev-dependencies]\nweir-origin.path = \"../origin\"\n", &["origin"]);
        check("[dependencies.weir-wire]\npath = \"../wire\"\n", &["wire"]);
        check("[target.'cfg(unix)'.dependencies]\nweir-net = \"0.1\"\n[lints]\nworkspace = true\n", &["net"]);
    }

    #[test]
    fn our_packages_are_found_in_paths_and_not_in_other_words() {
        let check = |source: &str, expected: &[&str]| {
            let found: Vec<String> = packages_in_source(source).into_iter().collect();
            assert_eq!(found, expected, "{source}");
        };
        check("use weir_wire::h1;\nfn f(p: &weir_model::plan::Plan) {}", &["model", "wire"]);
        check("let weir_runs = 1; let tidy_weir_net = 2;", &[]);
    }

    #[test]
    fn unsafe_is_found_in_code_and_not_in_comments_or_lints() {
        let check = |source: &str, expected: &[usize]| {
            assert_eq!(numbers(lines_with_unsafe(source)), expected, "{source}");
        };
        check("let x = unsafe { *p };", &[1]);
        check("\nunsafe impl Send for X {}", &[2]);
        check("#![forbid(unsafe_code)]\n// unsafe is elsewhere\n", &[]);
    }

    #[test]
    fn unsafe_needs_its_sentence_close_above() {
        let check = |source: &str, expected: &[usize]| {
            assert_eq!(numbers(unexplained_unsafe(source)), expected, "{source}");
        };
        check("unsafe { f() }", &[1]);
        check("// SAFETY: p is valid.\nunsafe { f() }", &[]);
        check("// SAFETY: a long\n// sentence\n// over\n// many\n// lines.\nunsafe { f() }", &[]);
        check("// SAFETY: too far.\na();\nb();\nc();\nd();\nunsafe { f() }", &[6]);
        check("/// # Safety\n/// `p` is valid.\npub unsafe fn f(p: *const u8) {}", &[]);
    }

    #[test]
    fn a_percentile_or_an_unfinished_piece_is_found_where_it_stands() {
        let check = |patterns: &[&str], source: &str, expected: &[usize]| {
            assert_eq!(numbers(lines_with(patterns, source)), expected, "{source}");
        };
        check(PERCENTILES, "let h = 1;\nh.value_at_quantile(0.5)", &[2]);
        check(PERCENTILES, "stats.p50()", &[]);
        check(UNFINISHED, "todo!()\n// FIXME later\nok()", &[1, 2]);
    }

    #[test]
    fn relative_links_are_told_from_addresses_and_fragments() {
        let check = |markdown: &str, expected: &[&str]| assert_eq!(relative_links(markdown), expected);
        check("[a](crates/net) and [b](https://example.org/x)", &["crates/net"]);
        check("[c](ARCHITECTURE.md#words), [d](#here), [e](mailto:a@b.c)", &["ARCHITECTURE.md"]);
        check("no link (here)", &[]);
    }

    #[test]
    fn a_source_that_is_not_the_registry_is_a_complaint() {
        let check = |lock: &str, expected: &[usize]| assert_eq!(numbers(foreign_sources(lock)), expected);
        check("name = \"x\"\nsource = \"git+https://github.com/x/x#abc\"", &[2]);
        check("source = \"registry+https://github.com/rust-lang/crates.io-index\"", &[]);
    }
}
