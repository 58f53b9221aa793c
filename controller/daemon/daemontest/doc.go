// Package daemontest runs a whole controller over a simulated cluster, for tests
// of what talks to one. It is test support only: nothing that ships imports it.
//
// In comes what should differ from a plain controller; out comes one that answers
// on a Unix socket in a folder of the test, with a client for it. Its jobs are
// those of driver/sim, so that no process is started; they run in real time, so
// their epochs should be short.
package daemontest
