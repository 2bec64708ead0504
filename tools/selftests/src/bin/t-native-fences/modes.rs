// SPDX-License-Identifier: MIT OR Apache-2.0
//! The forms of native-fence interrupts that an adapter may have (fences.md section 3.6).

use opendxg::pm4::Pm4;
use opendxg::{Context, Device, EventFd, NativeFence};
use selftests::gpu::Gpu;
use selftests::soft_adapter::SoftAdapter;
use selftests::time::a_while;
use selftests::user_queue::{user_queue, UserQueue};
use selftests::{ensure, ensure_eq, Suite, TestResult};

use crate::t_native_fences::{
    is_silent, is_told, logged_signal, silent_signal, stress, waited, Counts,
};

/// All forms.
const MODES: [&str; 6] = ["exact", "merged", "null", "legacy", "queue", "engine"];

/// Adds the tests of this file.
pub(crate) fn tests(suite: Suite) -> Suite {
    MODES
        .into_iter()
        .fold(suite, |suite, mode| {
            suite
                .test(
                    format!("FEN-91 FEN-93 FEN-97 whom an interrupt releases, {mode}"),
                    move || whom(mode),
                )
                .test(
                    format!("GPU-59 FEN-83 one last signal, then silence, {mode}"),
                    move || stress::last_signal_on(&adapter(mode)?.device()?),
                )
        })
        .test(
            "FEN-93 FEN-94 FEN-95 monitored fences beside native ones",
            monitored,
        )
        .test("GPU-59 more fences than a record names", too_many)
        .test("GPU-87 FEN-97 the log says what was signalled", by_log)
        .test("FEN-82 a pulse that was logged is seen", pulse)
        .test("FEN-80 a pulse from before a wait is not seen", stale)
        .test("FEN-99 GPU-80 a log that has overflown", overflow)
        .test("GPU-61 another queue of the engine", another_queue)
}

/// An adapter that tells in this form.
fn adapter(mode: &str) -> TestResult<SoftAdapter> {
    let adapter = SoftAdapter::new(&format!("t-native-fences-{mode}"))?;
    ensure_eq!(adapter.get("native_interrupts")?, "exact");
    ensure!(adapter.set("native_interrupts", "some").is_err());
    adapter.set("native_interrupts", mode)?;
    ensure_eq!(adapter.get("native_interrupts")?, mode);
    adapter.set("enabled", "1")?;
    Ok(adapter)
}

/// What the tests need of a device: a queue of each kind on one engine, and two fences.
struct Scene {
    gpu: Gpu,
    context: Context,
    fences: [NativeFence; 2],
}

impl Scene {
    fn on(device: &Device) -> TestResult<Self> {
        Ok(Self {
            gpu: Gpu::on(device, 0)?,
            context: device.create_hw_context(0)?,
            fences: [
                device.create_native_fence(0)?,
                device.create_native_fence(0)?,
            ],
        })
    }

    fn waits(&self, values: [u64; 2]) -> TestResult<[EventFd; 2]> {
        Ok([
            waited(&self.fences[0], values[0])?,
            waited(&self.fences[1], values[1])?,
        ])
    }
}

