// SPDX-License-Identifier: MIT OR Apache-2.0

//! A machine around the engine: memory that checks how it is used, page tables, a clock.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::engine::command_processor::{Engine, Outcome, SLICE};
use crate::engine::fences::{FenceIndex, Fences, NativeFence};
use crate::engine::memory::{Memory, Physical, Place, PAGE_SIZE};
use crate::engine::page_table::{Entry, Profile};
use crate::engine::queue::{Privilege, Progress, Queue, Submission};
use crate::engine::shell::{Clock, Interrupts, Record};
use crate::engine::translation::Root;

/// An access to physical memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Load32(Physical),
    Load64(Physical),
    Store32(Physical, u32),
    Store64(Physical, u64),
    Exchange(Physical, u64, u64),
    Copy(Physical, Physical, u32),
    Fill(Physical, u32, u32),
}

impl Event {
    pub fn is_load(self) -> bool {
        matches!(self, Self::Load32(_) | Self::Load64(_))
    }
}

type Page = [u8; PAGE_SIZE as usize];

/// What others do to memory after an access.
type Others = Box<dyn FnMut(&Ram, Event)>;

/// Physical memory, of the pages that were put there. Panics if it is used as it must not be.
#[derive(Default)]
pub struct Ram {
    pages: RefCell<BTreeMap<Physical, Page>>,
    trace: RefCell<Vec<Event>>,
    others: RefCell<Option<Others>>,
    /// Whether entries of logs are stored late, and those that are to be.
    pub is_lazy: Cell<bool>,
    late: RefCell<Vec<(Physical, u64)>>,
}

impl Ram {
    /// Puts a page of zeros there.
    pub fn put_page(&self, at: Physical) {
        assert_eq!(at.address % PAGE_SIZE, 0);
        self.pages.borrow_mut().insert(at, [0; PAGE_SIZE as usize]);
    }

    /// All accesses since the last time.
    pub fn take_trace(&self) -> Vec<Event> {
        self.trace.take()
    }

    /// Lets others do something after each access.
    pub fn with_others(&self, others: impl FnMut(&Ram, Event) + 'static) {
        *self.others.borrow_mut() = Some(Box::new(others));
    }

    /// Everything that is there.
    pub fn contents(&self) -> BTreeMap<Physical, Page> {
        self.pages.borrow().clone()
    }

    fn happened(&self, event: Event) {
        self.trace.borrow_mut().push(event);
        // Taken out, so that others may use the memory.
        if let Some(mut others) = self.others.take() {
            others(self, event);
            *self.others.borrow_mut() = Some(others);
        }
    }

    /// Some bytes of one page.
    fn within<T>(&self, at: Physical, bytes: u32, with: impl FnOnce(&mut [u8]) -> T) -> Option<T> {
        let offset = (at.address % PAGE_SIZE) as usize;
        let end = offset + bytes as usize;
        let start = Physical::new(at.place, at.address - offset as u64);

        assert!((1..=PAGE_SIZE as usize).contains(&(end - offset)));
        assert!(
            end <= PAGE_SIZE as usize,
            "crosses a page: {at:x?}, {bytes}"
        );
        self.pages
            .borrow_mut()
            .get_mut(&start)
            .map(|page| with(&mut page[offset..end]))
    }

    pub fn read(&self, at: Physical, bytes: u32) -> Option<Vec<u8>> {
        self.within(at, bytes, |bytes| bytes.to_vec())
    }

    pub fn write(&self, at: Physical, bytes: &[u8]) -> Option<()> {
        self.within(at, bytes.len() as u32, |place| place.copy_from_slice(bytes))
    }

    pub fn word(&self, at: Physical) -> Option<u64> {
        Some(u64::from_le_bytes(self.read(at, 8)?.try_into().unwrap()))
    }
}

