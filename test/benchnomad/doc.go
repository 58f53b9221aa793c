// Package benchnomad measures what it costs to watch a Nomad cluster of many jobs, and
// how soon a new job is seen.
//
// In come numbers of jobs and a time. It brings up an agent of its own (package
// nomadagent), registers jobs that wait, most of them without a stanza, and starts the
// pitchpipe program as a controller that reaches the agent through a proxy, which
// counts what is asked. It reads from /proc what the controller uses: CPU and memory.
// Then it registers jobs with a stanza at random times and waits until the controller
// knows each. Out comes a report with the machine, its load, and which Nomad it was.
//
// It judges nothing: whoever reads the report compares it with what is asked for. It
// never measures on a cluster that is not its own.
package benchnomad