/// Two fences are due, and the interrupt is that of the second one.
fn whom(mode: &str) -> TestResult {
    let adapter = adapter(mode)?;
    let scene = Scene::on(&adapter.device()?)?;
    let queue = user_queue(&scene.context)?;
    let user = UserQueue::connected(&scene.gpu, &queue)?;
    let [first, second] = &scene.fences;
    let [one, two] = scene.waits([1, 1])?;
    let before = Counts::of(&scene.gpu)?.interrupts();
    // The first one is not logged either.
    user.run(&silent_signal(first, 1).append(&logged_signal(second, 1, true)))?;
    is_told(&two)?;
    let interrupts = Counts::of(&scene.gpu)?.interrupts() - before;
    // The progress value of the queue interrupts in the same form.
    ensure!(interrupts == 1 || mode == "legacy", "{interrupts}");
    match mode {
        // FEN-93: it names nothing, so everything is looked at.
        "null" | "legacy" => is_told(&one)?,
        _ => {
            a_while();
            is_silent(&one)?;
            // Its own record.
            user.run(&logged_signal(first, 1, true))?;
            is_told(&one)?;
        }
    }
    // A queue without logs, FEN-91 as well: whatever the form is, nobody is forgotten.
    let events = scene.waits([3, 3])?;
    scene.gpu.run(
        &Pm4::new()
            .signal_native(first.gpu_address(), 3)
            .signal_native(second.gpu_address(), 3),
    )?;
    for event in &events {
        is_told(event)?;
    }
    Ok(())
}

/// A monitored fence whose value a queue has stored, without the interrupt of such fences.
fn monitored() -> TestResult {
    for mode in ["null", "legacy"] {
        let adapter = adapter(mode)?;
        let scene = Scene::on(&adapter.device()?)?;
        let queue = user_queue(&scene.context)?;
        let user = UserQueue::connected(&scene.gpu, &queue)?;
        let [first, second] = &scene.fences;
        let monitored = scene.gpu.device().create_fence(0)?;
        let event = EventFd::new()?;
        monitored.wait_async(1, &event)?;
        let [native, later] = scene.waits([1, 2])?;
        user.run(
            &Pm4::new()
                .write64(monitored.gpu_address(), 1)
                .append(&logged_signal(first, 1, true)),
        )?;
        is_told(&native)?;
        if mode == "null" {
            a_while();
            is_silent(&event)?;
            // Whoever signals it properly is heard.
            user.run(&Pm4::new().signal(monitored.gpu_address(), 2))?;
        }
        is_told(&event)?;
        is_silent(&later)?;
        // Interrupts of monitored fences are told in the same way, and native ones looked at.
        let before = Counts::of(&scene.gpu)?.interrupts();
        let interrupt = Pm4::new().signal(monitored.gpu_address(), 3);
        user.run(&silent_signal(second, 2).append(&interrupt))?;
        if mode == "legacy" {
            is_told(&later)?;
            ensure!(Counts::of(&scene.gpu)?.interrupts() > before);
        } else {
            a_while();
            is_silent(&later)?;
        }
    }
    Ok(())
}

fn too_many() -> TestResult {
    const FENCES: usize = 65;

    let adapter = adapter("merged")?;
    let device = adapter.device()?;
    let gpu = Gpu::on(&device, 0)?;
    let fences = (0..FENCES)
        .map(|_| device.create_native_fence(0))
        .collect::<Result<Vec<_>, _>>()?;
    let signals = |count: usize, value: u64| {
        fences
            .iter()
            .take(count)
            .fold(Pm4::new(), |packets, fence| {
                packets.signal_native(fence.gpu_address(), value)
            })
    };
    for (value, count, interrupts) in [(1, FENCES - 1, FENCES - 1), (2, FENCES, 1)] {
        let events = fences
            .iter()
            .map(|fence| waited(fence, value))
            .collect::<TestResult<Vec<_>>>()?;
        let before = Counts::of(&gpu)?;
        gpu.run(&signals(count, value))?;
        for event in events.iter().take(count) {
            is_told(event)?;
        }
        let after = Counts::of(&gpu)?;
        ensure_eq!(after.interrupts(), before.interrupts() + interrupts as u64);
        if count == FENCES {
            ensure_eq!(after.scans(), before.scans() + 1);
        }
        gpu.run(&signals(FENCES, value))?;
    }
    Ok(())
}