/// Has `part` do so many bytes, a page of each side at a time, as long as it can. How many that
/// were; `None` if there was nothing.
pub fn in_pages(
    bytes: u32,
    sides: [Physical; 2],
    part: impl Fn(u64, u32) -> Option<()>,
) -> Option<u32> {
    let mut done = 0;

    while done < bytes {
        let left = |at: Physical| PAGE_SIZE - at.plus(done.into()).address % PAGE_SIZE;
        let some = sides
            .map(left)
            .into_iter()
            .min()?
            .min((bytes - done).into()) as u32;

        if part(done.into(), some).is_none() {
            break;
        }
        done += some;
    }
    (done != 0).then_some(done)
}

fn is_aligned(at: Physical, unit: u64) {
    assert_eq!(at.address % unit, 0, "not aligned: {at:x?}");
}

impl Memory for Ram {
    fn load32(&self, at: Physical) -> Option<u32> {
        is_aligned(at, 4);

        let value = u32::from_le_bytes(self.read(at, 4)?.try_into().unwrap());

        self.happened(Event::Load32(at));
        Some(value)
    }

    fn load64(&self, at: Physical) -> Option<u64> {
        is_aligned(at, 8);

        let value = self.word(at)?;

        self.happened(Event::Load64(at));
        Some(value)
    }

    fn store32(&self, at: Physical, value: u32) -> Option<()> {
        is_aligned(at, 4);
        self.write(at, &value.to_le_bytes())?;
        self.happened(Event::Store32(at, value));
        Some(())
    }

    fn store64(&self, at: Physical, value: u64) -> Option<()> {
        is_aligned(at, 8);
        self.write(at, &value.to_le_bytes())?;
        self.happened(Event::Store64(at, value));
        Some(())
    }

    fn store64_release(&self, at: Physical, value: u64) -> Option<()> {
        self.store64(at, value)
    }

    fn store64_late(&self, at: Physical, value: u64) -> Option<()> {
        if !self.is_lazy.get() {
            return self.store64(at, value);
        }
        is_aligned(at, 8);
        self.word(at)?;
        self.late.borrow_mut().push((at, value));
        Some(())
    }

    fn drain(&self) {
        for (at, value) in self.late.take() {
            self.store64(at, value);
        }
    }

    fn compare_exchange64(&self, at: Physical, old: u64, new: u64) -> Option<u64> {
        is_aligned(at, 8);

        let found = self.word(at)?;

        if found == old {
            self.write(at, &new.to_le_bytes())?;
        }
        self.happened(Event::Exchange(at, old, new));
        Some(found)
    }

    fn copy(&self, from: Physical, to: Physical, bytes: u32) -> Option<u32> {
        let done = in_pages(bytes, [from, to], |offset, some| {
            let (from, to) = (from.plus(offset), to.plus(offset));

            // Of the target first, so that a missing one leaves nothing half done.
            self.read(to, some)?;
            self.write(to, &self.read(from, some)?)
        })?;

        self.happened(Event::Copy(from, to, done));
        Some(done)
    }

    fn fill(&self, to: Physical, pattern: u32, bytes: u32) -> Option<u32> {
        let done = in_pages(bytes, [to, to], |offset, some| {
            let pattern = pattern.to_le_bytes();
            let filled: Vec<u8> = (offset as usize..)
                .take(some as usize)
                .map(|at| pattern[at % 4])
                .collect();

            self.write(to.plus(offset), &filled)
        })?;

        self.happened(Event::Fill(to, pattern, done));
        Some(done)
    }
}

/// A clock that a test sets.
#[derive(Default)]
pub struct TestClock(pub Cell<u64>);

impl Clock for TestClock {
    fn ticks(&self) -> u64 {
        self.0.get()
    }
}

/// Remembers what was reported: of native fences with what else is done with them.
#[derive(Default)]
pub struct Records(pub Vec<Record>, Rc<RefCell<Vec<FenceEvent>>>);

impl Interrupts for Records {
    fn report(&mut self, record: Record) {
        match record {
            Record::NativeFenceSignaled(fence) => {
                self.1.borrow_mut().push(FenceEvent::Signaled(fence));
            }
            record => self.0.push(record),
        }
    }
}

/// What is done with native fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceEvent {
    Stored(FenceIndex),
    Signaled(FenceIndex),
}

