// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `opendxg`.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::process::{self, ExitCode};
use std::time::{Duration, Instant};

use clap::Parser;
use opendxg::node::Node;
use opendxg::Luid;
use opendxg_cli::args::{Args, Command, Top, TraceArgs};
use opendxg_cli::capture::{self, capture, exit_code};
use opendxg_cli::control::{self, Action};
use opendxg_cli::proc::DeviceNumber;
use opendxg_cli::reports::Report;
use opendxg_cli::top::{self, Reading};
use opendxg_cli::world::{self, World};
use opendxg_cli::{debugfs, proc, show};
use opendxg_timeline::{perfetto, picture, Timeline};

/// Why there is no answer. Wrong arguments are status 2.
enum Failure {
    /// Status 1.
    Error(String),
    /// Status 3.
    NoDriver(String),
}

fn main() -> ExitCode {
    let args = Args::parse();
    let command = args.command.clone().unwrap_or_default();
    let answer = match (&command, command.action()) {
        (_, Some((luid, action))) => act(luid, action).map(|()| 0),
        (Command::Top(how), _) => top(&args, *how).map(|()| 0),
        (Command::Waiters(how), _) if how.watch => {
            let delay = Duration::from_secs_f64(how.delay);
            let first = Duration::ZERO;
            again(&args, how.count, [first, delay], || run(&args, &command)).map(|()| 0)
        }
        (Command::Trace(what), _) => trace(what),
        _ => run(&args, &command).and_then(|text| print(&text).map(|_| 0)),
    };
    let (why, status) = match answer {
        Ok(status) => return ExitCode::from(status),
        Err(Failure::Error(why)) => (why, 1),
        Err(Failure::NoDriver(why)) => (why, 3),
    };
    eprintln!("opendxg: {why}");
    ExitCode::from(status)
}

/// Returns whether anybody still reads.
fn print(text: &str) -> Result<bool, Failure> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Ok(()) => Ok(true),
        // The reader may have seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::Error(format!("standard output: {error}"))),
    }
}

fn run(args: &Args, command: &Command) -> Result<String, Failure> {
    let node = Node::from_env();
    let node = node.path();
    let live = args.proc == Path::new("/proc");
    let own = if live { own_view(node)? } else { None };
    let scan = proc::scan(&args.proc, DeviceNumber::of(node))
        .map_err(|error| Failure::Error(format!("{}: {error}", args.proc.display())))?;
    let mut world = world::build(scan, own);
    if let Some(mount) = mount(args) {
        match debugfs::totals(mount) {
            Ok(totals) => world.totals = totals,
            Err(error) => world.no_totals = Some(format!("{}: {error}", mount.display())),
        }
        for adapter in &mut world.adapters {
            // Without them, the reason stands beside the totals.
            adapter.counts = debugfs::adapter(mount, &adapter.luid).unwrap_or_default();
        }
    }
    if matches!(command, Command::Engines | Command::Queues { .. }) {
        world.reading = reading(args)?;
    }
    if let Command::Waiters(_) = command {
        world.mention(|pid, ago_ns| proc::life(&args.proc, pid, ago_ns));
    }
    if let Command::Report { luid } = command {
        world.reports = reports(args, *luid)?;
    }
    show::answer(&world, command, args.json).map_err(Failure::Error)
}

/// Where debugfs is. A made-up /proc comes with a made-up one, or without.
fn mount(args: &Args) -> Option<&Path> {
    let live = args.proc == Path::new("/proc");
    let mount = args.debugfs.as_deref();
    mount.or(live.then_some(Path::new(debugfs::MOUNT)))
}

/// The engines and queues of all adapters.
fn reading(args: &Args) -> Result<Reading, Failure> {
    from_debugfs(args, debugfs::reading)
}

/// What went wrong, on all adapters or on one.
fn reports(args: &Args, luid: Option<Luid>) -> Result<Reports, Failure> {
    let reports = from_debugfs(args, |mount| debugfs::reports(mount, luid))?;
    match luid {
        Some(luid) if reports.is_empty() => Err(Failure::Error(format!("no adapter {luid}"))),
        _ => Ok(reports),
    }
}

/// By LUID.
type Reports = BTreeMap<String, Vec<Report>>;

