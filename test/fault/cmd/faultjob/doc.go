// Command faultjob is a job that records its own history: it waits in epochs and
// writes down each of them, each attempt, and what it was asked.
//
//	faultjob --journal FILE --epochs N [--epoch 150ms] [--way leave|say|end] [--hurry FILE]
//	         [--late 1s] [--status N] [--term] [--rerun]
//
// SIGUSR1 asks it to save. With leave it saves and exits with 85, with say it saves,
// prints "saved" and goes on, with end it saves, prints "saved" and comes to its own
// end within --late: its end falls into the move that asked. A job whose end is brought
// forward notes which epoch is its last. The journal is the
// checkpoint, too: an attempt goes on after the last epoch that was saved. Where an
// attempt before still runs it waits for it and notes that there were two at a time.
//
// With --term, SIGTERM and SIGINT end it: an attempt that was never asked saves first, and
// one that was dies with what it did since. With --rerun an attempt that finds the work
// done notes that it runs, until somebody stops it; else it goes on after the last epoch that was
// saved.
//
// With LEARNING_RATE in its environment its accuracy depends on that and the epoch alone, so that it can be the trial of
// a search.
//
// Exit status: 0 done, 1 the journal cannot be used, 2 a flag is not usable, 85 saved
// and left, 143 told to end, that of --status where it is done and one was asked for.
package main
