//! `weir demo`: one origin, three connection policies, and what the figures say. Starts an origin and three runs as
//! processes of its own, reads the records they leave, and computes nothing that is not in them.

mod conclusion;
mod report;

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_model::record::Record;

use crate::cli::DemoArgs;
use crate::error::{Stop, exit};
use crate::style::{Colour, Style};
use crate::text;
use crate::{output, signals};

/// Spread about 100 ms, as real services are: with one exact latency all callers would move in step.
const LATENCY: &str = "normal:100ms,20ms";
const CALLERS: u32 = 400;

/// One run of the demo. `id` names its files.
pub struct Scene {
    id: &'static str,
    title: &'static str,
    flags: &'static [&'static str],
}

const SCENES: [Scene; 3] = [
    Scene { id: "pool-100", title: "A pool of 100 connections", flags: &["--pool", "100"] },
    Scene { id: "pool-400", title: "A pool of 400 connections", flags: &["--pool", "400"] },
    Scene {
        id: "per-request",
        title: "A new connection for each request",
        flags: &["--profile", "per-request"],
    },
];

/// A scene that was played.
pub struct Played {
    scene: &'static Scene,
    command: String,
    record: Record,
}

pub fn run(args: &DemoArgs) -> Result<ExitCode, Stop> {
    std::fs::create_dir_all(&args.dir).map_err(|e| {
        Stop::could_not_run(
            format!("--dir {}: {e}", args.dir.display()),
            "name a directory that can be written to",
        )
    })?;
    let style = Style::of(&std::io::stdout(), args.no_color);
    // The run in progress hears of Ctrl-C too and ends with a part of its report, which ends the demo.
    let stopped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stopped);
    signals::on_stop(move || flag.store(true, Ordering::Relaxed))?;
    let origin = OriginChild::start()?;
    output::print(&introduction(style))?;

    let mut played = Vec::new();
    for (index, scene) in SCENES.iter().enumerate() {
        let one = play(args, scene, &origin.url)?;
        output::print(&report::scene(index + 1, &one, style))?;
        if one.record.interrupted || stopped.load(Ordering::Relaxed) {
            return Ok(ExitCode::from(exit::INTERRUPTED));
        }
        played.push(one);
    }
    origin.stop()?;

    output::print(&report::comparison(&played, style))?;
    let file = args.dir.join("report.md");
    std::fs::write(&file, report::markdown(&played)).map_err(|e| {
        Stop::could_not_run(format!("{}: {e}", file.display()), "name another directory with --dir")
    })?;
    output::print(&format!("\nKept: {} and a record of each run beside it.\n", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn introduction(style: Style) -> String {
    let mut out = format!("{}\n\n", style.paint(Colour::Bold, "weir demo"));
    text::hanging(
        &mut out,
        "",
        &format!(
            "An origin on this machine takes about 100 ms for each answer. {CALLERS} callers each want one answer after \
             another. What differs is how they share connections."
        ),
    );
    out
}

/// Runs one scene as a process of its own, which shows its progress on this terminal.
fn play(args: &DemoArgs, scene: &'static Scene, url: &str) -> Result<Played, Stop> {
    let file = args.dir.join(format!("{}.json", scene.id));
    let mut flags: Vec<String> = vec!["run".to_owned(), "-c".to_owned(), CALLERS.to_string()];
    flags.extend(["-z".to_owned(), format!("{}s", args.duration.as_secs_f64())]);
    flags.extend(scene.flags.iter().map(|flag| (*flag).to_owned()));
    flags.push(url.to_owned());
    let command = format!("weir {}", flags.join(" "));

    let mut child = own_binary()?;
    child.args(&flags).arg("-o").arg(&file).stdin(Stdio::null()).stdout(Stdio::null());
    if args.quiet {
        child.arg("--quiet");
    }
    if args.no_color {
        child.arg("--no-color");
    }
    let status =
        child.status().map_err(|e| Stop::could_not_run(format!("cannot start `{command}`: {e}"), ""))?;
    match status.code().map(u8::try_from) {
        Some(Ok(exit::OK | exit::INVALID | exit::INTERRUPTED)) => {}
        _ => {
            return Err(Stop::could_not_run(
                format!("`{command}` ended with {status}"),
                "its own message is above",
            ));
        }
    }
    Ok(Played { scene, command, record: read_record(&file)? })
}

fn read_record(file: &Path) -> Result<Record, Stop> {
    let fail =
        |what: String| Stop::could_not_run(format!("{}: {what}", file.display()), "the run left no record");
    let text = std::fs::read_to_string(file).map_err(|e| fail(e.to_string()))?;
    serde_json::from_str(&text).map_err(|e| fail(e.to_string()))
}

fn own_binary() -> Result<Command, Stop> {
    let path: PathBuf = std::env::current_exe()
        .map_err(|e| Stop::could_not_run(format!("cannot find the program itself: {e}"), ""))?;
    Ok(Command::new(path))
}

/// An origin in a process of its own. It ends when its standard input does, so it never outlives the demo.
struct OriginChild {
    child: Child,
    stdin: Option<ChildStdin>,
    url: String,
}

impl OriginChild {
    fn start() -> Result<OriginChild, Stop> {
        let fail = |what: String| {
            Stop::could_not_run(format!("the origin did not start: {what}"), "its own message is above")
        };
        let mut child = own_binary()?
            .args([
                "origin",
                "--http",
                "127.0.0.1:0",
                "--latency",
                LATENCY,
                "--format",
                "json",
                "--with-parent",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C is for the run; the origin must be there for the answers that it waits for.
            .process_group(0)
            .spawn()
            .map_err(|e| fail(e.to_string()))?;
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).map_err(|e| fail(e.to_string()))?;
        let ready: serde_json::Value =
            serde_json::from_str(&line).map_err(|_| fail("it said nothing".to_owned()))?;
        let url = ready["http"][0].as_str().ok_or_else(|| fail(format!("it said `{}`", line.trim())))?;
        Ok(OriginChild { stdin: child.stdin.take(), url: format!("{url}/"), child })
    }

    fn stop(mut self) -> Result<(), Stop> {
        self.end().map_err(|e| Stop::could_not_run(format!("the origin did not end: {e}"), ""))
    }

    fn end(&mut self) -> std::io::Result<()> {
        drop(self.stdin.take());
        self.child.wait().map(|_| ())
    }
}

impl Drop for OriginChild {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
