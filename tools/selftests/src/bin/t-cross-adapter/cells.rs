// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happens in which order when one adapter waits and another one signals (FEN-144 to FEN-158),
//! in one trace of the driver and of the calls of the KMDs.

use selftests::time::eventually;
use selftests::trace::{traced_all, Event};
use selftests::{ensure, ensure_eq, module, skip, Suite, TestResult};

use super::scene::{id_of, By, Side, VALUE};

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    let one = Pair::ONE;
    let (two_a, two_b) = (Pair::TWO_A, Pair::TWO_B);
    suite
        .test("FEN-144 the GPU waits, the other one signals", move || {
            both_orders(one, By::Packet, By::Packet)
        })
        .test("FEN-145 the GPU waits, a CPU signals there", move || {
            both_orders(one, By::Packet, By::Cpu)
        })
        .test("FEN-146 a CPU waits, the other GPU signals", move || {
            both_orders(one, By::Cpu, By::Packet)
        })
        .test("FEN-147 a CPU waits, a CPU signals there", move || {
            both_orders(one, By::Cpu, By::Cpu)
        })
        .test("FEN-148 a queue waits, a native GPU signals", move || {
            both_orders(two_a, By::Queue, By::Packet)
        })
        .test("FEN-149 a queue waits, a CPU signals there", move || {
            both_orders(two_a, By::Queue, By::Cpu)
        })
        .test("FEN-150 a CPU waits, a native GPU signals", move || {
            both_orders(two_a, By::Cpu, By::Packet)
        })
        .test("FEN-151 a CPU waits, a CPU signals natively", move || {
            both_orders(two_a, By::Cpu, By::Cpu)
        })
        .test("FEN-152 a native GPU waits, a queue signals", move || {
            both_orders(two_b, By::Packet, By::Queue)
        })
        .test("FEN-153 a native GPU waits, a CPU signals", move || {
            both_orders(two_b, By::Packet, By::Cpu)
        })
        .test("FEN-154 a CPU waits natively, a queue signals", move || {
            both_orders(two_b, By::Cpu, By::Queue)
        })
        .test("FEN-155 a CPU waits natively, a CPU signals", move || {
            both_orders(two_b, By::Cpu, By::Cpu)
        })
        .test("FEN-156 queues of an adapter that is native", move || {
            both_orders(one, By::Queue, By::Packet)?;
            both_orders(one, By::Packet, By::Queue)
        })
        .test("FEN-157 a GPU stores that knows nothing", stored)
        .test("FEN-138 FEN-140 FEN-158 three adapters", three)
}

/// Two adapters: who waits and who signals, and whether they have native fences. The first one that
/// has makes the fence, otherwise the one that signals.
#[derive(Clone, Copy)]
struct Pair {
    waits_natively: bool,
    signals_natively: bool,
}

impl Pair {
    const ONE: Self = Self {
        waits_natively: true,
        signals_natively: true,
    };
    const TWO_A: Self = Self {
        waits_natively: false,
        signals_natively: true,
    };
    const TWO_B: Self = Self {
        waits_natively: true,
        signals_natively: false,
    };

    /// Both of them.
    fn sides(self) -> TestResult<(Side, Side)> {
        let signals = Side::first("signals", self.signals_natively)?;
        let waits = signals.another("waits", self.waits_natively)?;
        Ok((waits, signals))
    }
}

// Numbers of `rust/ddi/verifier/entry.rs`.
const MONITORED_FENCE_SIGNALED: u64 = 33;
const CREATE_NATIVE_FENCE: u64 = 59;
const UPDATE_MONITORED_VALUES: u64 = 63;
const UPDATE_CURRENT_VALUES: u64 = 64;
const NATIVE_FENCE_SIGNALED: u64 = 65;

/// What was seen of a fence on two adapters.
struct Seen {
    log: Vec<Event>,
    /// What the KMDs call the fence: that of who signals, then that of who waits.
    signals: Option<u64>,
    waits: Option<u64>,
    /// What the driver calls it, and the queue that waits.
    fence: u64,
    queue: u64,
}

/// What has to come next.
type Step<'a> = (&'a str, &'a dyn Fn(&Event) -> bool);

impl Seen {
    fn new(log: Vec<Event>, pair: Pair) -> TestResult<Self> {
        let mut made = log
            .iter()
            .filter(|event| is_call(event, CREATE_NATIVE_FENCE))
            .map(|event| event.get("object"));
        // The one that signals makes the fence.
        let signals = pair.signals_natively.then(|| made.next()).flatten();
        let waits = pair.waits_natively.then(|| made.next()).flatten();
        ensure!(made.next().is_none(), "more native fences than adapters");
        ensure_eq!(signals.is_some(), pair.signals_natively);
        ensure_eq!(waits.is_some(), pair.waits_natively);
        let told = log.iter().find(|event| event.name == "propagate");
        let fence = told.map_or(0, |event| event.get("object"));
        let run = log.iter().find(|event| event.name == "run");
        let queue = run.map_or(0, |event| event.get("queue"));
        Ok(Self {
            log,
            signals,
            waits,
            fence,
            queue,
        })
    }