fn by_log() -> TestResult {
    let adapter = adapter("queue")?;
    let scene = Scene::on(&adapter.device()?)?;
    let queue = user_queue(&scene.context)?;
    let user = UserQueue::connected(&scene.gpu, &queue)?;
    let [first, second] = &scene.fences;
    let [one, three] = scene.waits([1, 3])?;
    let two = waited(first, 2)?;
    let before = Counts::of(&scene.gpu)?.interrupts();
    // E1 to E3 interrupt nobody, E4 does.
    user.run(
        &logged_signal(first, 1, false)
            .append(&logged_signal(first, 2, false))
            .append(&logged_signal(second, 3, false))
            .append(&logged_signal(second, 3, true)),
    )?;
    for event in [one, two, three] {
        is_told(&event)?;
    }
    ensure_eq!(Counts::of(&scene.gpu)?.interrupts(), before + 1);
    Ok(())
}

fn pulse() -> TestResult {
    let adapter = adapter("queue")?;
    let scene = Scene::on(&adapter.device()?)?;
    let queue = user_queue(&scene.context)?;
    let user = UserQueue::connected(&scene.gpu, &queue)?;
    let fence = &scene.fences[0];
    let event = waited(fence, 10)?;
    user.run(
        &logged_signal(fence, 10, false)
            .append(&logged_signal(fence, 3, false))
            .append(&logged_signal(&scene.fences[1], 1, false))
            .append(&logged_signal(fence, 10, true))
            .append(&logged_signal(fence, 3, false)),
    )?;
    is_told(&event)?;
    ensure_eq!(fence.value(), 3);
    Ok(())
}

/// A value was stored, logged and taken back before anybody waited for it. The log is read later.
fn stale() -> TestResult {
    let adapter = adapter("queue")?;
    let scene = Scene::on(&adapter.device()?)?;
    let queue = user_queue(&scene.context)?;
    let user = UserQueue::connected(&scene.gpu, &queue)?;
    let [first, second] = &scene.fences;
    user.run(&logged_signal(first, 10, false).append(&logged_signal(first, 3, false)))?;
    let [event, read] = scene.waits([10, 1])?;
    user.run(&logged_signal(second, 1, true))?;
    is_told(&read)?;
    a_while();
    is_silent(&event)?;
    user.run(&logged_signal(first, 10, true))?;
    is_told(&event)
}

fn overflow() -> TestResult {
    let adapter = adapter("queue")?;
    let scene = Scene::on(&adapter.device()?)?;
    let queue = user_queue(&scene.context)?;
    let user = UserQueue::connected(&scene.gpu, &queue)?;
    let [first, second] = &scene.fences;
    let [one, two] = scene.waits([1, 1000])?;
    let before = Counts::of(&scene.gpu)?.log_overflows();
    user.run(&logged_signal(first, 1, false))?;
    for value in 1..=3 * 84 {
        user.submit(&logged_signal(second, value, false))?;
    }
    user.run(&logged_signal(second, 1000, true))?;
    // The entry of the first one is lost, and its value is there.
    is_told(&two)?;
    is_told(&one)?;
    ensure_eq!(Counts::of(&scene.gpu)?.log_overflows(), before + 1);
    Ok(())
}

/// Queue B has logged, queue A interrupts.
fn another_queue() -> TestResult {
    for mode in ["queue", "engine"] {
        let adapter = adapter(mode)?;
        let scene = Scene::on(&adapter.device()?)?;
        let queues = [user_queue(&scene.context)?, user_queue(&scene.context)?];
        let [a, b] = [
            UserQueue::connected(&scene.gpu, &queues[0])?,
            UserQueue::connected(&scene.gpu, &queues[1])?,
        ];
        let [first, second] = &scene.fences;
        let [one, two] = scene.waits([1, 1])?;
        b.run(&logged_signal(first, 1, false))?;
        a.run(&logged_signal(second, 1, true))?;
        is_told(&two)?;
        if mode == "queue" {
            a_while();
            is_silent(&one)?;
            b.run(&logged_signal(first, 1, true))?;
        }
        is_told(&one)?;
    }
    Ok(())
}
