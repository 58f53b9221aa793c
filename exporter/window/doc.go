// Package window keeps the last samples of each attempt of each job in a ring, and
// the final values of attempts that ended for a while after.
//
// The input is readings and marks from the sampler, late ones included; the output is copies
// as wire types. Counters only grow within an attempt: a lower reading is raised to the one
// before. NaN is unknown: the value is missing from its sample, and the newest known one
// stays the newest. The package never reads a clock or the host, and never forgets a running
// attempt.
//
// A Store is safe for concurrent use: the sampler writes, the server reads.
package window
