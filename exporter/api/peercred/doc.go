// Package peercred serves callers of whom the kernel says who they are, so many of each
// at a time.
//
// In come a listener and how many connections there is room for. Out come connections
// with the user and the process that opened them; one that there is no room for is
// closed before anything is read from it. A user's share includes the subordinate uids
// that /etc/subuid gives him. Places are left for operators, and a user who owns a job
// has some that nobody else can take. Serve gives all servers the same limits. The
// package believes nothing that a caller writes, and decides nothing about what he may do.
package peercred
