// Package worlds plays random worlds through the whole controller, in virtual time.
//
// Input: a seed; it draws a machine, a job or a kind of jobs, and what their owner
// allows. Output: what the jobs cost in their objective, probes and restarts included, next
// to the same jobs under the same noise that were never moved, and next to a net oracle
// that moves once, right after the profile, and pays for it. The simulated cluster says
// what a job cost, never the controller.
//
// It also plays random searches, with their system knobs fixed and tuned inside the trials.
//
// `scripts/worlds` plays 200 worlds and prints the table of the aims, `scripts/worlds
// -world 17` tells the story of one. `go test` plays a handful and holds them to bars.
//
// The package never waits in real time and never opens a socket.
package worlds
