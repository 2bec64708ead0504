/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A native fence: CurrentValue, MonitoredValue and who waits (FEN-67 to FEN-90; the letters are
 * those of section 3.4 of the specification of fences).
 *
 * For Spin. tools/verify/run names the scenes (one of SIGNALS, CANCEL, REWIND, PULSE, SHADOW,
 * GPU_WAIT, DESTROY, LOG is defined) and the mutants (names that begin with NO_ or BAD_), and what has to come
 * out.
 *
 * Every processor has a store buffer of one entry, so a load may pass an earlier store. That is
 * all that x86 allows, and what the protocol has to fear: its shape is store, barrier, load on
 * both sides. What a weaker machine allows besides is for loom and the litmus tests.
 */

#define NONE 255	/* MonitoredValue when nobody waits */
#define WAITERS 2

/* Who has a store buffer. */
#define ENGINE_A 0
#define ENGINE_B 1
#define WAITER 2	/* and the next */
#define WORKER 4
#define CPU 5
#define CMP 6
#define PROCESSORS 7

/* Memory, as all see it. */
byte current = 0;
byte monitored = NONE;
byte shadow = NONE;

#define OF_CURRENT 1
#define OF_MONITORED 2
#define OF_SHADOW 3
#define OF_SLEEPING 4
#define OF_HEADER 5
#define OF_ENTRY 6	/* and the next */

byte buffered[PROCESSORS];	/* a word, or 0 */
byte buffered_value[PROCESSORS];

/* What the lock of the fence guards. */
bool locked = false;
byte written = NONE;		/* what MonitoredValue was last set to */
bool queued[WAITERS];
byte wakes[WAITERS];
bool closing = false;

/* The interrupt line, which may merge records, and the worker's list of fences. */
bool interrupt = false;
byte interrupts, signals, updates;
bool listed = true;
byte references = 0;
bool freed = false;

/* A queue with a wait packet: whether it sleeps, as the CPU sees it, and has to look again. */
bool sleeping = false;
bool kicked = false;
bool ran = false;

/* The mailbox of the CMP. */
bool asked = false;
byte asked_value;

/*
 * The log of the signals of a queue (FEN-97). The header counts the entries that were written; each
 * is the value of our fence, or OTHER for one of another fence.
 */
#define ENTRIES 2
#define OTHER 254

byte header;
byte entries[ENTRIES];
byte next;			/* what the worker reads next */

#define value_of(waiter) (waiter + 1)

proctype store_buffer(byte me)
{
end:	do
	:: atomic {
		buffered[me] != 0 ->
		if
		:: buffered[me] == OF_CURRENT -> current = buffered_value[me]
		:: buffered[me] == OF_MONITORED -> monitored = buffered_value[me]
		:: buffered[me] == OF_SHADOW -> shadow = buffered_value[me]
#ifdef LOG
		:: buffered[me] == OF_HEADER -> header = buffered_value[me]
		:: buffered[me] >= OF_ENTRY ->
			entries[buffered[me] - OF_ENTRY] = buffered_value[me]
#endif
		:: else -> sleeping = buffered_value[me]
		fi;
		buffered[me] = 0;
		buffered_value[me] = 0
	   }
	od
}

inline store(me, word, value)
{
	atomic { buffered[me] == 0 -> buffered[me] = word; buffered_value[me] = value }
}

#define load_current(me) (buffered[me] == OF_CURRENT -> buffered_value[me] : current)

inline barrier(me)
{
	buffered[me] == 0
}

/* To take the lock flushes nothing. To give it back is a store, behind all earlier ones. */
inline lock()
{
	atomic { !locked -> locked = true }
}

inline unlock(me)
{
	atomic { buffered[me] == 0 -> locked = false }
}

#define wanted (queued[0] -> value_of(0) - 1 : (queued[1] -> value_of(1) - 1 : NONE))

/* DxgkDdiUpdateMonitoredValues. */
inline update_monitored(me)
{
	assert(!freed);
	written = wanted;
	updates++;
#ifdef SHADOW
	atomic { !asked -> asked_value = written; asked = true };
	!asked;
#else
#ifdef BAD_MONITORED_IS_THE_VALUE
	store(me, OF_MONITORED, (written == NONE -> NONE : written + 1));
#else
	store(me, OF_MONITORED, written);
#endif
#ifndef NO_UPDATE_BARRIER
	barrier(me);
#endif
#endif
}

inline wake(waiter)
{
	queued[waiter] = false;
	wakes[waiter]++
}

/* Takes out who is satisfied by c, a variable of the caller. */
inline reap(me)
{
	do
	:: true ->
		atomic {
			if
			:: queued[0] && c >= value_of(0) -> wake(0)
			:: else
			fi;
			if
			:: queued[1] && c >= value_of(1) -> wake(1)
			:: else
			fi
		};
		if
		:: wanted != written ->
			update_monitored(me);
#ifdef NO_RESAMPLE_IN_REAP
			break
#else
			c = load_current(me)
#endif
		:: else -> break
		fi
	od
}

