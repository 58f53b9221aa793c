// Package pair runs two controllers as a site runs a pair on Nomad: their shared store is
// Nomad's variables, what the driver notes of its jobs is in that store, and both reach
// the same agent.
//
// In: an agent, the server in the test's process and the real one where nomad is on
// PATH. The one that leads is ended in the middle of a move: as it should be, by a crash,
// or because its lock is taken away. Out: what became of the job, by the job's own
// journal and by Nomad's versions and allocations: its work was done once, and it was
// moved once.
//
// The moves are asked for by the test, as the loop would that leads: how jobs are tuned
// is no matter of this package, and controllers under random faults are those of
// controller/daemon and test/faultnomad.
package pair
