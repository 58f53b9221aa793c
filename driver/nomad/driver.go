package nomad

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
)

// Driver runs the batch jobs of a Nomad cluster. It implements driver.Driver,
// driver.Listener and io.Closer.
type Driver struct {
	cfg Config
	c   cluster
	ns  []string // whose jobs are seen
	own string   // namespace of a job file that names none

	life context.Context //nolint:containedctx // ends with Close
	end  context.CancelFunc
	busy sync.WaitGroup

	followers atomic.Int64 // outputs that are followed by a stream
	moves     move.Machine
	locks     move.Locks // by the names of records
	advice    advice

	mu        sync.Mutex
	jobs      map[driver.JobID]*cached
	heard     map[string]bool // allocations whose output is followed
	informer  *informer
	pruned    time.Time            // when old records were looked for last
	registers map[string]time.Time // namespaces in which the token had the right to register, then
}

// New returns a driver that runs until Close. It reads the journal and looks after the
// jobs that it finds there.
func New(ctx context.Context, cfg Config) (*Driver, error) {
	switch {
	case cfg.Client == nil:
		return nil, fmt.Errorf("no client: %w", ErrConfig)
	case cfg.Journal == nil:
		return nil, fmt.Errorf("no journal: %w", ErrConfig)
	case cfg.Resync < 0:
		return nil, fmt.Errorf("a resync every %v: %w", cfg.Resync, ErrConfig)
	}
	cfg.Resync = cmp.Or(cfg.Resync, 30*time.Second)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	d := &Driver{
		cfg: cfg, c: cluster{cfg.Client, cfg.Leads},
		jobs: map[driver.JobID]*cached{}, heard: map[string]bool{}, registers: map[string]time.Time{},
	}
	d.moves.AfterStep = cfg.AfterStep
	d.ns = slices.Clone(cfg.Namespaces)
	if len(d.ns) == 0 {
		d.ns = []string{api.DefaultNamespace}
	}
	if d.own = d.ns[0]; d.own == api.AllNamespacesNamespace {
		d.own = api.DefaultNamespace
	}
	if err := d.recall(ctx); err != nil {
		return nil, err
	}
	d.life, d.end = context.WithCancel(context.Background())
	d.informer = &informer{d: d, lists: map[string]*listing{}, told: map[string]time.Time{}}
	d.informer.own = d.informer.watchers.Subscribe()
	for _, ns := range d.ns {
		d.busy.Go(func() { d.informer.look(d.life, ns) })
	}
	d.busy.Go(func() { d.informer.keep(d.life) })
	return d, nil
}

// Recall reads the journal again, which another controller may have written: it is for one
// that begins to lead. Everything on record is looked at then.
func (d *Driver) Recall(ctx context.Context) error {
	d.mu.Lock()
	for _, c := range d.jobs {
		c.record, c.snapshot = nil, nil
	}
	d.mu.Unlock()
	d.advice.mu.Lock()
	d.advice.given = nil
	d.advice.mu.Unlock()
	if err := d.recall(ctx); err != nil {
		return err
	}
	d.informer.acted.Add(1)
	for _, id := range d.which(unfinished) {
		d.informer.watchers.Changed(id)
	}
	return nil
}

func (d *Driver) recall(ctx context.Context) error {
	names, err := d.cfg.Journal.List(ctx)
	if err != nil {
		return fmt.Errorf("reading the journal: %w: %w", driver.ErrTransient, err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "job-") {
			continue
		}
		if err := d.recallOne(ctx, name); err != nil {
			// One bad record never stops the others: its job is answered with this error.
			d.cfg.Logger.Error("a record of the journal cannot be read", "record", name, "error", err)
		}
	}
	return nil
}

// recallOne reads one record. A call that is handling its job now read the record before
// this controller began to lead, and must not save its result over what is read now:
// recallOne waits for it, and its save is refused.
func (d *Driver) recallOne(ctx context.Context, name string) error {
	defer d.locks.Hold(name)()
	r, err := d.loadName(ctx, name)
	if err == nil {
		d.remember(r)
	}
	return err
}

// Name is nomad.
func (d *Driver) Name() string { return "nomad" }

// Capabilities is what Nomad can do.
func (d *Driver) Capabilities() driver.Capabilities { return Capabilities() }

// Capabilities are those of every Nomad cluster.
func Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Env: true, Args: true, Memory: true, MemoryReturns: true, UsersSubmit: true,
	}
}

// Close ends what the driver does by itself. Jobs run on.
func (d *Driver) Close() error {
	d.end()
	d.informer.watchers.Close()
	d.busy.Wait()
	return nil
}

// hold makes one caller at a time the only one to act on a job.
func (d *Driver) hold(id driver.JobID) (release func()) { return d.locks.Hold(recordName(id)) }

func (d *Driver) remember(r *record) {
	b := r.brief()
	d.keep(r.Job, func(c *cached) { c.record = &b })
}

func (d *Driver) sees(namespace string) bool {
	return slices.Contains(d.ns, namespace) || slices.Contains(d.ns, api.AllNamespacesNamespace)
}

// where is a job's place in Nomad.
type where struct{ namespace, id string }

// jobID is the name that a job has here: its own in the namespace default, elsewhere
// ID@NAMESPACE. An id that holds an @ always has its namespace.
func (w where) jobID() driver.JobID {
	if w.namespace == api.DefaultNamespace && !strings.Contains(w.id, "@") {
		return driver.JobID(w.id)
	}
	return driver.JobID(w.id + "@" + w.namespace)
}

// place finds the job of a name.
func place(id driver.JobID) where {
	if i := strings.LastIndex(string(id), "@"); i >= 0 {
		return where{namespace: string(id)[i+1:], id: string(id)[:i]}
	}
	return where{namespace: api.DefaultNamespace, id: string(id)}
}

// ownID is the id of the job that a request makes: it is that of no other request and
// of no job that a person would register.
func ownID(name string, request driver.RequestID) string {
	return fmt.Sprintf("%s-%s", name, driver.Digest(string(request))[:10])
}

// ErrConfig means that a Config cannot work.
var ErrConfig = errors.New("invalid configuration")

// ErrNotLeading means that another controller leads, and this one changes nothing.
var ErrNotLeading = errors.New("this controller does not lead")

// Config says how a Driver works.
type Config struct {
	// Client reaches the cluster with the rights of the controller. Required.
	Client *api.Client
	// Namespaces are those whose jobs are seen, * for all that the token may read; none =
	// default. A job file that names none goes to the first.
	Namespaces []string
	// Journal is what survives this process. Required.
	Journal Journal
	// Listen follows the output of a running attempt until it ends and reports each
	// epoch to the exporter of the node; unit is driver.Attempt.Unit. Nil: Listen is
	// ErrUnsupported.
	Listen func(ctx context.Context, node, unit string, p driver.Progress, output io.Reader) error
	// Leads is asked before anything is changed in Nomad: an error and it is not. Nil: this
	// process is alone. A standby only looks at jobs; see Driver.Recall.
	Leads func(ctx context.Context) error
	// Resync is how often everything is read again, 0 = 30 s.
	Resync time.Duration
	// AfterStep is called at the points of package move; tests crash there.
	AfterStep func(point string)
	// Now is the clock for forgetting what is old; nil = time.Now.
	Now func() time.Time
	// Logger logs what was done; nil = silent.
	Logger *slog.Logger
}

// Journal is move.Store, whose Save is ErrNotLeading where another controller leads.
type Journal = move.Store
