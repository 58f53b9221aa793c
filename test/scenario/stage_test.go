package scenario

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon"
	"pitchpipe/controller/daemon/peer"
	"pitchpipe/controller/reconcile"
	"pitchpipe/driver"
	exporter "pitchpipe/exporter/api"
	"pitchpipe/test/sim"
)

// patience is how long, in virtual time, a story waits for anything.
const patience = 4 * time.Hour

// tick is how often a running job is looked at: epochs here last some seconds.
const tick = 2 * time.Second

// play is a story while it happens.
type play struct {
	testing.TB
	files   map[string][]byte
	began   time.Time
	cluster *sim.Cluster
	config  config.Config
	site    *config.SitePolicy
	log     *complaints
	look    time.Duration // how often a running job is looked at; 0 = tick
	restart time.Duration // that the controller assumes; 0 = its default

	names []string // of the jobs, by submission
	ids   map[string]driver.JobID
	users map[string]string

	daemon *daemon.Daemon
	api    http.Handler
	end    context.CancelFunc // of the present controller
	gone   chan struct{}      // closed when it is

	mu     sync.Mutex
	faults []struck
	broken map[driver.JobID]bool
	crash  *crash
	saves  int // of records, by all controllers
}

// struck is a fault in force.
type struck struct {
	fault
	until time.Time
}

// crash waits for the moment to end the controller.
type crash struct {
	at   string // a phase, or the action of an intent
	step driver.StepKind
}

// meter is the cluster's exporter, with jobs that break it.
type meter struct {
	*sim.Cluster
	p *play
}

// Window implements nodes.Meter.
func (m meter) Window(ctx context.Context, job string, attempt int, after uint64) (exporter.Window, error) {
	m.p.mu.Lock()
	broken := m.p.broken[driver.JobID(strings.TrimPrefix(job, "sim/"))]
	m.p.mu.Unlock()
	if broken {
		panic("measurements of job " + job + " are broken")
	}
	return m.Cluster.Window(ctx, job, attempt, after)
}

// complaints are the errors that were logged.
type complaints struct {
	slog.Handler
	mu    sync.Mutex
	texts []string
}

// Enabled implements slog.Handler.
func (*complaints) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

// Handle implements slog.Handler.
func (c *complaints) Handle(_ context.Context, r slog.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Message != "the tuner pauses itself" { // that is for the operator, and a story may be about it
		c.texts = append(c.texts, r.Message)
	}
	return nil
}

func (p *play) start() {
	p.Helper()
	d, err := daemon.New(daemon.Parts{
		Config: p.config, Site: p.site, Driver: p.cluster, Meter: meter{p.cluster, p}, Log: slog.New(p.log), AfterSave: p.saved,
		Tick: cmp.Or(p.look, tick), RestartCost: p.restart,
	})
	if err != nil {
		p.Fatalf("open the controller: %v", err)
	}
	ctx, cancel := context.WithCancel(p.Context())
	gone := make(chan struct{})
	p.mu.Lock()
	p.daemon, p.api, p.end, p.gone = d, d.Handler(), cancel, gone
	p.mu.Unlock()
	go func() {
		defer close(gone)
		if err := d.Tune(ctx); err != nil {
			p.Errorf("the controller ended: %v", err)
		}
	}()
}

func (p *play) close() {
	p.Helper()
	p.end()
	<-p.gone
	if err := p.daemon.Close(); err != nil {
		p.Fatalf("close the controller: %v", err)
	}
}

// leave ends what a story that failed has left running.
func (p *play) leave() {
	p.end()
	<-p.gone
	p.cluster.Close()
}

// saved ends the controller where the story wants it to crash. What it would do
// next fails, since its context has ended.
func (p *play) saved(r *reconcile.Record) {
	at, step := string(r.Phase), driver.StepKind("")
	if m := r.Move; m != nil {
		at, step = string(m.Decision.Action), m.Step
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.saves++
	if p.crash != nil && p.crash.at == at && p.crash.step == step {
		p.crash = nil
		p.end()
	}
}

// durable is how often anything about a job was made durable.
func (p *play) durable() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.saves
}

// fails is the cluster's Config.Faults.
func (p *play) fails(op string, id driver.JobID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		if time.Now().Before(f.until) && (f.op == "any" || f.op == op) && (f.job == "" || p.ids[f.job] == id) {
			return f.err
		}
	}
	return nil
}

// ask calls the controller's API as a user.
func (p *play) ask(user, method, path string, body, answer any) int {
	p.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		p.Fatal(err)
	}
	uid := uint32(4242) // no user's: not the one that the controller runs as
	if user == "root" {
		uid = 0
	}
	ctx := peer.NewContext(p.Context(), peer.Peer{UID: uid, Name: user})
	req := httptest.NewRequestWithContext(ctx, method, path, bytes.NewReader(raw))
	rec := httptest.NewRecorder()
	p.api.ServeHTTP(rec, req)
	if answer != nil && rec.Code < http.StatusMultipleChoices {
		if err := json.Unmarshal(rec.Body.Bytes(), answer); err != nil {
			p.Fatalf("%s %s: %v in %s", method, path, err, rec.Body)
		}
	}
	return rec.Code
}

func (p *play) id(name string) driver.JobID {
	p.Helper()
	id, ok := p.ids[name]
	if !ok {
		p.Fatalf("no job %q was submitted", name)
	}
	return id
}

// newPlay makes the stage; the caller is inside a bubble.
func newPlay(t testing.TB, files map[string][]byte, state string, site *config.SitePolicy, cluster sim.Config) *play {
	t.Helper()
	p := &play{
		TB: t, files: files, began: time.Now(), site: site,
		config: config.Config{State: filepath.Join(state, "controller"), Resync: time.Minute},
		log:    &complaints{Handler: slog.DiscardHandler},
		ids:    map[string]driver.JobID{}, users: map[string]string{}, broken: map[driver.JobID]bool{},
	}
	cluster.Faults = p.fails
	var err error
	if p.cluster, err = sim.New(cluster); err != nil {
		t.Fatal(fmt.Errorf("the simulated cluster: %w", err))
	}
	return p
}