/// Native fences that a process has open, by CurrentValue, and what was done with them.
#[derive(Default)]
pub struct TestFences {
    pub open: Vec<(u16, u64, NativeFence<()>)>,
    pub always_signaled: Cell<bool>,
    /// It becomes always signaled at the second look.
    pub becomes_always_signaled: Cell<bool>,
    pub events: Rc<RefCell<Vec<FenceEvent>>>,
}

impl Fences for TestFences {
    type Handle = ();

    fn by_current_value(&self, process: u16, va: u64) -> Option<NativeFence<()>> {
        let found = self
            .open
            .iter()
            .find(|open| (open.0, open.1) == (process, va));

        found.map(|open| open.2)
    }

    fn by_monitored_value(&self, process: u16, va: u64) -> Option<NativeFence<()>> {
        let is_there =
            |open: &&(u16, u64, NativeFence<()>)| (open.0, open.2.monitored_value) == (process, va);

        self.open.iter().find(is_there).map(|open| open.2)
    }

    fn is_always_signaled(&self, _: &NativeFence<()>) -> bool {
        let is_one = self.always_signaled.get();

        self.always_signaled
            .set(is_one || self.becomes_always_signaled.get());
        is_one
    }

    fn stored(&self, fence: &NativeFence<()>) {
        self.events
            .borrow_mut()
            .push(FenceEvent::Stored(fence.index));
    }
}

/// Where the tests have things: a command buffer, data, and a progress value.
pub const BUFFER: u64 = 0x10_0000;
pub const DATA: u64 = 0x40_0000;
pub const PROGRESS: u64 = 0x7fff_ffff_f000;

/// PASID of the queue of a machine.
pub const PROCESS: u16 = 7;

/// An engine with a queue.
pub struct Machine {
    pub ram: Ram,
    pub clock: TestClock,
    pub records: Records,
    pub fences: TestFences,
    pub engine: Engine,
    pub queue: Queue,
    pub root: Root,
    next_table: u64,
    next_page: u64,
}

impl Machine {
    /// Nothing is mapped but a page for the progress value.
    pub fn bare(privilege: Privilege) -> Self {
        let root = Root {
            table: Physical::new(Place::Local, PAGE_SIZE),
            entries: 512,
            process: PROCESS,
        };
        let fences = TestFences::default();
        let mut machine = Self {
            ram: Ram::default(),
            clock: TestClock::default(),
            records: Records(Vec::new(), fences.events.clone()),
            fences,
            engine: Engine::new(Profile::VRAM4).unwrap(),
            queue: Queue::new(root, privilege),
            root,
            next_table: 2 * PAGE_SIZE,
            next_page: 0x1_0000,
        };

        machine.ram.put_page(root.table);
        machine.map_new(PROGRESS, 1);
        machine
    }

    /// 17 pages for commands and 16 for data are mapped.
    pub fn new() -> Self {
        Self::with(Privilege::Normal)
    }

    /// The same with a queue of this privilege.
    pub fn with(privilege: Privilege) -> Self {
        let mut machine = Self::bare(privilege);

        machine.map_new(BUFFER, 17);
        machine.map_new(DATA, 16);
        machine
    }

    /// A page of zeros in system memory that nobody else has.
    pub fn new_page(&mut self) -> Physical {
        let page = Physical::new(Place::System, self.next_page);

        // No two are neighbours, so that one who goes too far finds nothing.
        self.next_page += 2 * PAGE_SIZE;
        self.ram.put_page(page);
        page
    }

    /// Where the entry of an address is in the lowest table, which is made if it is not there.
    pub fn entry_at(&mut self, va: u64) -> Physical {
        let profile = Profile::VRAM4;
        let mut table = self.root.table;

        for level in (1..4).rev() {
            let at = profile.entry_at(table, profile.index(va, level));
            let entry = Entry::from_bits(self.ram.word(at).unwrap());

            if entry.is_valid() {
                table = entry.target();
                continue;
            }
            table = Physical::new(Place::Local, self.next_table);
            self.next_table += PAGE_SIZE;
            self.ram.put_page(table);
            self.set_entry(at, Entry::to(table));
        }
        profile.entry_at(table, profile.index(va, 0))
    }

