//! What the demo prints and keeps.

use std::fmt::Write;

use weir_model::record::Record;
use weir_model::units::{format_count, format_ms, format_rate};

use super::{Played, conclusion};
use crate::style::{Colour, Style};
use crate::text;

/// A scene's key figures and its phases.
pub fn scene(number: usize, played: &Played, style: Style) -> String {
    let record = &played.record;
    let title = style.paint(Colour::Bold, &format!("{number}. {}", played.scene.title));
    let command = style.paint(Colour::Dim, &played.command);
    let mut out = format!("\n{title}\n   {command}\n\n{}\n", text::phases(record, style));
    text::hanging(&mut out, "  ", &key_figures(record));
    if let Some(headline) = text::headline(record) {
        text::hanging(&mut out, "  ", &headline);
    }
    out
}

fn key_figures(record: &Record) -> String {
    let failed = match record.totals.errors {
        0 => String::new(),
        n => format!(", {} failed", format_count(n)),
    };
    format!(
        "{} requests/s{failed}, {} connections opened, verdict {}.",
        format_rate(record.totals.rate),
        format_count(record.totals.conns_opened),
        record.verdict.status.name()
    )
}

/// Times are medians, except for the response's p99.
const COLUMNS: [&str; 7] = ["", "rate", "wait", "server", "response", "p99", "opened"];

fn row(played: &Played) -> [String; 7] {
    let Record { totals, latency, phases, .. } = &played.record;
    [
        played.scene.id.to_owned(),
        format!("{}/s", format_rate(totals.rate)),
        format_ms(phases.wait.p50),
        format_ms(phases.server.p50),
        format_ms(latency.response.p50),
        format_ms(latency.response.p99),
        format_count(totals.conns_opened),
    ]
}

/// The table of all scenes, and what it says.
pub fn comparison(played: &[Played], style: Style) -> String {
    let aligned = |cells: [&str; 7]| {
        let [pool, rest @ ..] = cells;
        let rest: String = rest.iter().map(|cell| format!("{cell:>11}")).collect();
        format!("  {pool:<12}{rest}")
    };
    let mut out =
        format!("\n{}\n", style.paint(Colour::Bold, "Side by side: medians, and the p99 of the response"));
    writeln!(out, "{}", style.paint(Colour::Dim, &aligned(COLUMNS))).expect("a string takes every write");
    for one in played {
        let cells = row(one);
        let cells = std::array::from_fn(|i| cells[i].as_str());
        writeln!(out, "{}", aligned(cells)).expect("a string takes every write");
    }
    writeln!(out, "\n{}", style.paint(Colour::Bold, "What it says")).expect("a string takes every write");
    for sentence in concluded(played) {
        text::hanging(&mut out, "  - ", &sentence);
    }
    out
}

fn concluded(played: &[Played]) -> Vec<String> {
    match played {
        [narrow, wide, fresh] => conclusion::sentences(&narrow.record, &wide.record, &fresh.record),
        _ => Vec::new(),
    }
}

pub fn markdown(played: &[Played]) -> String {
    let mut out = "# weir demo\n\n".to_owned();
    writeln!(out, "| {} |", COLUMNS.join(" | ")).expect("a string takes every write");
    writeln!(out, "|---|{}", "---:|".repeat(COLUMNS.len() - 1)).expect("a string takes every write");
    for one in played {
        writeln!(out, "| {} |", row(one).join(" | ")).expect("a string takes every write");
    }
    out.push('\n');
    for sentence in concluded(played) {
        writeln!(out, "- {sentence}").expect("a string takes every write");
    }
    for one in played {
        write!(out, "\n## {}\n\n`{}`, record in `{}.json`\n", one.scene.title, one.command, one.scene.id)
            .expect("a string takes every write");
        let report = text::render(&one.record, Style::Plain);
        write!(out, "\n```text\n{report}```\n").expect("a string takes every write");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::SCENES;
    use super::*;
    use crate::fixture;

    fn played() -> Vec<Played> {
        let wide = |nth: u64| {
            let mut sample = fixture::sample(nth);
            let waited = sample.acquired - sample.started - sample.dial.total();
            sample.intended += waited;
            sample.started = sample.intended;
            sample
        };
        let mut wide_plan = fixture::plan();
        wide_plan.pool.max_conns = Some(400);
        let mut fresh = fixture::record_of(wide_plan.clone(), (0..4_000).map(wide), &[]);
        fresh.totals.conns_opened = 4_000;
        fresh.totals.cpu_s = 0.4;
        let records = [fixture::record(), fixture::record_of(wide_plan, (0..4_000).map(wide), &[]), fresh];
        SCENES
            .iter()
            .zip(records)
            .map(|(scene, record)| Played { scene, command: format!("weir run {}", scene.id), record })
            .collect()
    }

    #[test]
    fn the_comparison_names_the_bound_and_the_queue() {
        insta::assert_snapshot!(comparison(&played(), Style::Plain));
    }

    #[test]
    fn a_scene_shows_its_phases_and_its_headline() {
        insta::assert_snapshot!(scene(1, &played()[0], Style::Plain));
    }

    #[test]
    fn the_kept_report_holds_every_run() {
        let report = markdown(&played());
        for scene in &SCENES {
            assert!(report.contains(&format!("`{}.json`", scene.id)), "{}", scene.id);
        }
        assert_eq!(report.matches("```text").count(), SCENES.len());
    }
}
