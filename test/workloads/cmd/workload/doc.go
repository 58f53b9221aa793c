// Command workload is real work to tune: one kind of program a subcommand, each
// running in epochs, saving and leaving when SIGUSR1 asks for it, and going on
// from there when it is started again.
//
//	workload KIND [flags]
//
// THREADS sets the number of threads (1 where it is not set), BATCH_SIZE the
// examples per update of the kinds that learn in batches. Both are read once, at
// the start. Exit status: 0 done, 1 failed, 2 a flag, a variable or the checkpoint
// is not usable, 85 saved after SIGUSR1, 143 saved after SIGTERM.
package main
