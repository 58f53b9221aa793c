// Package window keeps the last samples of each attempt of each job in a ring, and
// the final values of attempts that ended for a while after.
//
// In come readings and marks from the sampler, marks that come late included; out go copies, as wire types.
// Counters only grow within an attempt: a reading below the one before is held at
// it. What is NaN is not known at that moment: it is missing from its sample, and the
// newest value that was known stays the newest. The package reads no clock and no host,
// and never forgets a running attempt.
//
// A Store is safe for concurrent use: the sampler writes, the server reads.
package window
