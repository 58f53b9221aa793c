package pair_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/controller/daemon"
	"pitchpipe/controller/daemon/daemontest"
	"pitchpipe/controller/store"
	"pitchpipe/driver"
	"pitchpipe/driver/nomad"
	"pitchpipe/test/nomadagent"
	"pitchpipe/test/sandbox"
)

const (
	savedExit = 85
	epochs    = 1000
	patience  = 3 * time.Minute // only failures wait for it
)

// site is an agent's namespace with the job of a story and the store of two controllers.
type site struct {
	clean *api.Client // through no proxy
	ns    string
	dir   string // where the job keeps its journal
}

// member is one controller.
type member struct {
	name   string
	way    *way
	driver *nomad.Driver
	cancel context.CancelFunc
	done   chan error
}

func newSite(t *testing.T, a *nomadagent.Agent) *site {
	t.Helper()
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.Name())) // never fails
	s := &site{clean: a.Client(t), ns: fmt.Sprintf("pair-%x", h.Sum32()), dir: t.TempDir()}
	if _, err := s.clean.Namespaces().Register(&api.Namespace{Name: s.ns}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, _, err := s.clean.Jobs().Deregister("work", true, &api.WriteOptions{Namespace: s.ns}); err != nil {
			t.Error(err)
		}
	})
	return s
}

// variables opens the store.
func (s *site) variables(client *api.Client) store.KV {
	return store.NewNomad(client, s.ns, "pitchpipe", store.Options{Retry: 500 * time.Millisecond})
}

// start starts a controller, put together as the program does.
func (s *site) start(t *testing.T, name string) *member {
	t.Helper()
	m := &member{name: name, way: &way{}, done: make(chan error, 1)}
	client := m.way.client(t, s.clean)
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})).With("controller", name)
	candidate := daemon.NewCandidate(s.variables(client), name, log)
	var err error
	m.driver, err = nomad.New(t.Context(), nomad.Config{
		Client: client, Namespaces: []string{s.ns}, Journal: candidate.Journal(), Leads: candidate.Leads, Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.driver.Close(); err != nil {
			t.Error(err)
		}
	})
	c := daemontest.New(t, daemontest.Options{Candidate: candidate, Tick: time.Second, Driver: func(driver.Driver) driver.Driver { return m.driver }})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	m.cancel = cancel
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.done <- c.Daemon.Tune(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return m
}

// leads waits until a controller leads.
func (s *site) leads(t *testing.T, name string) {
	t.Helper()
	v := s.variables(s.clean)
	until(t, name+" leads", func() bool {
		holder, err := v.Leader(t.Context())
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		return holder == name
	})
}

// freeLock takes the lock away from who has it, as an administrator can.
func (s *site) freeLock(t *testing.T) {
	q, w := &api.QueryOptions{Namespace: s.ns}, &api.WriteOptions{Namespace: s.ns}
	list, _, err := s.clean.Variables().PrefixList("pitchpipe/lock/", q)
	if err != nil || len(list) != 1 {
		t.Errorf("%d locks (%v), want one", len(list), err)
		return
	}
	v, _, err := s.clean.Variables().Read(list[0].Path, q)
	if err != nil || v.Lock == nil {
		t.Errorf("the lock is not to be seen: %v", err)
		return
	}
	if _, _, err := s.clean.Variables().ReleaseLock(&api.Variable{Path: v.Path, Namespace: s.ns, Lock: &api.VariableLock{ID: v.Lock.ID}}, w); err != nil {
		t.Error(err)
	}
}

// script is the job: it keeps a journal of each start, of each epoch and of its end, and
// leaves when it is asked to, after its present epoch.
const script = `cd "$1" || exit 1
trap 'exit 85' USR1
echo "${MOVED:-owner}" >>starts
n=$(grep -c . done 2>/dev/null)
n=${n:-0}
while [ "$n" -lt "$2" ]; do
  [ -e finish ] || sleep 0.1
  n=$((n+1))
  echo "$n" >>done
done
trap '' USR1
echo "$n" >>ends`

// register registers the job as its owner does.
func (s *site) register(t *testing.T) driver.JobID {
	t.Helper()
	file := filepath.Join(s.dir, "job.sh")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	job, err := s.clean.Jobs().ParseHCL(fmt.Sprintf(`job "work" {
  namespace = %q
  type      = "batch"
  group "g" {
    scaling {
      enabled = false
      min     = 1
      max     = 1
      policy {
        tuning {
          mode = "observe"
        }
      }
    }
    restart {
      attempts = 0
      mode     = "fail"
    }
    reschedule {
      attempts  = 0
      unlimited = false
    }
    task "main" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = [%q, %q, "%d"]
      }
      resources {
        cpu    = 20
        memory = 32
      }
    }
  }
}
`, s.ns, file, s.dir, epochs), true)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.clean.Jobs().Register(job, &api.WriteOptions{Namespace: s.ns}); err != nil {
		t.Fatal(err)
	}
	return driver.JobID("work@" + s.ns)
}

// lines are those of a file of the job's journal.
func (s *site) lines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// epochs are those that the job is to do, each once.
func (s *site) epochs() []string {
	var out []string
	for i := range epochs {
		out = append(out, strconv.Itoa(i+1))
	}
	return out
}

// wait waits for what is to become of the job, as a controller sees it.
func (s *site) wait(t *testing.T, m *member, id driver.JobID, what string, is func(driver.Job) bool) (job driver.Job) {
	t.Helper()
	until(t, what, func() bool {
		var err error
		if job, err = m.driver.Get(t.Context(), id); err != nil && !errors.Is(err, driver.ErrTransient) {
			t.Fatal(err)
		}
		return err == nil && is(job)
	})
	return job
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	sandbox.Until(t, patience, what, is)
}
