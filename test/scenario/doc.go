// Package scenario plays stories about the whole controller: real services, real
// durable state, the real API, on a simulated cluster in virtual time.
//
// Input: the files *.txtar. One file is one story: a comment that
// tells it in plain words; site.yaml, the administrator's policy (left out = a
// site that wrote none); job files with #SBATCH, #TUNE and #SIM lines; script,
// what people and misfortune do; and expect, what came of it. Output: a failing
// test where the story ends otherwise. `go test ./test/scenario -update` rewrites
// expect; read the difference before you keep it.
//
// # The script
//
// One command a line, # begins a comment. Commands are carried out one after
// the other. "at 30s" before a command waits until 30 s after the story's
// beginning, "after 5s" waits 5 s.
//
//	submit FILE as JOB [off] [by USER] [env NAME=VALUE]
//	submit FILE as JOB refused         the controller refuses it, nothing exists
//	submit FILE as JOB directly        past the controller, as with the scheduler's own command
//	search FILE as NAME                until it is over; NAME-3.2 is the second job of its trial 3
//	wait JOB [until PHASE]             until it has ended, or is in this phase of the tuner
//	off JOB                            its owner switches tuning off
//	stop JOB                           its owner cancels it
//	pause cluster|partition NAME|user NAME|job JOB
//	resume cluster|partition NAME|user NAME|job JOB
//	restart controller                 ends it and starts it again on the same state
//	crash controller at PHASE          the same, once, right after this was made durable
//	crash controller at ACTION [STEP]  of an intent
//	fault OP [JOB] KIND for DURATION   each such operation fails: transient, unknown, not-taken, denied, unsupported
//	break JOB                          each look at its measurements panics
//
// A story ends when all its jobs have. Whatever it is about, the test also
// checks what always holds: no job is left held, no intent made two attempts, no
// epoch was worked on twice, each effect was in the audit before it happened,
// and every job can be explained.
//
// The package never listens on a socket and never waits in real time.
package scenario