    /// Demands that these come one after the other, whatever is in between.
    fn in_order(&self, steps: &[Step<'_>]) -> TestResult {
        let mut rest = self.log.iter();
        for (what, is_it) in steps {
            ensure!(rest.any(is_it), "{what} does not follow in {:?}", self.log);
        }
        Ok(())
    }

    /// Whether the value is propagated before the queue that waits for it is done.
    fn is_told_first(&self) -> bool {
        let told = |event: &Event| event.name == "propagate" && event.get("value") == VALUE;
        let done = |event: &Event| event.name == "complete" && event.get("queue") == self.queue;
        let told = self.log.iter().position(told);
        // The first thing that is done has nothing to wait for.
        let done = self.log.iter().rposition(done);
        told < done
    }

    fn count(&self, is_it: impl Fn(&Event) -> bool) -> usize {
        self.log.iter().filter(|event| is_it(event)).count()
    }

    fn is_update(&self, event: &Event, fence: Option<u64>) -> bool {
        is_call(event, UPDATE_CURRENT_VALUES) && Some(event.get("object")) == fence
    }
}

fn is_call(event: &Event, kind: u64) -> bool {
    event.name == "kmd" && event.get("kind") == kind
}

/// One wait and one signal, in one trace.
fn seen(pair: Pair, wait: By, signal: By, wait_first: bool) -> TestResult<(Seen, [u64; 2])> {
    if module::parameter("verify_kmd")? != "Y" {
        skip!("the module is loaded without a verifier");
    }
    let mut ids = [0; 2];
    // They are there until the trace has ended.
    let mut kept = None;
    let log = traced_all(|| {
        let (waits, signals) = kept.insert(pair.sides()?);
        ids = [id_of(signals.luid()), id_of(waits.luid())];
        // The first thing that runs says which queue it is.
        waits.gpu.run(&opendxg::pm4::Pm4::new().nop(0))?;
        let before = waits.propagations();
        let pending = match wait_first {
            true => {
                let pending = waits.wait(wait, VALUE)?;
                signals.signal(signal, VALUE - 1)?;
                eventually("the first signal", || waits.propagations() > before)?;
                ensure!(!waits.has_ended(&pending), "{wait:?} ends too early");
                signals.signal(signal, VALUE)?;
                pending
            }
            false => {
                signals.signal(signal, VALUE)?;
                eventually("the signal", || waits.propagations() > before)?;
                waits.wait(wait, VALUE)?
            }
        };
        waits.ends(&pending)?;
        ensure_eq!([waits.fence().value(), signals.fence().value()], [VALUE; 2]);
        Ok(())
    })?;
    Ok((Seen::new(log, pair)?, ids))
}

fn both_orders(pair: Pair, wait: By, signal: By) -> TestResult {
    wait_first(pair, wait, signal)?;
    signal_first(pair, wait, signal)
}

/// The steps of a signal of a value up to where the other adapter is told.
fn tells(seen: &Seen, ids: [u64; 2], signal: By, value: u64, rest: &[Step<'_>]) -> TestResult {
    let interrupts = |event: &Event| {
        is_call(event, NATIVE_FENCE_SIGNALED) && Some(event.get("object")) == seen.signals
    };
    let updates = |event: &Event| seen.is_update(event, seen.signals);
    let stores = |event: &Event| event.is("signal", &[("object", seen.fence), ("value", value)]);
    let tells = |event: &Event| {
        let [from, to] = ids;
        let fields = [
            ("object", seen.fence),
            ("value", value),
            ("from", from),
            ("to", to),
        ];
        event.is("propagate", &fields)
    };
    let notes = |event: &Event| seen.is_update(event, seen.waits);
    let mut steps: Vec<Step<'_>> = Vec::new();
    match (signal, seen.signals) {
        (By::Packet, _) => steps.push(("isr.native", &interrupts)),
        (_, Some(_)) => steps.extend::<[Step<'_>; 2]>([("ucv", &updates), ("os.cv", &stores)]),
        (_, None) => steps.push(("os.cv", &stores)),
    }
    steps.push(("os.prop", &tells));
    if seen.waits.is_some() {
        steps.push(("ucv, note", &notes));
    }
    steps.extend(rest);
    seen.in_order(&steps)
}

/// Nothing happens more often than there were signals.
fn counts(seen: &Seen, ids: [u64; 2], signal: By, signals: usize) -> TestResult {
    let from = |event: &Event| event.name == "propagate" && event.get("from") == ids[0];
    ensure_eq!(seen.count(from), signals);
    // M21: nobody tells back. An adapter without native fences may do so after any commands of a
    // process that has the fence open.
    if seen.waits.is_some() {
        let stores = usize::from(signal != By::Packet && seen.signals.is_some());
        let updates = seen.count(|event| seen.is_update(event, seen.signals));
        ensure_eq!(updates, stores * signals);
        ensure_eq!(seen.count(|event| event.name == "propagate"), signals);
    }
    let notes = usize::from(seen.waits.is_some());
    ensure_eq!(
        seen.count(|event| seen.is_update(event, seen.waits)),
        notes * signals
    );
    // FEN-137: MonitoredValue is never updated.
    ensure_eq!(
        seen.count(|event| is_call(event, UPDATE_MONITORED_VALUES)),
        0
    );
    Ok(())
}

fn wait_first(pair: Pair, wait: By, signal: By) -> TestResult {
    let (mut seen, mut ids) = seen(pair, wait, signal, true)?;
    // An engine may look for the first signal so late that it finds the second one, which it was
    // not told of.
    for _ in 0..10 {
        if wait != By::Packet || seen.is_told_first() {
            break;
        }
        (seen, ids) = self::seen(pair, wait, signal, true)?;
    }
    let is_tracked = |event: &Event| {
        event.get("object") == seen.fence
            && event.get("value") == VALUE
            && match wait {
                By::Cpu => event.name == "wait",
                _ => event.name == "block" && event.get("queue") == seen.queue,
            }
    };
    let tracked = seen.log.iter().find(|event| is_tracked(event));
    ensure_eq!(tracked.is_some(), wait != By::Packet, "os.track");
    let waiter = tracked.map_or(0, |event| event.get("waiter"));
    let ends = |event: &Event| match wait {
        By::Packet | By::Store => event.name == "complete" && event.get("queue") == seen.queue,
        By::Queue => event.is("unblock", &[("queue", seen.queue)]),
        By::Cpu => event.is("wake", &[("waiter", waiter), ("outcome", 1)]),
    };
    tells(&seen, ids, signal, VALUE, &[("the end of the wait", &ends)])?;
    if wait != By::Packet {
        ensure_eq!(seen.count(ends), 1);
    }
    counts(&seen, ids, signal, 2)
}

/// The wait passes at once, and nothing but the signal is seen.
fn signal_first(pair: Pair, wait: By, signal: By) -> TestResult {
    let (seen, ids) = seen(pair, wait, signal, false)?;
    tells(&seen, ids, signal, VALUE, &[])?;
    let is_held = |event: &Event| {
        ["wait", "block"].contains(&event.name.as_str()) && event.get("object") == seen.fence
    };
    ensure_eq!(seen.count(is_held), 0, "{:?}", seen.log);
    counts(&seen, ids, signal, 1)
}

/// An engine without native fences stores: its adapter says that something was stored.
fn stored() -> TestResult {
    let pair = Pair::TWO_B;
    let (seen, _) = seen(pair, By::Packet, By::Store, true)?;
    let interrupts = |event: &Event| is_call(event, MONITORED_FENCE_SIGNALED);
    let tells = |event: &Event| event.name == "propagate" && event.get("value") == VALUE;
    let notes = |event: &Event| seen.is_update(event, seen.waits);
    let completes = |event: &Event| event.name == "complete" && event.get("queue") == seen.queue;
    seen.in_order(&[
        ("isr.legacy", &interrupts),
        ("os.prop", &tells),
        ("ucv, note", &notes),
        ("the end of the wait", &completes),
    ])
}

/// Each signal is told to the two others, once.
fn three() -> TestResult {
    let first = Side::first("first", true)?;
    let sides = [
        first.another("second", true)?,
        first.another("third", false)?,
        first,
    ];
    let mut value = 0;
    for (number, side) in sides.iter().enumerate() {
        let kinds: &[By] = match side.is_native() {
            true => &[By::Packet, By::Queue, By::Cpu],
            false => &[By::Queue, By::Cpu],
        };
        for by in kinds {
            value += 1;
            let before = sides.each_ref().map(Side::propagations);
            let events = sides.each_ref().map(|side| side.wait(By::Cpu, value));
            side.signal(*by, value)?;
            for (side, event) in sides.iter().zip(events) {
                side.ends(&event?)?;
            }
            // Those who are told are told before anybody is woken.
            let told: Vec<u64> = sides
                .iter()
                .zip(before)
                .map(|(side, before)| side.propagations() - before)
                .collect();
            let expected: Vec<u64> = (0..3).map(|other| u64::from(other != number)).collect();
            ensure_eq!(told, expected, "{by:?} of {number}");
        }
    }
    Ok(())
}
