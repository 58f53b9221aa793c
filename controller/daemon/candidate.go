package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	consul "github.com/hashicorp/consul/api"
	nomad "github.com/hashicorp/nomad/api"

	"pitchpipe/controller/config"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/store"
)

// Errors of a controller that shares its state.
var (
	// ErrStandby means that another controller leads, and this one only answers.
	ErrStandby = errors.New("this controller stands by")
	// ErrDeposed means that this controller does not lead any more. The next leader goes
	// on with what it was doing.
	ErrDeposed = errors.New("this controller does not lead any more")
	// ErrStore means that the shared store cannot be used as it is configured.
	ErrStore = errors.New("shared store")
)

const (
	// refreshEvery is how old the answers of a standby controller may be.
	refreshEvery = 3 * time.Second
	// lookUp bounds the question who leads.
	lookUp = 5 * time.Second
)

// Candidate is a controller's part of a pair: leader or standby. A nil Candidate
// is a controller that is alone, and always leads.
type Candidate struct {
	kv      store.KV
	replica *store.Replica
	holder  string
	log     *slog.Logger

	lease atomic.Pointer[store.Lease] // nil: it is a standby

	loading   sync.Mutex // one load of the shared state at a time
	refreshed time.Time
}

// OpenCandidate opens the shared store that the configuration names, or returns nil where
// it names none. NomadClient makes the client of a store in Nomad, with the rights of the
// controller. Nothing is asked of Nomad or Consul yet.
func OpenCandidate(ctx context.Context, cfg config.Store, nomadClient func() (*nomad.Client, error), log *slog.Logger) (*Candidate, error) {
	var kv store.KV
	var err error
	options := store.Options{TTL: cfg.TTL, Delay: cfg.Delay}
	switch cfg.Kind {
	case "", "none":
		return nil, nil //nolint:nilnil // a controller that is alone has no shared store
	case "file":
		if cfg.Path == "" {
			return nil, fmt.Errorf("%w: store.path is missing: want the absolute path of a file that all controllers of the pair name", ErrStore)
		}
		kv, err = store.OpenFile(ctx, cfg.Path)
	case "nomad":
		var client *nomad.Client
		if client, err = nomadClient(); err == nil {
			kv = store.NewNomad(client, cfg.Namespace, cfg.Prefix, options)
		}
	case "consul":
		// Consul's own environment variables hold what is not configured.
		with := &consul.Config{Address: cfg.Address}
		if cfg.TokenFile != "" {
			with.Token, err = config.ReadToken(cfg.TokenFile)
		}
		var client *consul.Client
		if err == nil {
			client, err = consul.NewClient(with)
		}
		if err == nil {
			kv = store.NewConsul(client, cfg.Prefix, options)
		}
	default:
		err = fmt.Errorf("store.kind %q is unknown", cfg.Kind)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStore, err)
	}
	return NewCandidate(kv, "", log), nil
}

// NewCandidate makes a Candidate for one Daemon. Holder names this controller to people
// who ask who leads; the default is its host and process.
func NewCandidate(kv store.KV, holder string, log *slog.Logger) *Candidate {
	if holder == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown host"
		}
		holder = fmt.Sprintf("%s (process %d)", host, os.Getpid())
	}
	c := &Candidate{kv: kv, holder: holder, log: log}
	c.replica = store.NewReplica(kv, c.leads)
	return c
}

// leads answers as far as this process knows, without asking the store: nil where it
// leads. It suffices before a write to the log, which is checked.
func (c *Candidate) leads() error {
	if c == nil {
		return nil
	}
	switch lease := c.lease.Load(); {
	case lease == nil:
		return ErrStandby
	case lease.Lost():
		return ErrDeposed
	}
	return nil
}

// Leads asks the store whether this process leads. The daemon and the driver call it
// before every effect.
func (c *Candidate) Leads(ctx context.Context) error {
	if err := c.leads(); c == nil || err != nil {
		return err
	}
	switch err := c.lease.Load().Check(ctx); {
	case errors.Is(err, store.ErrLost):
		return fmt.Errorf("%w: %w", ErrDeposed, err)
	case err != nil:
		return err
	}
	return c.replica.Err()
}

func (c *Candidate) leader(ctx context.Context) string {
	call, cancel := context.WithTimeout(ctx, lookUp)
	defer cancel()
	holder, err := c.kv.Leader(call)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "no controller leads at the moment"
	case err != nil:
		return "the leader is unknown: " + err.Error()
	}
	return holder + " leads"
}

// mayChange refuses, by the name of the leader, what only the leader may do.
func (c *Candidate) mayChange(ctx context.Context) error {
	err := c.Leads(ctx)
	if errors.Is(err, ErrStandby) || errors.Is(err, ErrDeposed) {
		return fmt.Errorf("%w: %s; ask that one", ErrStandby, c.leader(ctx))
	}
	return err
}

// refresh brings the answers of a standby controller up to date. Where that
// fails they are old ones.
func (c *Candidate) refresh(ctx context.Context, d *Daemon) {
	if c == nil || !errors.Is(c.leads(), ErrStandby) {
		return
	}
	c.loading.Lock()
	defer c.loading.Unlock()
	if !errors.Is(c.leads(), ErrStandby) || time.Since(c.refreshed) < refreshEvery {
		return
	}
	err := d.store.Refresh(ctx)
	if err == nil {
		err = d.reload()
	}
	if err == nil {
		c.refreshed = time.Now()
	} else {
		c.log.Warn("the shared state cannot be read", "error", err)
	}
}

// take begins a term: it loads the shared state, and becomes the only writer.
func (c *Candidate) take(ctx context.Context, lease *store.Lease, depose func(error), d *Daemon) error {
	c.loading.Lock()
	defer c.loading.Unlock()
	c.lease.Store(lease)
	err := c.replica.Begin(ctx, depose)
	if err == nil {
		err = d.store.Adopt(ctx)
	}
	if r, ok := d.driver.(interface{ Recall(context.Context) error }); ok && err == nil { // others may have written what it keeps in memory
		err = r.Recall(ctx)
	}
	if err == nil {
		err = d.reload()
	}
	if err != nil {
		return fmt.Errorf("take over: %w", err)
	}
	return nil
}

// lead waits for the leadership and runs what only a leader does until that ends.
func (d *Daemon) lead(ctx context.Context) error {
	c := d.candidate
	c.log.Info("waiting for the leadership", "holder", c.holder, "now", c.leader(ctx))
	return store.Lead(ctx, c.kv, c.holder, c.log, func(ctx context.Context, lease *store.Lease) error {
		term, depose := context.WithCancelCause(ctx)
		defer depose(nil)
		err := c.take(term, lease, depose, d)
		if err == nil {
			c.log.Info("this controller leads", "holder", c.holder)
			err = d.tune(term)
		}
		if cause := context.Cause(term); errors.Is(cause, store.ErrLost) || errors.Is(cause, store.ErrStale) {
			err = fmt.Errorf("%w: %w", ErrDeposed, errors.Join(cause, err))
			c.log.Error("this controller stops", "error", err)
		}
		return err
	})
}

// reload reads again the part of the durable state that is kept in memory.
func (d *Daemon) reload() error {
	model := d.loadModel()
	if errors.Is(model, knowledge.ErrStale) { // the leader fits again classes that it cannot read
		model = nil
	}
	return errors.Join(d.pauses.reload(), d.records.reload(), d.searches.Load(context.Background()), model)
}
