// Package tick waits: an epoch is so many seconds of nothing.
//
// In come the length of an epoch and, if wanted, a journal; out comes, per epoch,
// one line with its number appended to the journal. It is for tests that need
// many cheap jobs and want to know that each epoch was done once and in order. Two
// runs never write the same journal at a time: the second one fails.
package tick
