//! Files that a run leaves behind: the record, and a line per request. Both are opened before anything is sent, so that
//! a path that cannot be written is known at once.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use weir_model::record::Record;
use weir_model::sample::{Phase, Sample};
use weir_model::units::Nanos;

use crate::error::Stop;

/// Where the record goes. A regular file is replaced in one step, so that a reader sees a whole record or none.
#[derive(Debug)]
pub struct RecordFile {
    path: PathBuf,
    /// `None` for a pipe or a device, which is written to as it is.
    temporary: Option<PathBuf>,
}

impl RecordFile {
    pub fn open(path: &Path) -> Result<RecordFile, Stop> {
        let fail = |e: io::Error| {
            Stop::could_not_run(
                format!("-o {}: {e}", path.display()),
                "name a file in a directory that can be written to",
            )
        };
        let is_special = path.metadata().is_ok_and(|there| !there.is_file());
        if is_special {
            File::options().write(true).open(path).map_err(fail)?;
            return Ok(RecordFile { path: path.to_owned(), temporary: None });
        }
        let temporary = beside(path);
        File::create(&temporary).map_err(fail)?;
        Ok(RecordFile { path: path.to_owned(), temporary: Some(temporary) })
    }

    /// Only files that can be replaced are worth a record that is not the last one.
    pub fn keeps_partial(&self) -> bool {
        self.temporary.is_some()
    }

    pub fn write(&self, record: &Record) -> Result<(), Stop> {
        let fail = |e: io::Error| {
            Stop::could_not_run(format!("-o {}: {e}", self.path.display()), "is the disk full?")
        };
        let target = self.temporary.as_ref().unwrap_or(&self.path);
        write_json(target, record).map_err(fail)?;
        match &self.temporary {
            Some(temporary) => std::fs::rename(temporary, &self.path).map_err(fail),
            None => Ok(()),
        }
    }
}

impl Drop for RecordFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// A name in the same directory, since a rename does not cross file systems.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}

fn write_json(path: &Path, record: &Record) -> io::Result<()> {
    let mut out = BufWriter::new(File::options().write(true).create(true).truncate(true).open(path)?);
    serde_json::to_writer_pretty(&mut out, record)?;
    writeln!(out)?;
    out.flush()
}

/// CSV, one request a line, times in nanoseconds since the run's zero.
pub struct SampleFile {
    path: PathBuf,
    out: BufWriter<File>,
}

const SAMPLE_COLUMNS: &str = "request,warmup,intended_ns,started_ns,acquired_ns,sent_ns,first_byte_ns,done_ns,\
lag_ns,wait_ns,dns_ns,connect_ns,tls_ns,send_ns,server_ns,receive_ns,outcome,status,reused,retries,bytes_in,bytes_out";

impl SampleFile {
    pub fn create(path: &Path) -> Result<SampleFile, Stop> {
        let opened = File::create(path).map(BufWriter::new).and_then(|mut out| {
            writeln!(out, "{SAMPLE_COLUMNS}")?;
            Ok(out)
        });
        let out = opened.map_err(|e| {
            Stop::could_not_run(
                format!("--samples {}: {e}", path.display()),
                "name a file in a directory that can be written to",
            )
        })?;
        Ok(SampleFile { path: path.to_owned(), out })
    }

    /// Requests that were intended before the end of the warm-up are marked.
    pub fn write(&mut self, samples: &[Sample], warmup: Nanos) -> Result<(), Stop> {
        let written = samples
            .iter()
            .try_for_each(|sample| write_sample(&mut self.out, sample, sample.intended < warmup));
        written.map_err(|e| self.failed(&e))
    }

    pub fn finish(mut self) -> Result<(), Stop> {
        self.out.flush().map_err(|e| self.failed(&e))
    }

    fn failed(&self, error: &io::Error) -> Stop {
        Stop::could_not_run(format!("--samples {}: {error}", self.path.display()), "is the disk full?")
    }
}

fn write_sample(out: &mut impl Write, s: &Sample, warmup: bool) -> io::Result<()> {
    write!(out, "{},{}", s.request, u8::from(warmup))?;
    for moment in [s.intended, s.started, s.acquired, s.sent, s.first_byte, s.done] {
        write!(out, ",{}", moment.0)?;
    }
    debug_assert_eq!(s.phases().len(), Phase::ALL.len());
    for span in s.phases() {
        write!(out, ",{}", span.0)?;
    }
    match s.outcome {
        Ok(()) => write!(out, ",ok")?,
        Err(failure) => write!(out, ",{failure}")?,
    }
    writeln!(out, ",{},{},{},{},{}", s.status, u8::from(s.reused), s.retries, s.bytes_in, s.bytes_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_sample_line_has_as_many_values_as_there_are_columns() {
        let mut out = Vec::new();
        write_sample(&mut out, &fixture::sample(0), false).unwrap();
        let line = String::from_utf8(out).unwrap();
        assert_eq!(line.split(',').count(), SAMPLE_COLUMNS.split(',').count());
    }

    #[test]
    fn a_record_file_is_replaced_whole_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.json");
        let record = fixture::record();
        let file = RecordFile::open(&path).unwrap();
        assert!(!path.exists(), "nothing is there before there is a record");
        file.write(&record).unwrap();
        file.write(&record).unwrap();
        drop(file);
        let read: Record = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(read, record);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_directory_that_is_not_there_is_known_before_the_run() {
        let dir = tempfile::tempdir().unwrap();
        let stop = RecordFile::open(&dir.path().join("no/such/run.json")).unwrap_err();
        assert_eq!(stop.status, crate::error::exit::COULD_NOT_RUN);
    }
}