    pub fn set_entry(&self, at: Physical, entry: Entry) {
        self.ram.write(at, &entry.bits().to_le_bytes()).unwrap();
    }

    /// Gives the page of an address this entry.
    pub fn map(&mut self, va: u64, entry: Entry) {
        let at = self.entry_at(va);

        self.set_entry(at, entry);
    }

    /// Maps new pages of zeros from an address on, to be written.
    pub fn map_new(&mut self, va: u64, pages: u64) {
        for page in 0..pages {
            let memory = self.new_page();

            self.map(va + page * PAGE_SIZE, Entry::to(memory).writable());
        }
    }

    /// Where an address leads to, by a walk of the test's own.
    pub fn find(&self, va: u64) -> Option<Physical> {
        let mut at = self.root.table;

        for level in (0..4).rev() {
            let index = (va >> (12 + 9 * level)) & 511;
            let bits = self.ram.word(at.plus(index * 8))?;

            if bits & 1 == 0 || bits & 8 != 0 {
                return None;
            }
            at = Entry::from_bits(bits).target();
        }
        Some(at.plus(va % PAGE_SIZE))
    }

    /// Addresses and sizes of what some bytes are in each page.
    fn parts(va: u64, count: u64) -> impl Iterator<Item = (u64, u64)> {
        let end = va + count;

        std::iter::successors(Some(va), |at| Some((at | (PAGE_SIZE - 1)) + 1))
            .take_while(move |at| *at < end)
            .map(move |at| (at, end.min((at | (PAGE_SIZE - 1)) + 1) - at))
    }

    /// The bytes at an address.
    pub fn bytes(&self, va: u64, count: u64) -> Vec<u8> {
        Self::parts(va, count)
            .flat_map(|(va, count)| {
                let at = self.find(va).unwrap();

                self.ram.read(at, count as u32).unwrap()
            })
            .collect()
    }

    pub fn set_bytes(&self, va: u64, mut bytes: &[u8]) {
        for (va, count) in Self::parts(va, bytes.len() as u64) {
            let (part, rest) = bytes.split_at(count as usize);

            self.ram.write(self.find(va).unwrap(), part).unwrap();
            bytes = rest;
        }
    }

    pub fn word(&self, va: u64) -> u64 {
        self.ram.word(self.find(va).unwrap()).unwrap()
    }

    pub fn set_word(&self, va: u64, value: u64) {
        self.set_bytes(va, &value.to_le_bytes());
    }

    /// Writes dwords to an address.
    pub fn load(&self, va: u64, dwords: &[u32]) {
        let bytes: Vec<u8> = dwords
            .iter()
            .flat_map(|dword| dword.to_le_bytes())
            .collect();

        self.set_bytes(va, &bytes);
    }

    /// Puts a command buffer at [`BUFFER`] and submits it, with progress value 1.
    pub fn submit(&mut self, dwords: &[u32]) {
        self.load(BUFFER, dwords);
        self.submit_at(BUFFER, dwords.len() as u32 * 4);
    }

    /// Submits what is there, with progress value 1.
    pub fn submit_at(&mut self, va: u64, length: u32) {
        self.queue
            .submit(Submission {
                va,
                length,
                progress: Some(Progress {
                    va: PROGRESS,
                    value: 1,
                }),
            })
            .unwrap();
    }

    pub fn step(&mut self, budget: u32) -> Outcome {
        self.engine.step(
            &mut self.queue,
            &self.ram,
            &self.fences,
            &mut self.records,
            &self.clock,
            budget,
        )
    }

    /// Steps until there is something else than more to do.
    pub fn run(&mut self) -> Outcome {
        for _ in 0..10_000 {
            match self.step(SLICE) {
                Outcome::Ran => {}
                outcome => return outcome,
            }
        }
        Outcome::Ran
    }

    /// Runs a command buffer to its end.
    pub fn done(&mut self, dwords: &[u32]) {
        self.submit(dwords);

        let outcome = self.run();

        assert!(matches!(outcome, Outcome::Done(_)), "{outcome:x?}");
        assert_eq!(self.word(PROGRESS), 1);
        self.set_word(PROGRESS, 0);
    }
}
