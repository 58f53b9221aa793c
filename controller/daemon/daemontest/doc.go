// Package daemontest runs a whole controller over a simulated cluster, for tests of its
// clients. It is test support: nothing that ships imports it.
//
// Input: the differences from a plain controller; output: one that answers on a Unix
// socket in a folder of the test, with a client for it. Its jobs are those of test/sim:
// they start no process and run in real time, so that their epochs should be short.
package daemontest
