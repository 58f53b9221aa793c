// Package jobcheck knows what Nomad makes of a job that is handed in: which defaults it
// fills in, what it refuses and with which words, and whether anything changed.
//
// In come jobs; out come canonical copies, errors with Nomad's texts and booleans. It
// keeps nothing and changes none of its arguments.
package jobcheck
