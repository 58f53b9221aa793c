// Package move is the state machine that carries an intent to its end: checkpoint, stop,
// change, start.
//
// An intent and a driver's view of its job go in; the one step that was taken comes out.
// The package never talks to a scheduler, never decides whether a job should change, and
// keeps nothing but what a Record holds.
//
// # The machine
//
// Machine.Advance reads the job (Scheduler.Look), asks the pure function Next what to do,
// writes the record where an effect follows, and makes the driver do one verb:
//
//	phase      what is on record             verb      answer
//	asking     it is to be asked to save     Ask       checkpointing
//	           it may have saved             Saved     checkpointing
//	stopping   it saved, or is discarded     Stop      checkpointing
//	           it left                       Keep      stopped
//	stopped    it waits for the intent       Plan      changed
//	           what its next attempt gets    Change
//	changed    it has the new settings       Start     started
//
// A job that waits when the intent comes begins in phase stopped. Where the scheduler ends
// an attempt by changing its job (View.Direct), Change takes the place of Stop and Keep.
// Each end of an intent is on record before it is answered, and is answered for ever.
//
// # Why a crash at any point is safe
//
// The process can die between any two instructions. It loses what it had in memory, and
// nothing else: the scheduler goes on, and the record is the one that was written last.
// The next process calls Advance with the same intent. Five rules make that safe.
//
//  1. Look before each step. What was done is read from the scheduler, not remembered. The
//     record holds only what the scheduler does not say: that we were the ones who asked.
//  2. Write before each effect. An effect of ours is never seen without a record that says
//     that it was to come (phases stopping and changed, and the intent itself). So no
//     effect is taken for the owner's word, and no word of the owner for an effect.
//  3. Each verb can be repeated. Asked twice, a job saves twice. An end does nothing to an
//     attempt that has ended. A change to what the job already has does nothing, and
//     neither does a start of a job that has started. A crash between an effect and its
//     record therefore repeats the effect.
//  4. Nothing that has ended runs again. Stop and Change are conditional at the scheduler
//     (requeue Incomplete, compare-and-set, the supervisor's lock). What the condition
//     cannot see, the driver looks for after the change and undoes (View.End).
//  5. Nothing waits for ever. Every wait that the machine brings about ends by itself, at
//     the scheduler or after Overdue. A process that never comes back costs time only.
//
// So a record may be behind the scheduler by one effect, and never ahead of it by more
// than one intention. Next needs to be right for those two cases only, and its model test
// walks through all of them.
package move