proctype engine(byte me; byte value)
{
	byte m;

	store(me, OF_CURRENT, value);			/* G1 */
#ifndef NO_ENGINE_BARRIER
	barrier(me);					/* G3 */
#endif
#ifdef SHADOW
	m = shadow;					/* G4 */
#else
	m = monitored;
#endif
	signals++;
	if						/* G5 */
	:: value > m -> atomic { interrupt = true; interrupts++ }
	:: else
	fi
}

#ifdef PULSE
/* FEN-82. */
proctype pulse(byte me)
{
	byte m, step;

	do
	:: step < 3 ->
		store(me, OF_CURRENT, (step == 1 -> 0 : 2));
		barrier(me);
		m = monitored;
		signals++;
		if
		:: (step == 1 -> 0 : 2) > m -> atomic { interrupt = true; interrupts++ }
		:: else
		fi;
		step++
	:: step == 2 -> break
	:: step == 3 -> break
	od
}
#endif

#ifdef LOG
/* An entry, and then the header that says so. */
inline log(me, number, value)
{
	store(me, OF_ENTRY + (number % ENTRIES), value);
	store(me, OF_HEADER, number + 1)
}

/* An engine logs its signal, and then more signals of another fence than the log holds. */
proctype logging_engine(byte me; byte value)
{
	byte m;

	store(me, OF_CURRENT, value);			/* G1 */
	log(me, 0, value);				/* G2 */
	barrier(me);					/* G3 */
	m = monitored;					/* G4 */
	signals++;
	if						/* G5 */
	:: value > m -> atomic { interrupt = true; interrupts++ }
	:: else
	fi;
	log(me, 1, OTHER);
	log(me, 2, OTHER);
	log(me, 3, OTHER)
}

/*
 * The worker reads what is new, and looks at CurrentValue only if entries are lost (FEN-99). Those
 * that the engine may have begun to write over are lost (GPU-79).
 */
inline read_log()
{
	last = header;
	lost = false;
	if
	:: last - next > ENTRIES -> lost = true; next = last - ENTRIES
	:: else
	fi;
	do
	:: next != last ->
		c = entries[next % ENTRIES];
#ifdef NO_SECOND_HEADER
		skip;
#else
		if
		:: header - next >= ENTRIES -> lost = true; c = OTHER
		:: else
		fi;
#endif
		next++;
		if
		:: c != OTHER -> reap(WORKER)
		:: else
		fi
	:: else -> break
	od;
#ifndef NO_LOOK_AFTER_LOSS
	if
	:: lost -> c = load_current(WORKER); reap(WORKER)
	:: else
	fi
#endif
}
#endif

proctype waiter(byte i)
{
	byte c;

#ifdef NO_WAIT_LOCK
	skip;
#else
	lock();						/* A0 */
#endif
	c = load_current(WAITER + i);			/* A1 */
	if
	:: closing	/* The handle is gone. */
	:: !closing && c >= value_of(i) -> wakes[i]++
	:: !closing && c < value_of(i) ->
		queued[i] = true;			/* A2 */
		if					/* A3 */
		:: wanted != written -> update_monitored(WAITER + i)
		:: else
		fi;
#ifndef NO_RESAMPLE
		c = load_current(WAITER + i);		/* A4 */
		reap(WAITER + i)
#endif
	fi;
#ifndef NO_WAIT_LOCK
	unlock(WAITER + i);				/* A5 */
#endif
#if defined(CANCEL) || defined(DESTROY)
	/* A wait that times out, or not. */
end:	if
	:: wakes[i] > 0 || closing
	:: i == 0 ->
		lock();
		if
		:: queued[i] ->
			queued[i] = false;
#ifndef NO_UPDATE_ON_CANCEL
			if
			:: wanted != written ->
				update_monitored(WAITER + i);
				c = load_current(WAITER + i);
				reap(WAITER + i)
			:: else
			fi
#endif
		:: else
		fi;
		unlock(WAITER + i)
	fi
#endif
}

/* The worker of the adapter. A record that names no fence, or many records in one. */
proctype worker()
{
	byte c;
#ifdef LOG
	byte last;
	bool lost;
#endif

end:	do
	:: atomic {
		interrupt ->
#ifndef BAD_LATE_CLEAR
		interrupt = false;
#endif
		if
		:: listed -> references++
		:: else -> goto end
		fi
	   };
		barrier(WORKER);
#ifdef NO_WORKER_LOCK
		skip;
#else
		lock();
#endif
		assert(!freed);
#ifdef LOG
		read_log();
#else
		c = load_current(WORKER);
		reap(WORKER);
#endif
#ifndef NO_WORKER_LOCK
		unlock(WORKER);
#endif
#ifdef BAD_LATE_CLEAR
		interrupt = false;
#endif
		references--
	od
}

