// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the demo prints. Plain text that only ever grows, so that it reads well on a serial line
//! and in a log.

use std::io::{stdout, Write};

const STEPS: u64 = 40;

/// Prints a heading.
pub fn heading(text: &str) {
    println!("\n{text}");
}

/// Prints what the Rust program has to say.
pub fn say(text: &str) {
    println!("  Rust {text}");
}

/// A line that fills up while frames are handed over.
pub struct Progress {
    frames: u64,
}

impl Progress {
    /// Begins the line.
    pub fn begin(frames: u64) -> Self {
        print!("  [");
        flush();
        Self { frames }
    }

    /// Frame number `frame`, counted from 1, is done.
    pub fn advance(&self, frame: u64) {
        let steps = |frames| frames * STEPS / self.frames;
        for _ in steps(frame - 1)..steps(frame) {
            print!("#");
            flush();
        }
    }

    /// Ends the line.
    pub fn end(self) {
        println!("] {} frames, all complete and in order", self.frames);
    }
}

/// One line of the final table.
pub struct Row {
    /// Way of waiting.
    pub name: &'static str,
    /// Sorted latencies of the frames.
    pub latencies: Vec<u64>,
}

/// Prints the final table.
pub fn table(rows: &[Row]) {
    heading("From the signal in one program until the other has the frame:");
    println!(
        "  {:<24}{:>9}{:>13}{:>13}",
        "way of waiting", "frames", "median", "p99"
    );
    for row in rows {
        let count = row.latencies.len();
        let at = |percent: usize| row.latencies[(count - 1) * percent / 100] as f64 / 1000.0;
        println!(
            "  {:<24}{count:>9}{:>10.1} us{:>10.1} us",
            row.name,
            at(50),
            at(99)
        );
    }
}

fn flush() {
    // Progress is an extra: a closed output shows at the next line.
    let _ = stdout().flush();
}
