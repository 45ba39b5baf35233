//! Progress on stderr, only where stderr is a terminal: stage, bytes, rate and time left.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::RefCell;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tensilo::Result;
use tensilo::core::{CancelFlag, Monitor, Progress};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_millis(300);

/// A [`Monitor`] that draws a bar and heeds Ctrl-C.
#[derive(Debug)]
pub struct Bar {
    cancel: CancelFlag,
    terminal: bool,
    begun: Instant,
    drawn: RefCell<Option<(&'static str, ProgressBar)>>,
}

impl Bar {
    /// A bar that draws nothing yet.
    pub fn new(cancel: CancelFlag) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { cancel, terminal, begun: Instant::now(), drawn: RefCell::new(None) }
    }

    fn draw(&self, progress: &Progress) {
        let mut drawn = self.drawn.borrow_mut();
        let same = drawn.as_ref().is_some_and(|(stage, _)| *stage == progress.stage);
        if !same {
            if let Some((_, old)) = drawn.take() {
                old.finish_and_clear();
            }
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(style(progress.total > 0));
            bar.set_message(progress.stage);
            *drawn = Some((progress.stage, bar));
        }
        if let Some((_, bar)) = drawn.as_ref() {
            if progress.total > 0 {
                bar.set_length(progress.total);
            }
            bar.set_position(progress.done);
        }
    }
}

fn style(known: bool) -> ProgressStyle {
    let template = if known {
        "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta} left"
    } else {
        "{spinner} {msg} {human_pos}"
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

impl Monitor for Bar {
    fn poll(&self, progress: &Progress) -> Result<()> {
        self.cancel.poll(progress)?;
        if self.terminal && self.begun.elapsed() >= PATIENCE {
            self.draw(progress);
        }
        Ok(())
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some((_, bar)) = self.drawn.borrow_mut().take() {
            bar.finish_and_clear();
        }
    }
}

/// A [`Bar`] that several threads may ask; whoever finds another one asking goes on.
#[derive(Debug)]
pub struct SharedBar {
    cancel: CancelFlag,
    bar: Mutex<Bar>,
}

impl SharedBar {
    /// Shares a bar.
    pub fn new(bar: Bar) -> Self {
        Self { cancel: bar.cancel.clone(), bar: Mutex::new(bar) }
    }
}

impl Monitor for SharedBar {
    fn poll(&self, progress: &Progress) -> Result<()> {
        match self.bar.try_lock() {
            Ok(bar) => bar.poll(progress),
            Err(_) => self.cancel.poll(progress),
        }
    }
}
