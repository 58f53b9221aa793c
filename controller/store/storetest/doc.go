// Package storetest is the suite that every store.Store passes. It is test support
// only: nothing that ships imports it.
//
// In comes a Target, which opens clients of one store that was empty at first, and can
// make one go silent; out come sentences that hold or fail. The suite never waits for a
// fixed time: what needs long, such as a lock that lapses, has the target's patience.
package storetest
