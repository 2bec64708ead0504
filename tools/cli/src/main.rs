// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `opendxg`.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use opendxg::node::Node;
use opendxg_cli::args::Args;
use opendxg_cli::proc::DeviceNumber;
use opendxg_cli::{debugfs, proc, show, world};

/// Why there is no answer. Wrong arguments are status 2.
enum Failure {
    /// Status 1.
    Error(String),
    /// Status 3.
    NoDriver(String),
}

fn main() -> ExitCode {
    let answer = run(&Args::parse()).and_then(|text| print(&text));
    let (why, status) = match answer {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Error(why)) => (why, 1),
        Err(Failure::NoDriver(why)) => (why, 3),
    };
    eprintln!("opendxg: {why}");
    ExitCode::from(status)
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        // The reader may have seen enough.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Error(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

fn run(args: &Args) -> Result<String, Failure> {
    let node = Node::from_env();
    let node = node.path();
    let live = args.proc == Path::new("/proc");
    let own = if live { own_view(node)? } else { None };
    let scan = proc::scan(&args.proc, DeviceNumber::of(node))
        .map_err(|error| Failure::Error(format!("{}: {error}", args.proc.display())))?;
    let mut world = world::build(scan, own);
    // A made-up /proc comes with a made-up debugfs, or without one.
    let mount = args.debugfs.as_deref();
    if let Some(mount) = mount.or(live.then_some(Path::new(debugfs::MOUNT))) {
        match debugfs::totals(mount) {
            Ok(totals) => world.totals = totals,
            Err(error) => world.no_totals = Some(format!("{}: {error}", mount.display())),
        }
        for adapter in &mut world.adapters {
            // Without them, the reason stands beside the totals.
            adapter.counts = debugfs::adapter(mount, &adapter.luid).unwrap_or_default();
        }
    }
    show::answer(&world, args.command.unwrap_or_default(), args.json).map_err(Failure::Error)
}

/// A node that may not be opened hides only the adapters that no visible process uses.
fn own_view(node: &Path) -> Result<Option<opendxg_cli::fdinfo::Descriptor>, Failure> {
    match proc::own_view(node) {
        Ok(view) => Ok(Some(view)),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Failure::NoDriver(format!(
            "{}: {error}: is the module opendxg loaded?",
            node.display()
        ))),
        Err(error) => {
            eprintln!(
                "opendxg: {}: {error}: adapters may be missing",
                node.display()
            );
            Ok(None)
        }
    }
}
