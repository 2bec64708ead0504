// SPDX-License-Identifier: GPL-2.0

//! What each packet means: a function from its fields to an operation.
//!
//! The names of fields are those of AMD's public headers. Fields that are not looked at are
//! ignored, as the table of the specification says.

use super::{
    fault::Illegal,
    fields::{
        bit,
        bits,
        Fields, //
    },
    log::{
        LogRequest,
        LogType, //
    },
    operation::{
        Atomic,
        AtomicOp,
        Entries,
        FenceSignal,
        FenceValue,
        FenceWait,
        Frame,
        Function,
        Interrupt,
        Move,
        Operation,
        Release,
        Source,
        Transfer,
        Wait,
        Width,
        Word,
        Write,
        WriteLog, //
    },
    translation::{
        Scope,
        ALL_PROCESSES, //
    },
};

/// What decoding gives.
type Decoded = Result<Operation, Illegal>;

impl Width {
    /// Bytes of a word.
    fn bytes(self) -> u64 {
        match self {
            Self::Dword => 4,
            Self::Qword => 8,
        }
    }

    /// 64 bits if a bit is set.
    fn wide_if(bit: bool) -> Self {
        if bit {
            Self::Qword
        } else {
            Self::Dword
        }
    }
}

/// Refuses a field whose value is not one of those that are defined.
fn check(is_defined: bool) -> Result<(), Illegal> {
    if is_defined {
        Ok(())
    } else {
        Err(Illegal::Field)
    }
}

/// The lowest 16 bits of a dword.
fn low16(dword: u32) -> u16 {
    let [low, high, ..] = dword.to_le_bytes();

    u16::from_le_bytes([low, high])
}

/// NOP: whatever it carries is for readers of the buffer.
pub(super) fn nop(_: &Fields) -> Decoded {
    Ok(Operation::Nothing)
}

/// ACQUIRE_MEM: there are no caches to be told anything.
pub(super) fn acquire_mem(_: &Fields) -> Decoded {
    Ok(Operation::Barrier)
}

/// INDIRECT_BUFFER: goes on in another buffer.
pub(super) fn indirect_buffer(fields: &Fields) -> Decoded {
    let control = fields.dword(3);
    let frame = Frame {
        va: fields.address(1, 4)?,
        dwords: bits(control, 19, 0),
    };

    // PRIV.
    if bit(control, 31) {
        return Err(Illegal::Privilege);
    }
    // VALID.
    check(bit(control, 23))?;
    // CHAIN.
    if bit(control, 20) {
        Ok(Operation::Chain(frame))
    } else {
        Ok(Operation::Call(frame))
    }
}

/// WRITE_DATA: stores dwords of the packet.
pub(super) fn write_data(fields: &Fields) -> Decoded {
    let control = fields.dword(1);
    let to = fields.address(2, 4)?;
    let from = fields.rest_va;
    // ADDR_INCR.
    let fixed = bit(control, 16);

    // DST_SEL.
    check(matches!(bits(control, 11, 8), 2 | 5))?;
    if fields.rest == 2 && to % 8 == 0 && !fixed {
        return Ok(Operation::WriteQword { from, to });
    }
    Ok(Operation::Write(Write {
        from,
        to,
        dwords: fields.rest,
        fixed,
    }))
}

/// DMA_DATA: a copy or a fill.
pub(super) fn dma_data(fields: &Fields) -> Decoded {
    let control = fields.dword(1);
    let command = fields.dword(6);
    let to = fields.qword(4);
    let bytes = bits(command, 25, 0);
    // DAIC and SAIC.
    let fixed = bit(command, 29);
    let source_fixed = bit(command, 28);

    // DST_SEL.
    check(matches!(bits(control, 21, 20), 0 | 3))?;
    // SAS and DAS.
    check(bits(command, 27, 26) == 0)?;

    let source = match bits(control, 30, 29) {
        0 | 3 => Source::Memory {
            va: fields.qword(2),
            fixed: source_fixed,
        },
        2 => Source::Pattern(fields.dword(2)),
        _ => return Err(Illegal::Field),
    };
    // Bytes are moved where both addresses advance, dwords otherwise.
    let is_aligned = to % 4 == 0 && bytes % 4 == 0;
    let is_right = match source {
        Source::Pattern(_) => is_aligned,
        Source::Memory { va, fixed: true } => is_aligned && va % 4 == 0,
        Source::Memory { va, fixed: false } => !fixed || (is_aligned && va % 4 == 0),
    };

    if !is_right {
        return Err(Illegal::Alignment);
    }
    Ok(Operation::Transfer(Transfer {
        source,
        to,
        fixed,
        bytes,
    }))
}

