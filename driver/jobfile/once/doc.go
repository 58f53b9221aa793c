// Package once wraps a command so that its work is done once.
//
// Input: a command line. Output: one that runs it by /bin/sh: where the command ended with
// 0 it leaves a mark, and where it finds the mark of the same run it ends with 0 at once.
// The package itself runs nothing.
//
// Nomad runs a finished batch job again when its registration is changed, and its
// compare-and-set does not see that a job has finished. So a change of a running job can run
// finished work again, and only the job itself can know better.
//
// Each run has its own name, so that tomorrow's submission is not taken for today's finished
// one. A changed registration keeps the name. It also stays if a user makes Nomad start the
// registered job again: for another run he submits it again. The mark is an empty file
// "pitchpipe-done-RUN-JOB-INDEX", where JOB is the job's own id, which each dispatched or periodic
// child has, and INDEX that of the allocation. The wrapper leaves it in, and looks for it in
//   - the directory that the task's variable PITCHPIPE_MARKS names: one that every node
//     sees, as the one in which the job keeps its checkpoint. This is right on all nodes
//     and for all drivers that see it.
//   - alloc/data of the allocation. An allocation that replaces a running one gets it
//     where the group's ephemeral_disk is sticky; one that runs finished work again has
//     no predecessor to Nomad and gets nothing.
//   - alloc/data of the other allocations of the node, which raw_exec sees and exec does not.
//
// So without PITCHPIPE_MARKS only raw_exec on the same node sees the mark. A node that
// removed the old allocation has removed its mark.
//
// A command that was asked to end by TERM, INT, HUP or QUIT and ends with 0 leaves no mark:
// many save what they have then, with the rest undone. It is begun again, and finds its
// checkpoint. USR1 and USR2 are requests to save, after which 0 says that the work is done.
//
// The wrapper hands on TERM, INT, HUP, QUIT, USR1, USR2, WINCH and CONT, and ends with
// the command's exit status; a command that died by a signal N is the status 128+N. It
// looks for a command as Nomad does: in the task's local directory, in the task's
// directory, then in PATH. Where /bin/sh is bash, a signal is lost if it comes in the
// millisecond in which one of the same kind is handed on. No shell can trap a signal that it
// ignored when it started: under nohup, HUP stays ignored, as it does for a command without
// the wrapper.
package once
