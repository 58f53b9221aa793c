// Package lease keeps a lock that lapses, for stores whose locks do.
//
// In comes a Lock, which is one lock of a store with the verbs try, renew, check and
// release; out comes a store.Lease. The holder believes in it for no longer than one
// time to live after it sent the last renewal that was answered: the store, which
// counts from when it received that renewal, ends the lock no earlier. A store that
// does not answer so ends the leadership here first. What was stopped for a while,
// as by SIGSTOP, finds its lease lost when it goes on.
//
// The package never takes a lock again that was lost, and never releases one with a
// context of its own: the caller says how long that may take.
package lease
