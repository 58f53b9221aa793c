// Package tuning holds the nouns that travel through the controller: what a
// user and a site allow (Policy, Knob, Site), what a job runs under (Settings),
// what its early epochs looked like (Profile), what it resembles (Class), what
// was decided and why (Decision, Reason), what was tried (Trial), what it
// brought (Outcome), and the units they are measured in.
//
// Other packages build these values and read them. They compare with ==, print
// themselves in the words of the documentation, and encode to JSON and back
// without loss. The package does no I/O, reads no clock, holds no state, and
// imports only the standard library, so that every package can share its words.
package tuning
