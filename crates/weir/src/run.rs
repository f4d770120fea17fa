//! `weir run`: flags to a plan, a plan to a run, a run to a record, a record to text, files and an exit status.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use weir_load::{Finished, Running};
use weir_model::gates::Gate;
use weir_model::plan::Plan;
use weir_model::record::{Header, Record};
use weir_model::verdict::Status;

use crate::cli::{Format, RunArgs};
use crate::error::{Stop, exit};
use crate::plan_from::{Inputs, plan_from};
use crate::progress::Progress;
use crate::store::{RecordFile, SampleFile};
use crate::style::Style;
use crate::{host, output, signals, text};

/// A partial record is written this often: rendering eleven histograms takes milliseconds, which the load must not feel.
const SECONDS_BETWEEN_WRITES: u32 = 5;

pub fn run(args: &RunArgs) -> Result<ExitCode, Stop> {
    refuse_bad_files(args)?;
    let inputs = Inputs { requests: read_requests(args)?, seed: random_seed() };
    let plan = plan_from(args, &inputs)?;
    let gates = gates_of(&plan);
    host::check_files(&plan, host::raise_files_limit())?;
    host::check_local_addrs(&plan)?;
    let mut files = Files::open(args)?;

    let measured = measure(args, &plan, &gates, &mut files)?;
    let kept = files.close(&measured.record);
    print(args, &measured.record)?;
    kept?;
    match measured.trouble.or_else(|| nothing_succeeded(&measured.record)) {
        Some(trouble) => Err(trouble),
        None => Ok(ExitCode::from(exit_status(&measured.record))),
    }
}

fn nothing_succeeded(record: &Record) -> Option<Stop> {
    if exit_status(record) != exit::COULD_NOT_RUN {
        return None;
    }
    let (what, advice) = text::commonest_error(record)?;
    let hint = advice.unwrap_or_else(|| what_to_check(record).to_owned());
    Some(Stop::could_not_run(format!("no request succeeded: {what}"), hint))
}

fn what_to_check(record: &Record) -> &'static str {
    match &record.plan.net.unix_socket {
        _ if !record.status.is_empty() => {
            "the server answers: are path, method, headers and body what it expects?"
        }
        Some(_) => "does the server run, and is the path of its socket right?",
        None => "does the server run, and are host and port right?",
    }
}

/// A run that is over.
struct Measured {
    record: Record,
    /// A file that could not be written while the run went on, or why the run ended before its time.
    trouble: Option<Stop>,
}

/// What the run leaves behind, opened before it starts.
struct Files {
    record: Option<RecordFile>,
    samples: Option<SampleFile>,
}

impl Files {
    fn open(args: &RunArgs) -> Result<Files, Stop> {
        Ok(Files {
            record: args.output.as_deref().map(RecordFile::open).transpose()?,
            samples: args.samples.as_deref().map(SampleFile::create).transpose()?,
        })
    }

    fn close(self, record: &Record) -> Result<(), Stop> {
        if let Some(file) = &self.record {
            file.write(record)?;
        }
        self.samples.map_or(Ok(()), SampleFile::finish)
    }
}

fn measure(args: &RunArgs, plan: &Plan, gates: &[Gate], files: &mut Files) -> Result<Measured, Stop> {
    let started_at = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
    let header = |interrupted, io: &str| Header {
        started_at: started_at.clone(),
        interrupted,
        plan: plan.clone(),
        host: host::facts(io),
    };
    let mut running = Running::start(plan, files.samples.is_some())?;
    let stopper = running.stopper();
    signals::on_stop(move || stopper.stop())?;

    let mut progress = Progress::new(plan, args.quiet, args.no_color);
    progress.begin();
    let mut trouble = None;
    let mut seconds = 0;
    while let Some(update) = running.next_update() {
        let written = files.samples.as_mut().map(|file| file.write(&update.samples, plan.warmup));
        keep_first(&mut trouble, written);
        let Some(point) = update.point else { continue };
        progress.show(&point);
        seconds += 1;
        if seconds % SECONDS_BETWEEN_WRITES == 0 {
            let partial = files.record.as_ref().filter(|file| file.keeps_partial());
            let written =
                partial.map(|file| file.write(&Record::build(header(true, ""), running.timeline(), gates)));
            keep_first(&mut trouble, written);
        }
    }
    progress.end();
    let (timeline, Finished { io, interrupted, gave_up }) = running.finish();
    let record = Record::build(header(interrupted, io.trim_start_matches("io_")), &timeline, gates);
    Ok(Measured { record, trouble: gave_up.map(unreachable).or(trouble) })
}

fn unreachable(why: String) -> Stop {
    Stop::could_not_run(why, "does the server run, and are host and port right?")
}

fn keep_first(lost: &mut Option<Stop>, written: Option<Result<(), Stop>>) {
    if let Some(Err(stop)) = written {
        lost.get_or_insert(stop);
    }
}

fn print(args: &RunArgs, record: &Record) -> Result<(), Stop> {
    let stdout = std::io::stdout();
    let shown = match args.format {
        Format::Text => text::render(record, Style::of(&stdout, args.no_color)),
        Format::Json => output::json(record),
    };
    output::print(&shown)
}

/// The worst first: what was interrupted or could not run says nothing about gates.
pub fn exit_status(record: &Record) -> u8 {
    match record {
        r if r.interrupted => exit::INTERRUPTED,
        r if r.totals.ok == 0 => exit::COULD_NOT_RUN,
        r if r.verdict.status == Status::Invalid => exit::INVALID,
        r if !r.gates_ok() => exit::GATE_FAILED,
        _ => exit::OK,
    }
}

fn gates_of(plan: &Plan) -> Vec<Gate> {
    plan.gates.iter().map(|gate| Gate::parse(gate).expect("the plan's gates were read before")).collect()
}

/// `-o` is a format in hey and a file here.
fn refuse_bad_files(args: &RunArgs) -> Result<(), Stop> {
    let path = args.output.as_deref().and_then(Path::to_str).unwrap_or_default();
    match path {
        "json" | "csv" | "text" => Err(Stop::usage(
            format!("`-o {path}` names a file, and looks like a format"),
            format!(
                "--format json prints JSON, --samples FILE writes CSV; -o ./{path} is a file of that name"
            ),
        )),
        _ if args.output.is_some() && args.output == args.samples => Err(Stop::usage(
            "`-o` contradicts `--samples`: both name one file",
            "give each a file of its own",
        )),
        _ => Ok(()),
    }
}

fn read_requests(args: &RunArgs) -> Result<Option<String>, Stop> {
    let Some(path) = &args.requests else { return Ok(None) };
    let read = if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    let fail = |e| {
        Stop::could_not_run(
            format!("--requests {}: {e}", path.display()),
            "a line is `METHOD URL` or a JSON object",
        )
    };
    read.map(Some).map_err(fail)
}

/// 53 bits, which JSON readers that know only doubles keep. The standard library's hasher is seeded by the system.
pub fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish() >> 11
}
