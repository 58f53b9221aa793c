// Package allocate divides cores, GPUs or whatever a cluster hands out among elastic jobs:
// jobs that run with more or with less, and that keep their work by a checkpoint when they change.
//
// Input: the jobs in the order of their arrival, each with the work it has left, its sizes (speed
// and share of the cluster), the size that it has, and what a change costs it. Output: a size for
// each job: jobs shrink when others wait, and grow when others end.
//
// Every rule is a Fill: the next size goes to the job with the largest gain per dominant share
// (Peng et al., "Optimus", EuroSys 2018, section 4.1). Optimus's gain is the time that one job
// saves; it forgets that a job which ends leaves its share to the others. Choose plays a few
// rules to the end of all jobs, restarts charged, and takes the one after which they end
// soonest on average. Leaving everything as it is is one of them.
//
// A running job is never stopped for another, only shrunk to its smallest size. A job that has
// waited for longer than it would have run goes first. No clock, randomness, I/O or state.
package allocate
