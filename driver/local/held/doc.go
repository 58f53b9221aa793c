// Package held signals processes by their numbers without meeting others.
//
// Its input is a number that was read a moment ago and a question that tells the process
// of then from others. The process is held (see pidfd_open(2)) before the question is asked,
// so that none that gets the number afterwards is signalled.
package held
