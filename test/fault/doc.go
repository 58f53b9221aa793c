// Package fault is what all tests have in common that inject faults into a scheduler with
// controllers that move jobs: the plan of which fault comes when, programs that are
// started again when they die, rounds of faults that meet jobs in the middle of something,
// the journal that each job keeps, and the table of what became of every job.
//
// In come kinds of faults with their weights, a seed, and functions that inflict a fault
// and say which jobs it touched; out come strikes, verdicts' counts and text. A fault that
// met no job in the middle of anything is not counted and tried again elsewhere.
//
// It knows no scheduler and judges no job but by its journal. The program of the jobs is
// cmd/faultjob.
package fault
