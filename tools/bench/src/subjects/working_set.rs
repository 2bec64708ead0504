// SPDX-License-Identifier: MIT OR Apache-2.0
//! An engine goes through a working set that is smaller or larger than local memory. The process
//! evicts each piece with EvictOnlyIfNecessary, so the memory manager chooses what gives way.

use std::cell::Cell;
use std::time::{Duration, Instant};

use opendxg::pm4::Pm4;
use opendxg::{EvictFlags, PagingQueue, Residency};

use super::gpu::{Line, NODES};
use super::Bench;
use crate::adapter::SoftAdapter;
use crate::gpu::{make_resident, Buffer, Commands};
use crate::measure::{Participant, Plan, Runner, Subject};
use crate::result::Count;
use crate::rng::Rng;

/// Name of the group.
pub const GROUP: &str = "working-set";
/// Working sets in percent of local memory.
pub const PERCENT: [u64; 4] = [50, 100, 200, 400];
/// Bytes of a piece, which an engine fills while it is resident.
pub const PIECE: u64 = 256 << 10;
/// Bytes of local memory.
const LOCAL: u64 = 16 << 20;

/// One piece after the other, and again from the first: the worst case of least recently used.
pub const IN_TURN: &str = "in turn";
/// Seven of eight times a piece of the first eighth, else any.
pub const MOSTLY_FEW: &str = "mostly the same eighth";

/// Touches that are one sample, so that a sample has as many misses as there are on average.
const BATCH: u32 = 16;

/// Which piece is next.
pub struct Order {
    pieces: usize,
    next: usize,
    rng: Option<Rng>,
}

impl Order {
    /// Of so many pieces; by chance, or in turn.
    pub fn new(pieces: usize, by_chance: bool) -> Self {
        Self {
            pieces,
            next: 0,
            rng: by_chance.then(|| Rng::new(1)),
        }
    }

    /// All pieces, so that those are touched last that would be by now if this had gone on for
    /// long. The next one is then as at the start.
    fn warm_up(&mut self) -> Vec<usize> {
        self.next = 0;
        match self.rng {
            Some(_) => (0..self.pieces).rev().collect(),
            None => (0..self.pieces).collect(),
        }
    }

    fn next(&mut self) -> usize {
        match &mut self.rng {
            Some(rng) => match rng.below(8) {
                0 => rng.below(self.pieces),
                _ => rng.below(self.pieces.div_ceil(8)),
            },
            None => {
                let piece = self.next;
                self.next = (piece + 1) % self.pieces;
                piece
            }
        }
    }
}

struct Piece {
    memory: Buffer,
    fill: Commands,
}

/// A working set.
struct Walk<'a> {
    paging: &'a PagingQueue,
    line: &'a Line<'a>,
    pieces: Vec<Piece>,
    order: Order,
    /// What the touches of the last sample took, without the question where the pieces are.
    took: Duration,
    touched: &'a Cell<u64>,
    /// Of those, how many were not in local memory.
    missed: &'a Cell<u64>,
}

impl Walk<'_> {
    fn touch(&self, Piece { memory, fill }: &Piece) {
        make_resident(self.paging, &memory.allocation);
        self.line.run(fill);
        let all = [&memory.allocation];
        let gone = self
            .paging
            .device()
            .evict(&all, EvictFlags::ONLY_IF_NECESSARY);
        gone.expect("evict");
    }

    fn ask(&self, Piece { memory, .. }: &Piece) {
        self.touched.set(self.touched.get() + 1);
        let residency = memory.allocation.residency().expect("residency");
        if residency != Residency::GpuMemory {
            self.missed.set(self.missed.get() + 1);
        }
    }
}

