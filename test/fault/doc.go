// Package fault is the engine of fault campaigns: jobs that controllers move, and faults
// that meet them in the middle of that, round after round.
//
// Input: kinds of faults with their weights, a seed, and an adapter that submits jobs, does a
// fault, reports which jobs it touched, and judges their outcome. Output: the faults that met
// something, and a table of the outcome of every job. A fault that met no job in the
// middle of a move does not count and is tried again at another point.
//
// The engine knows no scheduler and judges no job but by the journal that the job keeps
// itself. The program of the jobs is cmd/faultjob; the adapters are faultslurm and
// faultnomad.
package fault