/// COPY_DATA: moves one word.
pub(super) fn copy_data(fields: &Fields) -> Decoded {
    let control = fields.dword(1);
    // COUNT_SEL.
    let width = Width::wide_if(bit(control, 16));
    // SRC_SEL.
    let source = match bits(control, 3, 0) {
        1 | 2 => Word::Memory(fields.address(2, width.bytes())?),
        5 => Word::Value(fields.qword(2)),
        9 => Word::Clock,
        _ => return Err(Illegal::Field),
    };

    // DST_SEL.
    check(matches!(bits(control, 11, 8), 2 | 5))?;
    Ok(Operation::Move(Move {
        source,
        to: fields.address(4, width.bytes())?,
        width,
    }))
}

/// The first dword of both waits.
fn wait_function(control: u32) -> Result<Function, Illegal> {
    // MEM_SPACE and OPERATION.
    check(bits(control, 5, 4) == 1)?;
    check(matches!(bits(control, 7, 6), 0 | 3))?;
    match bits(control, 2, 0) {
        0 => Ok(Function::Always),
        1 => Ok(Function::Less),
        2 => Ok(Function::LessOrEqual),
        3 => Ok(Function::Equal),
        4 => Ok(Function::NotEqual),
        5 => Ok(Function::GreaterOrEqual),
        6 => Ok(Function::Greater),
        _ => Err(Illegal::Field),
    }
}

/// WAIT_REG_MEM: waits for 32 bits.
pub(super) fn wait_reg_mem(fields: &Fields) -> Decoded {
    Ok(Operation::Wait(Wait {
        function: wait_function(fields.dword(1))?,
        va: fields.address(2, 4)?,
        width: Width::Dword,
        reference: fields.dword(4).into(),
        mask: fields.dword(5).into(),
        interval: low16(fields.dword(6)),
    }))
}

/// WAIT_REG_MEM64: waits for 64 bits.
pub(super) fn wait_reg_mem64(fields: &Fields) -> Decoded {
    Ok(Operation::Wait(Wait {
        function: wait_function(fields.dword(1))?,
        va: fields.address(2, 8)?,
        width: Width::Qword,
        reference: fields.qword(4),
        mask: fields.qword(6),
        interval: low16(fields.dword(8)),
    }))
}

/// RELEASE_MEM: a word and an interrupt after all that is before.
pub(super) fn release_mem(fields: &Fields) -> Decoded {
    let select = fields.dword(2);

    // DST_SEL.
    check(matches!(bits(select, 17, 16), 0 | 1))?;

    // INT_SEL. What is stored is confirmed before any interrupt, so 1, 2 and 4 are the same.
    let interrupt = match bits(select, 26, 24) {
        0 | 3 => Interrupt::Never,
        1 | 2 | 4 => Interrupt::MonitoredFence,
        // Nothing is stored: the address is that of MonitoredValue (GPU-45).
        6 if bits(select, 31, 29) == 0 => Interrupt::NativeFence {
            monitored_value: fields.address(3, 8)?,
            value: fields.qword(5),
        },
        _ => return Err(Illegal::Field),
    };
    let data = |source, width: Width| {
        Ok(Some(Move {
            source,
            to: fields.address(3, width.bytes())?,
            width,
        }))
    };
    let data = match bits(select, 31, 29) {
        0 => None,
        1 => data(Word::Value(fields.qword(5)), Width::Dword)?,
        2 => data(Word::Value(fields.qword(5)), Width::Qword)?,
        3 => data(Word::Clock, Width::Qword)?,
        _ => return Err(Illegal::Field),
    };

    Ok(Operation::Release(Release { data, interrupt }))
}

/// ATOMIC_MEM. The forms with and without a result do the same: there is nowhere to return it to.
pub(super) fn atomic_mem(fields: &Fields) -> Decoded {
    const NO_RETURN: u32 = 0x40;

    let control = fields.dword(1);
    let op = match bits(control, 6, 0) & !NO_RETURN {
        0x27 => AtomicOp::Swap,
        0x28 => AtomicOp::CompareSwap,
        0x2f => AtomicOp::Add,
        0x30 => AtomicOp::Sub,
        0x34 => AtomicOp::Max,
        0x35 => AtomicOp::And,
        0x36 => AtomicOp::Or,
        _ => return Err(Illegal::Field),
    };
    // COMMAND. Only a comparison can be waited for.
    let op = match (bits(control, 11, 8), op) {
        (0, op) => op,
        (1, AtomicOp::CompareSwap) => AtomicOp::CompareSwapLoop,
        _ => return Err(Illegal::Field),
    };

    Ok(Operation::Atomic(Atomic {
        op,
        va: fields.address(2, 8)?,
        source: fields.qword(4),
        expected: match op {
            AtomicOp::CompareSwap | AtomicOp::CompareSwapLoop => fields.qword(6),
            _ => 0,
        },
        interval: low16(fields.dword(8)),
    }))
}

