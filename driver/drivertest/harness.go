package drivertest

import (
	"context"
	"testing"
	"time"

	"pitchpipe/driver"
)

// Behaviour is what a job does, whatever runs it.
//
// A job runs Epochs epochs of Epoch each and writes one line `epoch N/EPOCHS` to
// its output when epoch N (from 1) ended. It then ends with ExitCode.
type Behaviour struct {
	Name  string        // empty = "conformance"
	Owner string        // empty = the user who runs the test
	Epoch time.Duration // length of one epoch

	Epochs   int
	ExitCode int

	Cores       int           // that it asks for; 0 = 1
	MemoryBytes int64         // limit that it asks for; 0 = none
	TimeLimit   time.Duration // limit that it asks for; 0 = none

	// UseMemory is what it holds from its first moment on; 0 = next to nothing.
	UseMemory int64

	// Saves: when Harness.Checkpoint.Signal arrives the job finishes its epoch,
	// writes the epoch's line, saves, and exits with Harness.Checkpoint.Exit. Its
	// next attempt goes on with the epoch after it. A job that does not save and
	// does not ignore the signal dies of it.
	Saves bool

	// IgnoreSignal: the signal changes nothing; the job runs on.
	IgnoreSignal bool

	// LeavesWith, where not 0, is the exit status with which the job leaves after
	// the signal, instead of Harness.Checkpoint.Exit. Only with Saves.
	LeavesWith int

	// SaysSaved: instead of exiting the job writes a line `saved` to its output
	// and goes on. Only with Saves.
	SaysSaved bool

	// MissingCommand: the job's command does not exist.
	MissingCommand bool

	// ShowEnv names an environment variable. The job writes `env NAME=VALUE` to
	// its output when an attempt begins, with an empty VALUE where it is not set.
	ShowEnv string

	// ShowSettings: when an attempt begins the job writes one line `settings JSON`
	// to its output, where JSON is the content of the file that PITCHPIPE_SETTINGS
	// names, without its line breaks, or `settings none` where the variable is not
	// set. Only where the driver has Capabilities.Live.
	ShowSettings bool
}

// Harness is one driver under test.
type Harness struct {
	// Driver runs until the test ends.
	Driver driver.Driver

	// Job makes a job of the behaviour. Job files of equal behaviours are equal.
	Job func(t *testing.T, b Behaviour) driver.Spec

	// Checkpoint is how a job that Saves is asked to: signal and exit status.
	// Grace and Done are set by the suite.
	Checkpoint driver.Checkpoint

	// Cores and MemoryBytes are what the largest possible job may ask for.
	Cores       int
	MemoryBytes int64

	// Blind: the driver may not read the jobs' outputs, and its scheduler tells only
	// there that a job could not be started.
	Blind bool

	// Begin starts a job with the change of an intent, where the scheduler starts each job at
	// once: Spec.NotBefore is refused there. nil = a job can be held.
	Begin func(t *testing.T, spec driver.Spec, intent string, c driver.Change) driver.Job

	// MemoryAlone: of an attempt that was killed for memory under a change only less memory
	// is taken back.
	MemoryAlone bool

	// Now and Sleep are the driver's clock; nil = the real one. Sleep returns when
	// d has passed for the driver, or ctx ended.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration)

	// Reopen ends the driver as a crash would, without telling its jobs, and
	// returns a new one on the same state. nil = the driver has no such thing.
	Reopen func(t *testing.T) driver.Driver

	// Crash is what the driver calls at the points of package move; nil = it crashes only
	// between two calls.
	Crash *Crash
}

// Run runs the suite. newHarness is called once for each sentence, with its t,
// from parallel tests.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	for _, s := range sentences() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			if h.Now == nil {
				h.Now = time.Now
			}
			if h.Sleep == nil {
				h.Sleep = func(ctx context.Context, d time.Duration) { _ = driver.Pause(ctx, d) } // the loops look at ctx
			}
			if why := h.lacks(s.needs); why != "" {
				t.Skip(why)
			}
			s.check(t, &h)
		})
	}
}

// sentence is one thing that must be true of every driver.
type sentence struct {
	name  string
	needs string // of the driver, in the words of lacks; empty = nothing
	check func(t *testing.T, h *Harness)
}

// Patience is how long the suite waits, by the driver's clock, for what must
// come. It is long: only a test that fails waits for it.
const Patience = 2 * time.Minute

// step is how long the suite waits between two looks, or as long as a look takes: on
// Slurm each one starts programs, and many tests look side by side.
const step = 50 * time.Millisecond

// Eventually waits until cond is true, and fails the test after Patience.
func (h *Harness) Eventually(t *testing.T, what string, cond func(ctx context.Context) bool) {
	t.Helper()
	ctx := t.Context()
	for end := h.Now().Add(Patience); h.Now().Before(end) && ctx.Err() == nil; {
		began := h.Now()
		if cond(ctx) {
			return
		}
		h.Sleep(ctx, max(step, h.Now().Sub(began)))
	}
	if !cond(ctx) {
		t.Fatalf("waited %v in vain: %s", Patience, what)
	}
}
