// Package facts holds Nomad to what the driver relies on: one sentence for each fact, and
// a proof.
//
// An agent of either kind goes in: the server of test/nomadserver, and the program nomad
// where it is on PATH. Each sentence is a test with its result. A fact that no code here
// depends on is proven on the real agent alone. The package never tests the driver.
package facts
