// SPDX-License-Identifier: GPL-2.0

//! Interrupts of native fences that a driver may not raise. Run by every load of the module in a
//! kernel with KUnit.

#[kernel::macros::kunit_tests(opendxg_native_interrupts)]
mod tests {
    use super::super::{
        fence_binding::{
            BoundFence,
            FenceBindings, //
        },
        native_interrupts::{
            Interrupt,
            NativeInterrupts, //
        }, //
    };
    use crate::{
        ddi::{
            interrupt_lock::InterruptLock,
            native_fence::NativeFenceCallbacks, //
        },
        sys::work::OrderedWorker, //
    };
    use kernel::{
        prelude::*,
        sync::{
            atomic::{
                Atomic,
                Full,
                Relaxed, //
            },
            Arc, //
        }, //
    };

    /// A fence that counts how often it is looked at.
    struct Looked(Atomic<u32>);

    impl BoundFence for Looked {
        fn adapter_removed(self: Arc<Self>) {}

        fn native_signaled(self: Arc<Self>) {
            self.0.fetch_add(1, Full);
        }
    }

    fn count(all: &NativeInterrupts, wanted: &str) -> u64 {
        let mut each = all.each();

        each.find(|(name, _)| *name == wanted)
            .map_or(u64::MAX, |(_, count)| count)
    }

    /// FEN-96: a driver names a fence that it has destroyed. That is counted, and all fences are
    /// looked at.
    #[test]
    fn fen_96_a_fence_that_is_destroyed() -> Result {
        let bindings = FenceBindings::new()?;
        let worker = OrderedWorker::start(c"opendxg-kunit")?;
        let all = NativeInterrupts::new(&bindings, worker, 1, false)?;
        let fences = [
            Arc::new(Looked(Atomic::new(0)), GFP_KERNEL)?,
            Arc::new(Looked(Atomic::new(0)), GFP_KERNEL)?,
        ];
        let interrupt = Interrupt::new(&all)?;
        let lock = InterruptLock::new().ok_or(ENOMEM)?;
        let numbers = [
            bindings.add(fences[0].clone())?,
            bindings.add(fences[1].clone())?,
        ];
        let looks = || [0, 1].map(|at| fences[at].0.load(Relaxed));

        interrupt.number().store(numbers[0], Relaxed);
        lock.hold(|class| interrupt.signaled(class));
        all.flush();
        assert_eq!(looks(), [1, 0]);
        assert_eq!(count(&all, "bad-driver-handles"), 0);

        interrupt.destroyed();
        lock.hold(|class| interrupt.signaled(class));
        all.flush();
        assert_eq!(looks(), [2, 1]);
        assert_eq!(count(&all, "bad-driver-handles"), 1);
        assert_eq!(count(&all, "interrupts"), 2);
        for number in numbers {
            bindings.remove(number);
        }
        Ok(())
    }
}