fn from_debugfs<T>(
    args: &Args,
    read: impl FnOnce(&Path) -> std::io::Result<T>,
) -> Result<T, Failure> {
    let mount = mount(args).ok_or_else(|| Failure::Error("no debugfs".into()))?;
    read(mount).map_err(|error| {
        let node = Node::from_env();
        match DeviceNumber::of(node.path()) {
            Some(_) => Failure::Error(format!("{}: {error}: are you root?", mount.display())),
            None => Failure::NoDriver(format!(
                "{}: is the module opendxg loaded?",
                node.path().display()
            )),
        }
    })
}

/// Does something to an adapter, and prints nothing.
fn act(luid: Luid, action: Action) -> Result<(), Failure> {
    control::act(luid, action).map_err(|failure| match failure {
        control::Failure::Refused(why) => Failure::Error(why),
        control::Failure::NoDriver(why) => Failure::NoDriver(format!(
            "{}: {why}: is the module opendxg loaded?",
            Node::from_env().path().display()
        )),
    })
}

/// Runs a command and draws what it did; the status is that of the command.
fn trace(what: &TraceArgs) -> Result<u8, Failure> {
    let about =
        |path: &Path, error: &dyn Display| Failure::Error(format!("{}: {error}", path.display()));
    // A file that cannot be written is told before the command runs.
    let create = |path: &Path| File::create(path).map_err(|error| about(path, &error));
    let mut file = create(&what.output)?;
    let picture = what.svg.as_deref().map(|path| Ok((path, create(path)?)));
    let picture = picture.transpose()?;

    // PANIC: the command line has at least one word there.
    let mut command = process::Command::new(&what.command[0]);
    command.args(&what.command[1..]);
    let captured = capture(&what.tracing, what.buffer, &mut command).map_err(|why| match why {
        capture::Failure::NoDriver(why) => Failure::NoDriver(why),
        capture::Failure::Error(why) => Failure::Error(why),
    })?;
    let timeline = Timeline::new(&captured.trace);
    let written = file.write_all(&perfetto::trace(&timeline));
    written.map_err(|error| about(&what.output, &error))?;
    if let Some((path, mut file)) = picture {
        let svg = picture::draw(&timeline).map_err(|error| about(path, &error))?;
        let written = file.write_all(svg.as_bytes());
        written.map_err(|error| about(path, &error))?;
    }
    if timeline.lost > 0 {
        let count = timeline.lost;
        eprintln!("opendxg: {count} events were lost: make room for more with --buffer");
    }
    if captured.trace.strange > 0 {
        let count = captured.trace.strange;
        eprintln!("opendxg: {count} lines of the trace are not understood and are missing");
    }
    Ok(exit_code(captured.status))
}

/// Moves the cursor of a terminal to its upper left corner and erases what is below.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Shows again and again how busy engines are.
fn top(args: &Args, how: Top) -> Result<(), Failure> {
    let (mut begin, mut before) = (Instant::now(), reading(args)?);
    again(args, how.times(), [how.time(); 2], || {
        let (now, after) = (Instant::now(), reading(args)?);
        let command = |pid| proc::command(&args.proc, pid);
        let world = World {
            loads: top::loads(&before, &after, now - begin, command),
            ..World::default()
        };
        (begin, before) = (now, after);
        show::answer(&world, &Command::Top(how), args.json).map_err(Failure::Error)
    })
}

/// Shows something so many times, or for ever, after these times: the first one and all others.
fn again(
    args: &Args,
    times: Option<u64>,
    [first, other]: [Duration; 2],
    mut show: impl FnMut() -> Result<String, Failure>,
) -> Result<(), Failure> {
    let is_screen = std::io::stdout().is_terminal() && !args.json && times != Some(1);
    let mut shown = 0;
    while times.is_none_or(|most| shown < most) {
        std::thread::sleep(if shown == 0 { first } else { other });
        let text = show()?;
        let is_next_table = shown > 0 && !args.json;
        let is_read = match (is_screen, is_next_table) {
            (true, _) => print(&format!("{CLEAR}{text}"))?,
            (false, true) => print(&format!("\n{text}"))?,
            (false, false) => print(&text)?,
        };
        if !is_read {
            break;
        }
        shown += 1;
    }
    Ok(())
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
