// Command nomadagent brings up a private Nomad on loopback, prints what a shell needs to
// use it, and takes it down with all its jobs when it is interrupted.
//
//	go run ./test/nomadagent/cmd/nomadagent
//
// In comes what agent is wanted, as flags. Out come lines for a shell on standard output,
// and nothing is left behind. It never touches another Nomad of the machine.
package main
