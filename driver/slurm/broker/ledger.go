package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/slurm/slurmctl"
)

const recordVersion = 1

// Size is what is changed of a job.
type Size = slurmctl.Size

// Set is a size that was set, or was about to be.
type Set struct {
	Size Size      `json:"size"`
	At   time.Time `json:"at"`
}

// Identity distinguishes a job from another that has its number later.
type Identity struct {
	Job       string    `json:"job"` // its number, or ARRAY_TASK
	UID       uint32    `json:"uid"`
	Restarts  int       `json:"restarts"`
	Submitted time.Time `json:"submitted"` // last: a requeue sets it again, to a later time
}

// Record is what is known of one job.
type Record struct {
	Version int `json:"version"`
	Identity
	First time.Time `json:"first,omitzero"` // when it was submitted, where it was seen before its first restart

	Asked Size  `json:"asked"` // by its owner
	Sets  []Set `json:"sets,omitempty"`

	// Signalled is one more than the number of restarts of the attempt that was last
	// asked to save, or discarded; 0 = none was. Moves is how many attempts were.
	Signalled int `json:"signalled,omitempty"`
	Moves     int `json:"moves,omitempty"`

	// Prepared is one more than the number of restarts of the attempt that was last changed
	// while the job waited for it; 0 = none was.
	Prepared int `json:"prepared,omitempty"`

	// Lowered is the least memory of the whole job that was set below what its owner asked
	// for; 0 = none was. Rerun is one more than the number of restarts of the attempt that was
	// killed for it, and after which the job was put back; 0 = it never was.
	Lowered int64 `json:"lowered,omitempty"`
	Rerun   int   `json:"rerun,omitempty"`

	// Short is the last time limit below the owner's that was set; 0 = none was. Nice is how
	// much its owner lowered its priority, and Niced what was set instead; nil = nothing was.
	Short time.Duration `json:"short,omitempty"`
	Nice  int           `json:"nice,omitempty"`
	Niced *int          `json:"niced,omitempty"`

	// Delayed is since when a task of an array was made to wait before its first attempt.
	Delayed time.Time `json:"delayed,omitzero"`
}

// Entry is one line of the audit file.
type Entry struct {
	Time    time.Time `json:"time"`
	Peer    uint32    `json:"peer"` // uid of who asked
	Verb    string    `json:"verb"`
	Job     string    `json:"job"`
	User    string    `json:"user,omitempty"` // whose job it is
	Before  *Size     `json:"before,omitempty"`
	After   *Size     `json:"after,omitempty"`
	Detail  string    `json:"detail,omitempty"`  // the signal, the start
	Allowed bool      `json:"allowed"`           // it is about to be done
	Refused string    `json:"refused,omitempty"` // why not
}

// The audit has at most maxRefusals refusals of one user in each refusalSpan, and how many more
// there were.
const (
	maxRefusals = 30
	refusalSpan = time.Minute
)

// ledger is a directory of records, and the audit file next to it. Every record is durable
// before its effect, so that a process that dies in between loses no ceiling.
type ledger struct {
	durable.Folder
	audit *audit
}

// audit is the file, and how often each user was refused lately.
type audit struct {
	log *durable.Log

	mu      sync.Mutex
	refused map[uint32]refusals
}

type refusals struct {
	since time.Time
	count int
}

// openLedger makes the directory where it is missing.
func openLedger(dir string) (ledger, error) {
	jobs, err := durable.OpenFolder(filepath.Join(dir, "jobs"))
	if err != nil {
		return ledger{}, fmt.Errorf("ledger: %w", err)
	}
	log, err := durable.OpenAudit(dir)
	if err != nil {
		return ledger{}, fmt.Errorf("ledger: %w", err)
	}
	return ledger{jobs, &audit{log: log, refused: map[uint32]refusals{}}}, nil
}

// Read returns the record of the job as it is seen now, brought up to date with its
// size: a new one if there is none or it is another job's. What is returned
// is not yet durable.
func (l ledger) Read(id Identity, have Size, now time.Time) (Record, error) {
	r, known, err := l.load(id.Job)
	if err != nil {
		return Record{}, err
	}
	if !known || r.another(id) {
		fresh := Record{Version: recordVersion, Identity: id, Asked: have}
		if id.Restarts == 0 {
			fresh.First = id.Submitted
		}
		return fresh, nil
	}
	r.follow(have, now)
	r.Identity = id
	return r, nil
}

// load reads what is there of a job with this name, and never guesses at what it cannot read.
func (l ledger) load(job string) (r Record, known bool, err error) {
	err = l.LoadJSON(job, &r)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Record{}, false, nil
	case err != nil:
		return Record{}, false, fmt.Errorf("ledger: job %s: %w: %w", job, driver.ErrTransient, err)
	case r.Version != recordVersion || r.Job != job:
		return Record{}, false, fmt.Errorf("ledger: job %s: version %d of job %q is not known: %w", job, r.Version, r.Job, driver.ErrTransient)
	}
	return r, true, nil
}

