// Package peercred serves callers whom the kernel identifies, and bounds how many
// connections each of them may have.
//
// Its input is a listener and the number of connections that it has room for. It returns
// connections with the user and the process that opened them, and closes one without room
// before anything is read from it. A user's share includes the subordinate uids that
// /etc/subuid gives to that user. Some places are reserved for operators, and some for each
// user who owns a job. Serve gives all servers the same limits, and Ask is how clients ask. The
// package believes nothing that a caller writes, and does not decide what a caller may do.
package peercred
