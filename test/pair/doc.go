// Package pair runs two controllers on Nomad as a site does: they share their state in
// Nomad's variables, the driver's journal included, and reach the same agent.
//
// Input: an agent, the in-process server and the real one where nomad is on PATH. The
// leader ends in the middle of a move: regularly, by a crash, or because its lock is taken
// away. Output: the fate of the job, by its own journal and by Nomad's versions and
// allocations: its work was done once, and it was moved once.
//
// The test asks for the moves in place of the loop. The package never tests how jobs are
// tuned; controller/daemon and test/faultnomad test controllers under random faults.
package pair