impl Subject for Walk<'_> {
    /// Local memory is full of what other working sets have left there.
    fn begin(&mut self, _operations: usize) {
        let pieces = self.order.warm_up();
        let pieces = pieces.into_iter().map(|piece| &self.pieces[piece]);
        pieces.for_each(|piece| self.touch(piece));
    }

    fn run(&mut self) {
        self.took = Duration::ZERO;
        for _ in 0..BATCH {
            let piece = &self.pieces[self.order.next()];
            self.ask(piece);
            let began = Instant::now();
            self.touch(piece);
            self.took += began.elapsed();
        }
    }

    fn own_ns(&mut self) -> Option<u64> {
        Some(self.took.as_nanos() as u64)
    }

    fn batch(&self) -> u32 {
        BATCH
    }
}

/// Measures the group. The counts are pieces that had to come back; none while all of them fit.
pub fn measure(runner: &mut Runner, bench: &mut Bench, plan: Plan) -> Vec<Count> {
    let attributes = [("local_memory", &*LOCAL.to_string())];
    let Some((_adapter, device)) = SoftAdapter::new(&bench.dxg, GROUP, &attributes) else {
        let text = "working-set: no adapter with little memory can be made";
        bench.missing.push(text.into());
        return Vec::new();
    };
    let context = device.create_hw_context(NODES[0]);
    let context = context.expect("create a HW context");
    let line = Line::new(&context);
    let paging = device.create_paging_queue();
    let paging = paging.expect("create a paging queue");
    let ways = [(IN_TURN, false), (MOSTLY_FEW, true)];
    let kinds = PERCENT.iter().flat_map(|at| ways.map(|way| (*at, way)));
    let kinds: Vec<_> = kinds
        .map(|(at, way)| (at, way, Cell::new(0), Cell::new(0)))
        .collect();
    let all = kinds
        .iter()
        .map(|(at, (name, by_chance), touched, missed)| {
            let pieces = LOCAL * at / 100 / PIECE;
            let pieces: Vec<_> = (0..pieces).map(|_| piece(&paging)).collect();
            let walk = Walk {
                paging: &paging,
                line: &line,
                order: Order::new(pieces.len(), *by_chance),
                pieces,
                took: Duration::ZERO,
                touched,
                missed,
            };
            Participant::at(name, *at, walk)
        });
    let title = "256 KiB come to local memory, an engine fills them, they may go; \
                 the working set is N % of local memory";
    runner.group(GROUP, title, plan, all.collect());
    let counts = kinds.iter().map(|(at, (name, _), touched, missed)| Count {
        what: format!("pieces that came back, working set {at} %, {name}"),
        of: touched.get(),
        found: missed.get(),
        expected: (*at < 100).then_some(0),
    });
    counts.collect()
}

fn piece(paging: &PagingQueue) -> Piece {
    let resource = paging.device().new_resource().local(PIECE);
    let allocation = resource.create_one().expect("create an allocation");
    let memory = Buffer::map(paging, allocation, PIECE);
    let fill = Pm4::new().fill(memory.address, 0x5a5a_5a5a, PIECE);
    let fill = Commands::new(paging, &fill);
    Piece { memory, fill }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_turn_comes_to_each_piece() {
        let mut order = Order::new(3, false);
        let found: Vec<_> = (0..7).map(|_| order.next()).collect();
        assert_eq!(found, [0, 1, 2, 0, 1, 2, 0]);
        // The first one is what was not touched for longest.
        assert_eq!(order.warm_up(), [0, 1, 2]);
        assert_eq!(order.next(), 0);
    }

    #[test]
    fn most_touches_are_of_the_first_eighth_and_all_pieces_are_touched() {
        let mut order = Order::new(64, true);
        let mut touches = [0; 64];
        (0..6400).for_each(|_| touches[order.next()] += 1);
        let few: usize = touches[..8].iter().sum();
        assert!((5500..5900).contains(&few), "{few}"); // 7/8 + 1/64
        assert!(touches.iter().all(|&count| count > 0));
        assert_eq!(order.warm_up().last(), Some(&0));
    }
}
