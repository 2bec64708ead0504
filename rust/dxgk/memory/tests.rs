// SPDX-License-Identifier: GPL-2.0

//! Run by every load of the module in a kernel with KUnit. Each test that maps memory has an
//! address space of its own.

#[kernel::macros::kunit_tests(opendxg_memory)]
mod tests {
    use crate::{
        ddi::types::Place,
        dxgk::{
            memory::storage::Storage,
            quota::{
                account::Accounts,
                holder::Holder, //
            },
            stats::{
                Module,
                OwnStats, //
            }, //
        },
        error::Status,
        logic::moving::STEP,
        platform::load_acquire,
        sys::{
            alloc::pin_arc,
            file::revocable_file::{
                RevocableFile,
                Source, //
            },
            kunit::{
                attach_address_space,
                map_ordinary,
                Ram,
                TimerRegisters, //
            },
            mem::{
                movable::{
                    moving::{
                        ByProcessor,
                        MoveError, //
                    },
                    Movable, //
                },
                pages::{
                    Caching,
                    PageSource,
                    Whole, //
                },
                shmem::{
                    Payer,
                    Shmem,
                    SpareFile, //
                }, //
            },
            user,
            work, //
        }, //
    };
    use kernel::{
        bindings,
        page::PAGE_SIZE,
        prelude::*,
        sync::{
            atomic::{
                Atomic,
                Full,
                Relaxed, //
            },
            Arc,
            Completion, //
        }, //
    };

    /// Pages of a memory that moves in two steps.
    const COUNT: usize = STEP + 7;

    /// Pages at the edges of steps.
    const EDGES: [usize; 4] = [0, STEP - 1, STEP, COUNT - 1];

    /// Where the memory of a test is.
    const SYSTEM: u8 = 0;
    const SEGMENT: u8 = 1;

    /// Pays for so many pages.
    #[derive(Clone)]
    struct Purse(Arc<Atomic<isize>>, Arc<SpareFile>);

    impl Purse {
        fn of(pages: isize) -> Result<Self> {
            Ok(Self(
                Arc::new(Atomic::new(pages), GFP_KERNEL)?,
                pin_arc(SpareFile::new(), GFP_KERNEL)?,
            ))
        }
    }

    impl Payer for Purse {
        fn spare(&self) -> &SpareFile {
            &self.1
        }

        fn take_page(&self) -> bool {
            let paid = self.0.fetch_sub(1, Full) > 0;

            if !paid {
                self.0.fetch_add(1, Full);
            }
            paid
        }

        fn take_pages(&self, pages: usize) -> bool {
            let pages = pages as isize;
            let paid = self.0.fetch_sub(pages, Full) >= pages;

            if !paid {
                self.0.fetch_add(pages, Full);
            }
            paid
        }

        fn give_back(&self, pages: usize) {
            self.0.fetch_add(pages as isize, Full);
        }
    }

    fn shmem(pages: isize) -> Result<Arc<dyn PageSource>> {
        Ok(Arc::new(Shmem::new(COUNT, Purse::of(pages)?)?, GFP_KERNEL)?)
    }

    fn ram() -> Result<Arc<Ram>> {
        Ok(Arc::new(Ram::new(COUNT, None)?, GFP_KERNEL)?)
    }

    fn movable(place: u8, pages: Arc<dyn PageSource>) -> Result<Arc<Movable<u8>>> {
        Ok(pin_arc(Movable::new(place, pages), GFP_KERNEL)?)
    }

    /// A memory that a process has mapped.
    struct Mapped {
        file: RevocableFile,
        addr: usize,
    }

    impl Mapped {
        fn new(memory: &Arc<Movable<u8>>) -> Result<Self> {
            attach_address_space()?;

            let file = RevocableFile::new(Source::Pages(memory.clone()), true)?;
            let addr = file.map()?;

            Ok(Self { file, addr })
        }

        fn at(&self, index: usize) -> u64 {
            (self.addr + index * PAGE_SIZE) as u64
        }

        /// The first word of a page, as the process reads it.
        fn read(&self, index: usize) -> Result<u64> {
            user::read(self.at(index)).map_err(|_| EFAULT)
        }

