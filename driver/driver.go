package driver

import (
	"context"
	"io"
	"strings"
	"time"
)

// JobID names a job at its scheduler and is kept across attempts.
type JobID string

// RequestID makes Start repeatable: the same request never creates a second job.
type RequestID string

// Driver runs jobs on one scheduler. All methods are safe for concurrent use,
// except that the caller never advances two intents of one job at a time.
type Driver interface {
	// Name is the scheduler's name: local, sim, slurm, nomad.
	Name() string

	// Capabilities reports what the scheduler can do.
	Capabilities() Capabilities

	// Start creates a job. Repeated with the same request id it returns the job
	// that exists already, whatever has become of it. A job file that cannot be
	// run is ErrInvalid, and nothing was created.
	Start(ctx context.Context, id RequestID, spec Spec) (Job, error)

	// Advance takes at most one repeatable step towards the intent and tells
	// where that left the job. It never makes a job run twice, and never touches a
	// job that ended or that its owner changed. An attempt that would have to wait for
	// more cores or memory than it has is left alone (ErrNoRoom), and of several that
	// would grow into the same room one is moved at a time.
	Advance(ctx context.Context, intent Intent) (Step, error)

	// Check is the dry run of Advance: nil when the scheduler would accept the
	// change, ErrUnsupported, ErrDenied or ErrNoRoom with the reason when not.
	Check(ctx context.Context, intent Intent) error

	// Outlook reports what the scheduler expects for the job if it restarts now.
	// A scheduler that cannot tell, or whose job has ended, returns the zero Outlook.
	Outlook(ctx context.Context, id JobID) (Outlook, error)

	// Watch sends an event whenever a job may have changed, and first one for each
	// job that exists. Events may be merged and repeated, so they are a reason to
	// look, not the news. The channel is closed when ctx ends or the stream
	// breaks; after a break the caller watches again.
	Watch(ctx context.Context) (<-chan Event, error)

	// Get returns one job, ended ones included for as long as the scheduler
	// remembers them, or ErrNotFound.
	Get(ctx context.Context, id JobID) (Job, error)

	// List returns every job that the scheduler remembers, oldest first.
	List(ctx context.Context) ([]Job, error)

	// Stop cancels a job. Stopping an ended job does nothing.
	Stop(ctx context.Context, id JobID) error

	// Logs returns the job's output from byte offset on, as far as it is written.
	// The caller closes it.
	Logs(ctx context.Context, id JobID, offset int64) (io.ReadCloser, error)
}

// Listener is a driver that does not start a job's processes itself, so that it
// must be told to start the listener inside an attempt.
type Listener interface {
	// Listen starts the listener for the progress of a running attempt, inside the
	// job and as the job's user. Repeated for the same attempt it does nothing. It
	// is ErrUnsupported where the scheduler cannot do so, and ErrConflict when the
	// attempt does not run.
	Listen(ctx context.Context, id JobID, attempt int, p Progress) error
}

// Releaser is a driver that can make a job wait (Spec.NotBefore).
type Releaser interface {
	// Release ends the wait of a job for the tuner (Job.NotBefore). It does nothing to one that does not wait so.
	Release(ctx context.Context, id JobID) error
}

// Biller is a driver whose scheduler says what it bills.
type Biller interface {
	// Billing is what the scheduler bills the jobs of a partition.
	Billing(ctx context.Context, partition string) (Billing, error)
}

// Billing is what a scheduler bills for an hour of a core, of a GiB of memory and of a
// GPU, in its own units.
type Billing struct {
	Core, GiB, GPU float64
	Dearest        bool // it bills for that one of them which costs most, not for their sum
	Whole          bool // its jobs get whole nodes, whatever they ask for
}

// Capabilities are what a scheduler can do to a job.
type Capabilities struct {
	Env    bool // a restart can carry other environment variables
	Args   bool // a restart can carry other command-line arguments
	Live   bool // a restart can carry the settings file of PITCHPIPE_SETTINGS
	Memory bool // memory limits are enforced

	// MemoryReturns: an attempt that was killed for less memory than its owner asked for
	// runs again with his. Where it does not, a limit is never lowered.
	MemoryReturns bool
	Accounts      bool // partition, account and QOS of a job were verified, not merely claimed

	// UsersSubmit: everybody submits his jobs himself, as Start cannot for others.
	UsersSubmit bool
}

// Spec is a job to create.
type Spec struct {
	Owner     string            // user name
	Filename  string            // for messages
	Source    []byte            // the job file as the user wrote it
	Variables map[string]string // for job files that have variables
	Dir       string            // directory relative paths in the job file refer to
	Namespace string            // of Nomad, where the job file names none; empty = the driver's own
	Env       map[string]string // added to the job's environment
	Progress  Progress          // what the listener inside the job looks for

	// NotBefore keeps the job pending until then, so that the tuner can change it
	// before it starts; an Advance of the job or a Release ends the wait. The zero time means at
	// once. The wait always ends by itself: a controller that dies holds nothing. A scheduler
	// that starts each job at once refuses it with ErrUnsupported.
	NotBefore time.Time

	// Off: the owner wants it untuned, and where the scheduler can carry that it is
	// Job.Off from the beginning.
	Off bool
}

