//! Ctrl-C and SIGTERM: the first asks for an end, the second for an end at once, the third ends the process.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::{Stop, exit};

/// Calls `stop` at the first and at the second signal, on a thread of its own.
pub fn on_stop(stop: impl Fn() + Send + 'static) -> Result<(), Stop> {
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|e| Stop::could_not_run(format!("cannot listen for signals: {e}"), ""))?;
    std::thread::spawn(move || {
        for (nth, _) in signals.forever().enumerate() {
            if nth >= 2 {
                std::process::exit(i32::from(exit::INTERRUPTED));
            }
            stop();
        }
    });
    Ok(())
}
