// Command workload is real work to tune, and work that only waits. Each kind runs in
// epochs, saves and exits when SIGUSR1 asks for it, and continues from its checkpoint when
// it starts again.
//
//	workload KIND [flags]
//
// Input: the command line, THREADS (1 where it is not set) and BATCH_SIZE (for the kinds that
// learn in batches), both read once. Output: one line an epoch, a checkpoint, and the exit
// status: 0 done, 1 failed, 2 a flag, a variable or the checkpoint is unusable, 85 saved
// after SIGUSR1, 143 saved after SIGTERM. A run that continues never repeats an epoch and
// reaches, bit for bit, what an uninterrupted run reaches, on any number of threads.
package main