/* D3DKMTSignalSynchronizationObjectFromCpu, also one that goes back. */
proctype cpu_signal(byte value)
{
	byte c;

	lock();						/* S0 */
	store(CPU, OF_CURRENT, value);			/* S1 */
#ifndef NO_CPU_BARRIER
	barrier(CPU);					/* S2 */
#endif
#ifdef GPU_WAIT
	/* The last step of DxgkDdiUpdateCurrentValuesFromCpu: a queue that sleeps looks again. */
	if
	:: sleeping -> kicked = true
	:: else
	fi;
#endif
	c = value;					/* S3 */
	reap(CPU);
	c = load_current(CPU);
	reap(CPU);
	unlock(CPU)					/* S4 */
}

/* A wait packet for value 1: the queue goes to the list of those that sleep, and looks again. */
proctype gpu_wait()
{
	if
	:: load_current(ENGINE_A) >= 1
	:: else ->
		store(ENGINE_A, OF_SLEEPING, true);
#ifndef NO_SLEEP_BARRIER
		barrier(ENGINE_A);
#endif
		do
#ifndef NO_SECOND_LOOK
		:: load_current(ENGINE_A) >= 1 -> break
#endif
		:: load_current(ENGINE_A) < 1 -> kicked; kicked = false
#ifdef NO_SECOND_LOOK
		   ; break
#endif
		od
	fi;
	ran = true
}

#ifdef SHADOW
/* FEN-75. */
proctype cmp()
{
end:	do
	:: asked ->
		store(CMP, OF_SHADOW, asked_value);
#ifndef NO_CMP_BARRIER
		barrier(CMP);
#endif
#ifndef NO_CMP_LOOK
		if
		:: current > asked_value ->
			atomic { interrupt = true; interrupts++ }
		:: else
		fi;
#endif
		atomic { buffered[CMP] == 0 -> asked = false }
	od
}
#endif

#ifdef DESTROY
/* The last handle goes: no new waits, and the fence when nobody waits any more. */
proctype destroy()
{
	lock();
	closing = true;
	unlock(CPU);
	atomic { !queued[0] && !queued[1] && !locked -> listed = false };
#ifndef NO_REFERENCE
	references == 0;
#endif
	freed = true
}
#endif

#ifdef SHADOW
#define monitored_now shadow
#else
#define monitored_now monitored
#endif

/* When nothing can happen any more (FEN-80). */
proctype silence()
{
	timeout ->
#ifdef GPU_WAIT
	assert(ran);
#endif
	assert(!(queued[0] && current >= value_of(0)));
	assert(!(queued[1] && current >= value_of(1)));
	assert(monitored_now == wanted);
	assert(wakes[0] <= 1 && wakes[1] <= 1);
	assert(interrupts <= signals + updates);
#ifdef DESTROY
	assert(freed || queued[0] || queued[1])
#endif
}

/* Who is satisfied and stays so is woken. */
#define due(i) (queued[i] && current >= value_of(i))
ltl woken { !(<> [] due(0)) && !(<> [] due(1)) }

init {
	atomic {
		run store_buffer(WAITER);
		run store_buffer(WAITER + 1);
		run store_buffer(WORKER);
		run worker();
		run silence();
#if defined(GPU_WAIT)
		run store_buffer(ENGINE_A);
		run store_buffer(CPU);
		run gpu_wait();
		run cpu_signal(1)
#elif defined(LOG)
		run store_buffer(ENGINE_A);
		run waiter(0);
		run waiter(1);
		run logging_engine(ENGINE_A, 2)
#elif defined(PULSE)
		/* An engine that takes back what it has stored, and comes again, or not. */
		run store_buffer(ENGINE_A);
		run waiter(0);
		run waiter(1);
		run pulse(ENGINE_A)
#elif defined(REWIND)
		/* An engine, and a CPU that goes back, or comes first. */
		run store_buffer(ENGINE_A);
		run store_buffer(CPU);
		run waiter(0);
		run waiter(1);
		run engine(ENGINE_A, 2);
		if
		:: run cpu_signal(0)
		:: run cpu_signal(1)
		fi
#elif defined(DESTROY)
		run store_buffer(ENGINE_A);
		run store_buffer(CPU);
		run waiter(0);
		run engine(ENGINE_A, 1);
		run destroy()
#else
		/* Two engines, in any order, so that values also go back. */
		run store_buffer(ENGINE_A);
		run store_buffer(ENGINE_B);
		run waiter(0);
		run waiter(1);
#ifdef CANCEL
		/* Or one, or none, so that nobody mends what a waiter leaves behind. */
		if
		:: run engine(ENGINE_A, 1)
		:: run engine(ENGINE_B, 2)
		:: run engine(ENGINE_A, 1); run engine(ENGINE_B, 2)
		:: skip
		fi
#else
		run engine(ENGINE_A, 1);
		run engine(ENGINE_B, 2);
#endif
#ifdef SHADOW
		run store_buffer(CMP);
		run cmp()
#endif
#endif
	}
}
