// Package nomadagent gives tests and demonstrations a Nomad to talk to: a real agent
// where the program nomad is on PATH, else the server of test/nomadserver inside of
// this process. Both runs one test against either, so that what is expected of the one
// is expected of the other.
//
// In come options: ACLs or not, how many cores and how much memory the node has, the
// size of the event buffer. Out come an address, a management token where there are
// ACLs, a client, and faults: the agent killed and started again with its state.
//
// The real agent is a server and a client on loopback, two processes with their state
// in a private folder below /tmp. It isn't an agent -dev, which forgets everything when
// it ends: tasks outlive this one and are found again by the next.
//
// Every agent of a machine makes the cgroups of its tasks below one parent, /nomad. In
// the hierarchy cpuset of version 1 that doesn't work for two: while one has a task with
// cores of its own, every allocation of the other fails with "unable to update reserve
// cpuset". So each agent has a mount namespace in which a tree of its own stands in the
// place of that hierarchy. From outside, the tasks' cpuset groups are therefore found
// below /ppnomadNUMBER/nomad, the others below /nomad as everywhere.
//
// After Stop no process, mount or folder of the agent and no cgroup of its allocations
// is left, those included that it had forgotten already, whatever the jobs did; the parent cgroup, which others may share, stays.
// What an agent whose owner was killed has left is cleared away by the next start. A
// process is ended by its id after a look that it belongs to the agent. Nothing listens
// beyond loopback, and no configuration of the machine is read.
package nomadagent
