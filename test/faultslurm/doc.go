// Package faultslurm injects faults into a real Slurm on loopback with controllers
// that move jobs, and counts the outcome of every job.
//
// Input: a number of faults and a seed. Output: a table, for each kind of fault
// how often it struck, how many jobs it touched, and how many of them ended exactly
// once. Every job keeps its own journal, which knows of each epoch and each attempt; the verdict is
// the journal's and Slurm's, never the controller's. A fault that met no job in the middle of
// anything is not counted. A job that has ended "in the middle" of a move that a record still knows
// is not counted either. A round ends where three faults in a row met nothing, and what they were
// is tried in the next one, among others. It begins while Slurm is still about the last one's jobs;
// each round is a line on standard error.
//
// A slurmctld that is killed forgets what it acknowledged and had not saved; it saves at
// most every five seconds. So it is killed in two ways. When it has saved, with the controllers
// suspended in the middle of moves: then nothing may be lost. And in its work: then a job that did
// not end once, and that it certainly forgot something of (what it showed before and not after, or
// was told after it last saved), is Slurm's own and has its own column. So is one that is left
// behind, and not even root can change: the index that accounting gave its run is one of the things
// that are forgotten.
//
// A job that its owner cancels while a requeue is ending its processes has ended once,
// though accounting is left with REQUEUED (leftRequeued says what was seen); how many did is
// printed below the table.
//
// A job whose node was restarted while it was ending stays COMPLETING until slurmctld asks
// again, which is after KillWait and twice MessageTimeout, at the next full minute: with
// Slurm's defaults, which are the cluster's here, after about a minute and a half.
//
// A second campaign has searches instead of jobs that are moved: a round is one search, and the verdict is on each of
// its trials (fault.Judge).
//
// It holds only tests. Rounds, journals and the program that the jobs run are package
// fault's, the cluster is test/slurmcluster's; where there can be none the test is
// skipped and says why. It never judges how well a job was tuned.
package faultslurm
