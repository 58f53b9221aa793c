// Package nomad runs Pitchpipe against a Nomad on loopback: the real agent where nomad is
// on PATH, else the in-process server that behaves like it. Job files that ship are
// submitted by "pitchpipe run" and tuned by the programs that ship. At the end comes a
// table of the job files, untuned against tuned, which names the version of Nomad.
//
// With -all every job file of jobspecs/nomad runs: the batch is dispatched, and exporter
// and controller run as the jobs that ship, the latter on the real agent with ACLs and by
// its task's identity.
//
// It holds only tests. The agent is test/nomadagent's; each test has its own. It
// asserts nothing about how long anything takes.
package nomad
