package daemontest

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/driver"
	"pitchpipe/test/sandbox"
	"pitchpipe/test/sim"
)

// Options say what differs from a plain controller; the zero value is one.
type Options struct {
	State  string // directory of the durable state; empty = a new one
	Socket string // path of the socket; empty = a new one
	Listen string // loopback address of /metrics; empty = none
	// JobLabels names the jobs in /metrics.
	JobLabels bool
	Sim       sim.Config // the simulated cluster
	Site      string     // text of the site's policy; empty = the site wrote none
	// Tick is how often a job is looked at; 0 = 20 ms, which in virtual time is
	// much work.
	Tick time.Duration
	// Driver, where not nil, is between the controller and the cluster.
	Driver func(driver.Driver) driver.Driver

	// Cluster, where not nil, is one that exists already and outlives the controller:
	// several controllers may have the same.
	Cluster *sim.Cluster
	// Candidate is the controller's part of a pair.
	Candidate *daemon.Candidate
}

// Controller is one that runs.
type Controller struct {
	Client  *api.Client
	Cluster *sim.Cluster
	Daemon  *daemon.Daemon
	Config  config.Config

	stop func() error
}

// New builds a controller that does not run yet; it is closed with the test.
func New(t testing.TB, o Options) *Controller {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("build a controller: %v", err)
		}
	}
	dir := t.TempDir()
	o.Tick = cmp.Or(o.Tick, 20*time.Millisecond)
	c := &Controller{Cluster: o.Cluster, Config: config.Config{
		Socket: cmp.Or(o.Socket, filepath.Join(dir, "s")), State: cmp.Or(o.State, filepath.Join(dir, "state")), Listen: o.Listen, JobLabels: o.JobLabels, Driver: "local", Resync: time.Second,
		Log: config.Log{Level: slog.LevelInfo, Format: "text"}, Given: map[string]string{"listen": "--listen"},
	}}
	policy := ""
	if o.Site != "" {
		policy = filepath.Join(dir, "site.yaml")
		must(os.WriteFile(policy, []byte(o.Site), 0o600))
	}
	site, err := config.LoadSite(policy)
	must(err)
	if c.Cluster == nil {
		c.Cluster, err = sim.New(o.Sim)
		must(err)
	}
	var drv driver.Driver = c.Cluster
	if o.Driver != nil {
		drv = o.Driver(drv)
	}
	c.Daemon, err = daemon.New(daemon.Parts{
		Config: c.Config, Site: site, Driver: drv, Meter: c.Cluster, Log: slog.New(slog.DiscardHandler),
		Tick: o.Tick, Step: o.Tick / 4, Candidate: o.Candidate,
	})
	must(err)
	c.Client = api.NewClient(c.Config.Socket)
	c.stop = sync.OnceValue(func() error {
		c.Client.Close()
		if o.Cluster == nil {
			c.Cluster.Close()
		}
		return c.Daemon.Close()
	})
	t.Cleanup(func() { c.Stop(t) })
	return c
}

// Start builds a controller and runs it until Stop, at the latest until the end
// of the test. It answers when Start returns.
func Start(t testing.TB, o Options) *Controller {
	t.Helper()
	c := New(t, o)
	release, end := c.stop, sandbox.Beside(t, "the controller", c.Daemon.Run)
	c.stop = sync.OnceValue(func() error {
		c.Client.Close()
		end()
		return release()
	})
	t.Cleanup(func() { c.Stop(t) })
	sandbox.Await(t, 10*time.Second, "the controller answers", func() error {
		_, err := c.Client.Pauses(t.Context())
		return err
	})
	return c
}

// Stop ends the controller and waits for it; a second one does nothing.
func (c *Controller) Stop(t testing.TB) {
	t.Helper()
	if err := c.stop(); err != nil {
		t.Errorf("the controller ended with: %v", err)
	}
}

// Until asks for a job until it is as wanted, and fails the test after a time
// that is far longer than that takes.
func (c *Controller) Until(t testing.TB, id string, wanted func(api.Job) bool) (j api.Job) {
	t.Helper()
	sandbox.Await(t, 30*time.Second, "job "+id+" becomes what is wanted", func() (err error) {
		if j, err = c.Client.Job(t.Context(), id); err != nil {
			t.Fatalf("job %s: %v", id, err)
		}
		if !wanted(j) {
			err = fmt.Errorf("it is %+v", j)
		}
		return err
	})
	return j
}

// Ended is for Until.
func Ended(j api.Job) bool { return j.Ended }

// Script is a tunable job file for the simulated cluster: lines are added to it,
// such as "#TUNE mode=observe" or "#SIM exit=3".
func Script(name string, epochs int, seconds float64, lines ...string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/sh\n#SBATCH --job-name=%s\n#SBATCH --cpus-per-task=1\n#SBATCH --mem=1G\n", name)
	fmt.Fprintf(&b, "#SIM epochs=%d seconds=%g\n", epochs, seconds)
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	b.WriteString("exec ./" + name + "\n")
	return []byte(b.String())
}

// Tuned are the #TUNE lines of a job with everything that a move needs.
func Tuned(mode string) []string {
	return []string{
		"#TUNE mode=" + mode,
		"#TUNE knob cores values=1,2,4",
		`#TUNE progress pattern='epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+)'`,
		"#TUNE checkpoint signal=USR1 grace=60s exit=85",
		"#SIM parallel=0.9 checkpoint=5ms",
	}
}
