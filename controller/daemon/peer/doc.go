// Package peer names who is at the other end of a Unix socket.
//
// In comes a connection; out goes the user that the kernel says opened it, in the
// request's context. Nothing that the caller writes is believed.
package peer