/// COND_EXEC: skips what follows if a word is 0.
pub(super) fn cond_exec(fields: &Fields) -> Decoded {
    check(fields.dword(3) == 0)?;
    Ok(Operation::SkipIfZero {
        va: fields.address(1, 4)?,
        dwords: fields.dword(4),
    })
}

/// INVALIDATE_TLBS: drops translations of a process.
pub(super) fn invalidate_tlbs(fields: &Fields) -> Decoded {
    // PASID.
    let process = low16(bits(fields.dword(1), 20, 5));

    Ok(Operation::Invalidate(match process {
        ALL_PROCESSES => Scope::All,
        process => Scope::Process(process),
    }))
}

/// ODX_TRAP: something for the miniport.
pub(super) fn odx_trap(fields: &Fields) -> Decoded {
    check(fields.dword(4) == 0)?;
    Ok(Operation::Trap {
        class: fields.dword(1),
        argument: fields.qword(2),
    })
}

/// What both packets of native fences have, whose flags may have these bits. Without the flag for
/// the log nobody looks at the handle and the index.
fn fence_value(fields: &Fields, flags: u32) -> Result<(FenceValue, Option<LogRequest>), Illegal> {
    /// It becomes an entry of the log.
    const LOG: u32 = 1 << 0;

    let is_logged = fields.dword(1) & LOG != 0;

    check(fields.dword(1) & !(flags | LOG) == 0)?;
    check(fields.dword(8) == 0 && fields.dword(9) == 0)?;
    Ok((
        FenceValue {
            va: fields.address(2, 8)?,
            value: fields.qword(4),
        },
        is_logged.then(|| LogRequest::of_packet(fields.dword(6), fields.dword(7))),
    ))
}

/// ODX_SIGNAL_FENCE: a native fence has a new value.
pub(super) fn odx_signal_fence(fields: &Fields) -> Decoded {
    /// Nobody is woken.
    const NO_INTERRUPT: u32 = 1 << 1;

    let (fence, log) = fence_value(fields, NO_INTERRUPT)?;

    Ok(Operation::SignalFence(FenceSignal {
        fence,
        log,
        may_interrupt: fields.dword(1) & NO_INTERRUPT == 0,
    }))
}

/// ODX_WAIT_FENCE: waits for a value of a native fence.
pub(super) fn odx_wait_fence(fields: &Fields) -> Decoded {
    let (fence, log) = fence_value(fields, 0)?;

    Ok(Operation::WaitFence(FenceWait { fence, log }))
}

/// ODX_WRITE_LOG: an entry of a log about what earlier packets did.
pub(super) fn odx_write_log(fields: &Fields) -> Decoded {
    /// It tells when the last wait of the queue was first tried.
    const TAKE_OBSERVED: u32 = 1 << 0;

    let select = fields.dword(1);
    let ty = LogType::of_packet(bits(select, 7, 0), bits(select, 15, 8)).ok_or(Illegal::Field)?;
    let takes_observed = fields.dword(6) & TAKE_OBSERVED != 0;

    check(bits(select, 31, 16) == 0 && fields.dword(6) & !TAKE_OBSERVED == 0)?;
    check(fields.dword(7) == 0 && (ty == LogType::Waits || !takes_observed))?;
    Ok(Operation::WriteLog(WriteLog {
        ty,
        value: fields.qword(3),
        request: LogRequest::of_packet(fields.dword(2), fields.dword(5)),
        takes_observed,
    }))
}

/// ODX_DELAY: time that goes by.
pub(super) fn odx_delay(fields: &Fields) -> Decoded {
    Ok(Operation::Delay(fields.dword(1)))
}

/// ODX_PT_WRITE: entries of a page table, each the last one and an increment.
pub(super) fn odx_pt_write(fields: &Fields) -> Decoded {
    check(fields.dword(8) == 0)?;
    Ok(Operation::Entries(Entries {
        to: fields.address(2, 8)?,
        count: fields.dword(1),
        entry: fields.qword(4),
        increment: fields.qword(6),
    }))
}