        fn write(&self, index: usize, value: u64) -> Result {
            user::write(self.at(index), &value).map_err(|_| EFAULT)
        }
    }

    impl Drop for Mapped {
        fn drop(&mut self) {
            self.file.unmap(self.addr);
        }
    }

    /// Whether the pages at the edges say `base` and their number.
    fn has(mapped: &Mapped, base: usize) -> Result<bool> {
        for index in EDGES {
            if mapped.read(index)? != (base + index) as u64 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn fill(mapped: &Mapped, base: usize) -> Result {
        for index in EDGES {
            mapped.write(index, (base + index) as u64)?;
        }
        Ok(())
    }

    /// MEM-97: content and address are kept.
    #[test]
    fn bytes_survive_a_move() -> Result {
        let memory = movable(SYSTEM, shmem(COUNT as isize)?)?;
        let mapped = Mapped::new(&memory)?;

        fill(&mapped, 1000)?;
        assert_eq!(memory.taken(), EDGES.len());
        assert!(memory.move_to(SEGMENT, ram()?, &ByProcessor).is_ok());
        assert_eq!(memory.place(), SEGMENT);
        assert_eq!(memory.taken(), COUNT);
        assert!(has(&mapped, 1000)?);
        // What was never touched is zeros in both places.
        assert_eq!(mapped.read(2)?, 0);

        fill(&mapped, 2000)?;
        assert!(memory
            .move_to(SYSTEM, shmem(COUNT as isize)?, &ByProcessor)
            .is_ok());
        assert_eq!(memory.place(), SYSTEM);
        assert!(has(&mapped, 2000)?);
        assert_eq!(mapped.read(2)?, 0);
        Ok(())
    }

    /// RES-105, MEM-20: all pages are paid for before the first is taken, or none is. What is not
    /// taken goes back.
    #[test]
    fn pages_are_paid_for_ahead() -> Result {
        let pages = shmem(COUNT as isize)?;

        assert!(pages.page(0).is_ok());
        for _ in 0..2 {
            assert!(pages.pay_ahead().is_ok());
        }
        assert_eq!(pages.taken(), 1);
        for index in 0..COUNT {
            assert!(pages.page(index).is_ok());
        }
        assert_eq!(pages.taken(), COUNT);

        let poor = shmem(COUNT as isize - 1)?;

        assert!(poor.pay_ahead().is_err());
        // What it has is enough for one less, and is there again.
        assert!(poor.page(0).is_ok());
        assert!(poor.pay_ahead().is_err());
        poor.pay_back();
        for index in 1..COUNT - 1 {
            assert!(poor.page(index).is_ok());
        }
        assert!(poor.page(COUNT - 1).is_err());

        let spare = shmem(COUNT as isize)?;

        assert!(spare.pay_ahead().is_ok());
        spare.pay_back();
        assert!(spare.pay_ahead().is_ok());
        Ok(())
    }

    /// MEM-97: after a move, no mapping leads to a page of the old backing, and every mapping leads
    /// to the new one.
    #[test]
    fn mappings_show_the_new_pages() -> Result {
        let (old, new) = (ram()?, ram()?);
        let memory = movable(SYSTEM, old.clone())?;
        let first = Mapped::new(&memory)?;
        let second = Mapped::new(&memory)?;

        fill(&first, 1000)?;
        assert!(has(&second, 1000)?);
        assert!(memory.move_to(SEGMENT, new.clone(), &ByProcessor).is_ok());
        fill(&first, 2000)?;
        for index in EDGES {
            assert_eq!(old.word(index).map(load_acquire), Some(1000 + index as u64));
            assert_eq!(new.word(index).map(load_acquire), Some(2000 + index as u64));
        }
        assert!(has(&second, 2000)?);
        Ok(())
    }

    /// MEM-97: what did not work out has changed nothing.
    #[test]
    fn a_failed_move_changes_nothing() -> Result {
        let memory = movable(SYSTEM, shmem(COUNT as isize)?)?;
        let mapped = Mapped::new(&memory)?;
        let unchanged = || -> Result<bool> {
            Ok(memory.place() == SYSTEM && memory.taken() == EDGES.len() && has(&mapped, 1000)?)
        };

        fill(&mapped, 1000)?;
        // The last page of the new backing, and each one before it.
        for pages in 0..EDGES.len() {
            let failed = memory.move_to(SEGMENT, shmem(pages as isize)?, &ByProcessor);

            // CAST: a small number.
            let over = Error::from_errno(-(bindings::EDQUOT as i32));

            assert_eq!(failed, Err(MoveError::Failed(over)));
            assert!(unchanged()?);
        }
        for index in EDGES {
            let lacking = Arc::new(Ram::new(COUNT, Some(index))?, GFP_KERNEL)?;

            assert_eq!(
                memory.move_to(SEGMENT, lacking, &ByProcessor),
                Err(MoveError::Failed(ENOMEM))
            );
            assert!(unchanged()?);
        }

        let short = Arc::new(Ram::new(COUNT - 1, None)?, GFP_KERNEL)?;

        assert_eq!(
            memory.move_to(SEGMENT, short, &ByProcessor),
            Err(MoveError::Size)
        );
        assert!(unchanged()?);
        assert!(memory.move_to(SEGMENT, ram()?, &ByProcessor).is_ok());
        assert!(has(&mapped, 1000)?);
        Ok(())
    }

    /// MEM-27: pinned memory stays where it is.
    #[test]
    fn pinned_memory_does_not_move() -> Result {
        let memory = movable(SYSTEM, ram()?)?;
        let _pages = memory.pin()?;
        let _again = memory.pin()?;

        assert_eq!(
            memory.move_to(SEGMENT, ram()?, &ByProcessor),
            Err(MoveError::Pinned)
        );
        memory.unpin();
        assert_eq!(
            memory.move_to(SEGMENT, ram()?, &ByProcessor),
            Err(MoveError::Pinned)
        );
        assert_eq!(memory.place(), SYSTEM);
        memory.unpin();
        assert!(memory.move_to(SEGMENT, ram()?, &ByProcessor).is_ok());
        assert_eq!(memory.place(), SEGMENT);
        Ok(())
    }

    /// MEM-108: pages are let go of, and their bytes are there at the next touch. What is let go of
    /// is paid for no more.
    #[test]
    fn bytes_survive_without_pages() -> Result {
        let purse = Purse::of(COUNT as isize)?;
        let pages: Arc<dyn PageSource> = Arc::new(Shmem::new(COUNT, purse.clone())?, GFP_KERNEL)?;
        let memory = movable(SYSTEM, pages)?;
        let mapped = Mapped::new(&memory)?;

        assert_eq!(memory.try_let_go(true), Some(0));
        for base in [1000, 2000] {
            fill(&mapped, base)?;
            assert_eq!(memory.taken(), EDGES.len());
            assert_eq!(memory.try_let_go(true), Some(EDGES.len()));
            assert_eq!(memory.taken(), 0);
            assert_eq!(purse.0.load(Relaxed), COUNT as isize);
            assert!(has(&mapped, base)?);
        }
        // A move finds them, too.
        assert_eq!(memory.try_let_go(true), Some(EDGES.len()));
        assert!(memory.move_to(SEGMENT, ram()?, &ByProcessor).is_ok());
        assert!(has(&mapped, 2000)?);
        // What has pages that stay does not let go of them.
        assert_eq!(memory.try_let_go(true), None);
        assert!(has(&mapped, 2000)?);
        Ok(())
    }

    /// MEM-111: bytes are dropped, whether pages are there or not.
    #[test]
    fn dropped_bytes_are_zeros() -> Result {
        let memory = movable(SYSTEM, shmem(COUNT as isize)?)?;
        let mapped = Mapped::new(&memory)?;

        fill(&mapped, 1000)?;
        assert_eq!(memory.try_let_go(false), Some(EDGES.len()));
        for index in EDGES {
            assert_eq!(mapped.read(index)?, 0);
        }
        fill(&mapped, 2000)?;
        assert_eq!(memory.try_let_go(true), Some(EDGES.len()));
        assert_eq!(memory.try_let_go(false), Some(0));
        for index in EDGES {
            assert_eq!(mapped.read(index)?, 0);
        }
        Ok(())
    }

    /// MEM-108, MEM-111: what is pinned keeps its pages and its bytes.
    #[test]
    fn pinned_memory_is_not_let_go_of() -> Result {
        let memory = movable(SYSTEM, shmem(COUNT as isize)?)?;
        let mapped = Mapped::new(&memory)?;

        fill(&mapped, 1000)?;

        let pages = memory.pin()?;

        assert_eq!(memory.try_let_go(true), None);
        assert_eq!(memory.try_let_go(false), None);
        assert_eq!(pages.taken(), EDGES.len());
        assert!(has(&mapped, 1000)?);
        drop(pages);
        memory.unpin();
        assert_eq!(memory.try_let_go(true), Some(EDGES.len()));
        Ok(())
    }

    /// Moves a memory to and fro in the worker until it is told to stop.
    #[pin_data]
    struct Mover {
        memory: Arc<Movable<u8>>,
        stop: Atomic<u32>,
        moves: Atomic<u32>,
        failures: Atomic<u32>,
        #[pin]
        ended: Completion,
    }

    impl Mover {
        fn start(memory: &Arc<Movable<u8>>) -> Result<Arc<Self>> {
            let mover = Arc::pin_init(
                pin_init!(Self {
                    memory: memory.clone(),
                    stop: Atomic::new(0),
                    moves: Atomic::new(0),
                    failures: Atomic::new(0),
                    ended <- Completion::new(),
                }),
                GFP_KERNEL,
            )?;
            let worker = mover.clone();

            work::worker()
                .ok_or(ENODEV)?
                .try_spawn(GFP_KERNEL, move || worker.run())?;
            Ok(mover)
        }

        fn run(&self) {
            while self.stop.load(Relaxed) == 0 {
                let moved = if self.memory.place() == SYSTEM {
                    ram().map(|pages| self.memory.move_to(SEGMENT, pages, &ByProcessor))
                } else {
                    shmem(COUNT as isize)
                        .map(|pages| self.memory.move_to(SYSTEM, pages, &ByProcessor))
                };

                // A process that touches new pages all the time may be in the way.
                if !matches!(moved, Ok(Ok(()) | Err(MoveError::Busy))) {
                    self.failures.add(1, Relaxed);
                }
                self.moves.add(1, Relaxed);
                work::breathe();
            }
            self.ended.complete_all();
        }

        fn moves(&self) -> u32 {
            self.moves.load(Relaxed)
        }

        /// Stops it; whether all went well.
        fn end(&self) -> bool {
            self.stop.store(1, Relaxed);
            self.ended.wait_for_completion();
            self.failures.load(Relaxed) == 0
        }
    }

    /// Moves that a test with two threads waits for.
    const MOVES: u32 = 20;

    /// MEM-99: a process counts in a memory that moves all the time.
    #[test]
    fn no_write_is_lost_while_memory_moves() -> Result {
        let memory = movable(SYSTEM, shmem(COUNT as isize)?)?;
        let mapped = Mapped::new(&memory)?;
        let mover = Mover::start(&memory)?;
        let mut count = 0;
        let mut lost = 0;

        while mover.moves() < MOVES {
            for index in EDGES {
                if mapped.read(index)? != count {
                    lost += 1;
                }
                mapped.write(index, count + 1)?;
            }
            count += 1;
            work::breathe();
        }
        assert!(mover.end());
        assert_eq!(lost, 0);
        for index in EDGES {
            assert_eq!(mapped.read(index)?, count);
        }
        assert!(count > 0);
        Ok(())
    }

    /// RES-89, MEM-97: a mapping that is revoked while the memory moves shows nothing afterwards,
    /// and others go on.
    #[test]
    fn a_mapping_is_revoked_during_moves() -> Result {
        let memory = movable(SYSTEM, shmem(COUNT as isize)?)?;
        let other = Mapped::new(&memory)?;
        let mover = Mover::start(&memory)?;
        let mut seen = 0;
        let mut round = 0;

        while mover.moves() < MOVES {
            let mapped = Mapped::new(&memory)?;

            round += 1;
            for index in EDGES {
                mapped.write(index, round)?;
            }
            mapped.file.revoke(None);
            for index in EDGES {
                seen += u32::from(mapped.read(index).is_ok());
                seen += u32::from(other.read(index)? != round);
            }
            work::breathe();
        }
        assert!(mover.end());
        assert_eq!(seen, 0);
        Ok(())
    }

    /// Memory behind a bus is shown in processes; what needs a `struct page` refuses it.
    #[test]
    fn a_frame_needs_no_struct_page() -> Result {
        attach_address_space()?;

        for caching in [Caching::Uncached, Caching::WriteCombined] {
            let registers = Arc::new(TimerRegisters(caching), GFP_KERNEL)?;
            let memory = movable(SEGMENT, registers.clone())?;
            let file = RevocableFile::new(Source::Pages(memory.clone()), false)?;
            let addr = file.map()? as u64;
            let vendor = user::read::<u32>(addr).map(|word| word >> 16).ok();

            assert_eq!(vendor, Some(TimerRegisters::VENDOR));
            // CAST: a small number.
            assert_eq!(
                Whole::new(registers).err().map(Error::to_errno),
                Some(-(bindings::EOPNOTSUPP as i32))
            );
            assert_eq!(
                memory.move_to(
                    SYSTEM,
                    Arc::new(Ram::new(1, None)?, GFP_KERNEL)?,
                    &ByProcessor
                ),
                Err(MoveError::NoPage)
            );
            assert_eq!(memory.place(), SEGMENT);
            file.revoke(None);
            assert!(user::read::<u32>(addr).is_err());
        }
        Ok(())
    }

    fn uncounted() -> OwnStats {
        OwnStats::of(&Module)
    }

    fn holder() -> Result<Arc<Holder>> {
        Holder::new(Accounts::new()?.of_caller()?)
    }

    /// MEM-26, MEM-27: what does not move, and what it says.
    #[test]
    fn storages_say_whether_they_move() -> Result {
        const SIZE: u64 = 4 * PAGE_SIZE as u64;

        attach_address_space()?;

        let holder = holder()?;
        let pages = || -> Result<Arc<dyn PageSource>> {
            Ok(Arc::new(
                Shmem::new(4, holder.clone()).map_err(|_| ENOMEM)?,
                GFP_KERNEL,
            )?)
        };
        let to = Place::SystemMemory;
        let addr = map_ordinary(4) as u64;
        let user = Storage::user(&holder, uncounted(), addr, SIZE, true).map_err(|_| EINVAL)?;

        assert_eq!(
            user.move_to(to, pages()?, &ByProcessor),
            Err(MoveError::Fixed)
        );

        let own = Storage::system(&holder, uncounted(), SIZE).map_err(|_| EINVAL)?;

        assert!(own.move_to(to, pages()?, &ByProcessor).is_ok());
        assert_eq!(own.place(), Place::SystemMemory);

        let part = own
            .part(&holder, uncounted(), PAGE_SIZE as u64)
            .map_err(|_| EINVAL)?;

        assert_eq!(
            part.move_to(to, pages()?, &ByProcessor),
            Err(MoveError::Pinned)
        );
        assert_eq!(
            own.move_to(to, pages()?, &ByProcessor),
            Err(MoveError::Pinned)
        );
        assert_eq!(part.size(), PAGE_SIZE as u64);
        drop(part);

        let pinned = own.pin().map_err(|_| EINVAL)?;

        assert_eq!(
            own.move_to(to, pages()?, &ByProcessor),
            Err(MoveError::Pinned)
        );
        assert_eq!(pinned.count(), 4);
        drop(pinned);
        assert!(own.move_to(to, pages()?, &ByProcessor).is_ok());
        // A part is never longer.
        assert!(own
            .part(&holder, uncounted(), 2 * SIZE)
            .is_err_and(|error| error.is(Status::INVALID_PARAMETER)));
        Ok(())
    }
}