// Progress tells the listener that runs inside the job what to report.
type Progress struct {
	Pattern string // regular expression with named groups; empty = no listener
	File    string // empty = the job's output
	Total   int    // epochs in all, where no line says it
}

// Change is what an attempt differs in from the job file. Zero fields and
// missing keys stay as the job file has them.
type Change struct {
	Cores       int               `json:"cores,omitempty"`
	MemoryBytes int64             `json:"memory_bytes,omitempty"`
	TimeLimit   time.Duration     `json:"time_limit,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	Args        map[string]string `json:"args,omitempty"` // flag → value: replaces "--k v" or "--k=v", else appended

	// Live are knob names and values for the settings file; see EncodeSettings.
	Live map[string]string `json:"live,omitempty"`
}

// Outlook is what a restart of a job would meet.
type Outlook struct {
	// Wait is how long the next attempt would wait for room; nil: unknown.
	Wait *time.Duration `json:"wait,omitempty"`
	// Closed is when a reservation or maintenance next takes the job's nodes; zero:
	// none is planned.
	Closed time.Time `json:"closed,omitzero"`
	// ClosedBy is the name of that reservation or maintenance.
	ClosedBy string `json:"closed_by,omitempty"`
	// Crowded says, where Wait is nil, why it is unknown although others wait
	// for the same room; empty = no one is known to wait.
	Crowded string `json:"crowded,omitempty"`
}

// Checkpoint says how a running attempt is asked to save and leave.
type Checkpoint struct {
	Signal string        `json:"signal"` // with SIG
	Grace  time.Duration `json:"grace"`
	Exit   int           `json:"exit,omitempty"` // exit status that means "saved"
	Done   string        `json:"done,omitempty"` // or: pattern of the output line that means "saved"
}

// SignalName is the signal with the SIG that people leave out.
func (c Checkpoint) SignalName() string {
	name := strings.ToUpper(c.Signal)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	return name
}

// Intent is one wish of the controller. It replaces the whole Change of the job,
// so that the empty Change is the return to the owner's own settings.
type Intent struct {
	ID          string      `json:"id"` // unique for ever
	Job         JobID       `json:"job"`
	Attempt     int         `json:"attempt"`     // the attempt that it was made for; 0 = pending, never started
	Fingerprint string      `json:"fingerprint"` // Job.Fingerprint when it was made
	Change      Change      `json:"change"`
	Checkpoint  *Checkpoint `json:"checkpoint,omitempty"` // nil: a running attempt is not touched
	Note        string      `json:"note,omitempty"`       // one line for the job's own output

	// Discard: a running attempt is ended at once, without being asked to save, and what
	// it did since its last checkpoint is lost. No signal of the Checkpoint is sent and
	// no grace is waited for; the next attempt resumes from the checkpoint before. A job
	// may be cut while it writes one, so that it has to replace the last one as a whole.
	Discard bool `json:"discard,omitempty"`
}

// StepKind says where an Advance left the job.
type StepKind string

// The steps. Started, Finished, Superseded, NoRoom and Abandoned end an intent. An intent
// that was applied stays applied: once it was Started it is answered with Started
// again, whatever became of the attempt, the change or the job since.
const (
	StepRunning       StepKind = "running"       // the old attempt runs; nothing was done yet
	StepCheckpointing StepKind = "checkpointing" // it was asked to save, or it is being ended
	StepStopped       StepKind = "stopped"       // it left, saved or discarded; nothing runs
	StepChanged       StepKind = "changed"       // the next attempt has the new settings
	StepStarted       StepKind = "started"       // the next attempt with the change is queued or runs, or did
	StepFinished      StepKind = "finished"      // the job ended before the change
	StepSuperseded    StepKind = "superseded"    // its owner or another intent changed the job
	StepNoRoom        StepKind = "no-room"       // there is no room for the change now; the job has what it had
	StepAbandoned     StepKind = "abandoned"     // it did not save in time and runs on
)

// Done reports whether the intent needs no further Advance.
func (k StepKind) Done() bool {
	switch k {
	case StepStarted, StepFinished, StepSuperseded, StepNoRoom, StepAbandoned:
		return true
	case StepRunning, StepCheckpointing, StepStopped, StepChanged:
	}
	return false
}

// Step is what Advance did.
type Step struct {
	Kind    StepKind `json:"kind"`
	Attempt int      `json:"attempt"` // the attempt that the job is in now
	Detail  string   `json:"detail,omitempty"`
}

// State is where a job is at its scheduler.
type State string

// The states. Those after Stopped are final.
const (
	Pending        State = "pending"         // waits for room, or for NotBefore
	Running        State = "running"         // an attempt runs
	Stopped        State = "stopped"         // between two attempts, held by an intent
	Succeeded      State = "succeeded"       // exit status 0
	Failed         State = "failed"          // another exit status, or its own signal
	MemoryExceeded State = "memory-exceeded" // killed for memory under its owner's own settings
	TimeExceeded   State = "time-exceeded"   // killed at its time limit
	NotStarted     State = "not-started"     // the command is missing or may not run
	Cancelled      State = "cancelled"       // stopped on request
	Lost           State = "lost"            // its supervisor died: how it ended is unknown
)

// States lists the states.
func States() []State {
	return []State{Pending, Running, Stopped, Succeeded, Failed, MemoryExceeded, TimeExceeded, NotStarted, Cancelled, Lost}
}

// Beginnings of the Detail of jobs that count as cancelled, and that no person cancelled.
const (
	DetailPreempted = "preempted"
	DetailForgotten = "it has ended, and its scheduler does not remember how"
)

// Ended reports whether the state is final.
func (s State) Ended() bool {
	switch s {
	case Succeeded, Failed, MemoryExceeded, TimeExceeded, NotStarted, Cancelled, Lost:
		return true
	case Pending, Running, Stopped:
	}
	return false
}

// Job is a job as its scheduler sees it.
type Job struct {
	ID          JobID     `json:"id"`
	Request     RequestID `json:"request,omitempty"`
	Name        string    `json:"name"`
	Owner       string    `json:"owner"`
	Partition   string    `json:"partition,omitempty"` // or namespace
	Account     string    `json:"account,omitempty"`
	QOS         string    `json:"qos,omitempty"`
	State       State     `json:"state"`
	Detail      string    `json:"detail,omitempty"` // why it is pending, or how it ended
	ExitCode    int       `json:"exit_code"`        // of the last attempt, -1 unknown
	Attempt     int       `json:"attempt"`          // 0 before the first start
	Attempts    []Attempt `json:"attempts,omitempty"`
	Fingerprint string    `json:"fingerprint"` // of what the owner wrote: job file and variables
	Filename    string    `json:"filename,omitempty"`
	Source      []byte    `json:"source,omitempty"`
	// Variables are those that the job was submitted with.
	Variables map[string]string `json:"variables,omitempty"`
	Submitted time.Time         `json:"submitted"`
	Started   time.Time         `json:"started,omitzero"` // of the first attempt
	Ended     time.Time         `json:"ended,omitzero"`
	Suspended bool              `json:"suspended,omitempty"` // it counts as running, and makes no progress

	// Held is why its scheduler holds the pending job until a person releases it; empty: it does not. That a
	// person holds it is no reason.
	Held string `json:"held,omitempty"`

	// Observed is why the job is seen and never changed; empty: it may be.
	Observed string `json:"observed,omitempty"`
	// NoRequeue: its owner forbids restarts.
	NoRequeue bool `json:"no_requeue,omitempty"`

	// NotBefore is until when it waits for the tuner alone; zero: it does not, or no longer.
	NotBefore time.Time `json:"not_before,omitzero"`

	Resources Resources `json:"resources"` // that the owner asked for
	Change    Change    `json:"change"`    // that the present attempt has instead

	// Intent is that of Change where the job was submitted with one and has not begun.
	Intent string `json:"intent,omitempty"`

	// Of an Adviser's jobs alone.
	Nice    int           `json:"nice,omitempty"`    // how much its priority is lower
	Used    time.Duration `json:"used,omitempty"`    // of CPU; 0 = unknown
	Class   string        `json:"class,omitempty"`   // of the nodes that it ran on; empty = unknown, or several
	Prefers string        `json:"prefers,omitempty"` // the nodes that it prefers, by its owner or by advice; empty = none

	Node  string `json:"node,omitempty"`  // the first, where it has several
	Nodes int    `json:"nodes,omitempty"` // how many, where they are several

	// Alias is the id under which the scheduler's processes and exporters know the
	// job, where that is another than ID: the number of an array's task.
	Alias string `json:"alias,omitempty"`

	// Off: the job itself says that its owner wants it untuned.
	Off bool `json:"off,omitempty"`
}

// Resources are what a job asks its scheduler for.
type Resources struct {
	Cores       int               `json:"cores"`
	MemoryBytes int64             `json:"memory_bytes"` // 0 = no limit
	GPUs        int               `json:"gpus,omitempty"`
	Whole       bool              `json:"whole,omitempty"`      // it gets whole nodes, whatever it asks for
	TimeLimit   time.Duration     `json:"time_limit,omitempty"` // 0 = none
	Env         map[string]string `json:"env,omitempty"`        // that the job file and the submission set
	Args        []string          `json:"args,omitempty"`       // command line, where the job file has one
	Command     string            `json:"command,omitempty"`    // identity of the command: inputs and numbers left out
}

// Event says that a job may have changed.
type Event struct {
	Job JobID
}
