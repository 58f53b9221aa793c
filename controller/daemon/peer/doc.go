// Package peer names the user at the other end of a Unix socket.
//
// Input: a connection; output: the user that the kernel names, in the request's context.
// The package never trusts what the caller writes.
package peer