// another reports whether the number wrapped around, or slurmctld began to count again. A
// slurmctld that died may forget a restart and go back to the time before it.
func (r *Record) another(id Identity) bool {
	switch {
	case r.UID != id.UID:
		return true
	case id.Restarts == 0 && !r.First.IsZero():
		return !id.Submitted.Equal(r.First)
	}
	return id.Restarts < r.Restarts && id.Submitted.After(r.Submitted)
}

// Write makes a record durable.
func (l ledger) Write(r Record) error {
	if err := l.SaveJSON(r.Job, r); err != nil {
		return fmt.Errorf("ledger: job %s: %w: %w", r.Job, driver.ErrTransient, err)
	}
	return nil
}

// LastSet is the size that was set last, or was about to be, of a job of this user; ok
// reports whether there is one.
func (l ledger) LastSet(job string, uid uint32) (last Size, ok bool, err error) {
	r, known, err := l.load(job)
	if err != nil || !known || r.UID != uid || len(r.Sets) == 0 {
		return Size{}, false, err
	}
	return r.Sets[len(r.Sets)-1].Size, true, nil
}

// lasting is how long a size that another has replaced may still be seen:
// slurmctld writes down seconds later what it acknowledged, and where it dies before
// it comes back with what was.
const lasting = 10 * time.Minute

// follow takes a value that was not set here for its owner's new word.
func (r *Record) follow(have Size, now time.Time) {
	var sets []Set
	var known []Size
	for i, s := range r.Sets {
		if i == len(r.Sets)-1 || now.Sub(r.Sets[i+1].At) < lasting {
			sets, known = append(sets, s), append(known, s.Size)
		}
	}
	r.Sets = sets
	r.Asked = r.Asked.Take(have, known...)
}

// Setting adds a size that is about to be set.
func (r *Record) Setting(s Size, now time.Time) {
	if n := s.Total(); r.Less(s) && (r.Lowered == 0 || n < r.Lowered) {
		r.Lowered = n
	}
	if n := len(r.Sets); n > 0 && r.Sets[n-1].Size == s {
		return
	}
	r.Sets = append(r.Sets, Set{Size: s, At: now})
}

// Asking notes that the attempt is about to be asked to save, or discarded. A repeat
// counts once.
func (r *Record) Asking(restarts int) {
	if !r.WasAsked(restarts) {
		r.Signalled, r.Moves = restarts+1, r.Moves+1
	}
}

// WasAsked reports whether the attempt was asked to save.
func (r *Record) WasAsked(restarts int) bool { return r.Signalled == restarts+1 }

// Ours reports whether the wait of a job is of our making: the attempt before it was
// asked to save, or discarded, or was killed for memory and put back.
func (r *Record) Ours(restarts int) bool {
	return restarts > 0 && (r.Signalled == restarts || r.Rerun == restarts)
}

// Less reports whether a size has less memory than the job's owner asked for.
func (r *Record) Less(s Size) bool {
	n := s.Total()
	return n > 0 && n < r.Asked.Total()
}

// Back returns a size with the memory that the job's owner asked for.
func (r *Record) Back(s Size) Size {
	s.Memory = r.Asked.With(s.Cores).Memory // his total stays
	return s
}

// Audit appends one line to the audit file, and syncs it where it is about an effect. Of a
// user who is refused often it counts the refusals, and writes their number with the first
// entry a minute later. The file may be moved away at any time: the next line begins a new one.
func (l ledger) Audit(e Entry) (err error) {
	a := l.audit
	a.mu.Lock()
	defer a.mu.Unlock()
	for peer, r := range a.refused {
		if e.Time.Sub(r.since) < refusalSpan {
			continue
		}
		delete(a.refused, peer)
		if more := r.count - maxRefusals; more > 0 {
			why := fmt.Sprintf("%d more requests of this user since %s", more, r.since.Format(time.RFC3339))
			err = errors.Join(err, a.log.Append(Entry{Time: e.Time, Peer: peer, Verb: "refused", Refused: why}, false))
		}
	}
	r, known := a.refused[e.Peer]
	if !e.Allowed {
		if !known {
			r.since = e.Time
		}
		r.count++
		a.refused[e.Peer] = r
	}
	if e.Allowed || r.count <= maxRefusals {
		err = errors.Join(err, a.log.Append(e, e.Allowed))
	}
	if err != nil {
		return fmt.Errorf("audit: %w: %w", driver.ErrTransient, err)
	}
	return nil
}
