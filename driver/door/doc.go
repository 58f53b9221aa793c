// Package door is a listener of a Unix socket that knows who comes in, and lets few of
// each in at a time.
//
// In come a listener and how many connections there is room for; out come connections
// whose user the kernel vouches for. One that there is no room for is closed at once,
// before anything is read from it, so that nobody keeps others out by many connections.
// It never believes what a caller writes, and judges nobody: what each may do is its
// caller's affair.
package door
