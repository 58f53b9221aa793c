// Package nomadagent gives tests and demonstrations a Nomad to talk to: a real agent where
// the program nomad is on PATH, else the server of test/nomadserver in this process.
//
// Options go in: ACLs or not, cores and memory of the node, volumes. An address, a
// management token, a client and faults come out: the agent killed and started again with
// its state. Both runs one test against either, so that both are held to the same.
//
// The real agent is a server and a client on loopback, two processes with their state in a
// private folder below /tmp. It is not an agent -dev, which forgets everything when it
// ends: tasks outlive this agent, and the next one finds them again.
//
// All agents of a machine make the cgroups of their tasks below one parent, /nomad. In the
// cpuset hierarchy of version 1 two agents disturb each other: while one has a task with
// reserved cores, every allocation of the other fails with "unable to update reserve
// cpuset". So each agent has a mount namespace with its own cpuset tree, and from outside
// the cpuset groups of its tasks are below /ppnomadNUMBER/nomad.
//
// After Stop no process, mount or folder of the agent and no cgroup of its allocations is
// left; the parent cgroup, which others may share, stays. The next start removes what an
// agent left whose owner was killed. The package ends only processes that it knows to be
// the agent's, listens only on loopback, and reads no configuration of the machine.
package nomadagent
