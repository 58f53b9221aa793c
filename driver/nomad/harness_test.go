package nomad_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/jobfile/nomadjson"
	"pitchpipe/driver/nomad"
	"pitchpipe/test/sandbox"
)

const savedExit = 85

// program is what the jobs of the tests run, built once: a test with the race detector
// in it would use more memory than the jobs may.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pitchpipe-job-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "job")
	return path, sandbox.Build(context.Background(), dir, "driver/nomad/testdata/job")
})

// bench is one driver of a test, which sees the jobs of its own namespace.
type bench struct {
	client *api.Client
	ns     string
	dir    string // where the jobs keep their epochs
	cfg    nomad.Config
	d      *nomad.Driver
	policy string // restart block of the jobs
}

func namespaceFor(t *testing.T) string {
	t.Helper()
	h := fnv.New32a()
	if _, err := h.Write([]byte(t.Name())); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("t%x-%x", h.Sum32(), time.Now().UnixNano()&0xffffff)
}

func newBench(t *testing.T, client *api.Client, change func(*nomad.Config)) *bench {
	t.Helper()
	b := &bench{client: client, ns: namespaceFor(t), dir: t.TempDir(), policy: "attempts = 0\n      mode     = \"fail\""}
	if _, err := client.Namespaces().Register(&api.Namespace{Name: b.ns}, nil); err != nil {
		t.Fatal(err)
	}
	files, err := durable.OpenFolder(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	b.cfg = nomad.Config{
		Client: client, Namespaces: []string{b.ns}, Journal: files,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if change != nil {
		change(&b.cfg)
	}
	b.open(t)
	t.Cleanup(func() { b.cleanUp(t) })
	return b
}

func (b *bench) open(t *testing.T) {
	t.Helper()
	var err error
	if b.d, err = nomad.New(context.WithoutCancel(t.Context()), b.cfg); err != nil {
		t.Fatalf("opening the driver: %v", err)
	}
}

func (b *bench) reopen(t *testing.T) driver.Driver {
	t.Helper()
	if err := b.d.Close(); err != nil {
		t.Fatal(err)
	}
	b.open(t)
	return b.d
}

// cleanUp ends every job of the namespace.
func (b *bench) cleanUp(t *testing.T) {
	if err := b.d.Close(); err != nil {
		t.Error(err)
	}
	b.deregister(t)
}

func (b *bench) deregister(t *testing.T) {
	t.Helper()
	q := &api.QueryOptions{Namespace: b.ns}
	jobs, _, err := b.client.Jobs().List(q)
	if err != nil {
		t.Error(err)
	}
	for _, j := range jobs {
		if _, _, err := b.client.Jobs().Deregister(j.ID, true, &api.WriteOptions{Namespace: b.ns}); err != nil && !strings.Contains(err.Error(), "not found") && nomadjson.Misread(j.ID) == "" {
			t.Error(err)
		}
	}
}

// file is the job file of a behaviour.
func (b *bench) file(t *testing.T, be drivertest.Behaviour) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	if be.MissingCommand {
		path = "/no/such/program"
	}
	name := be.Name
	if name == "" {
		name = "conformance"
	}
	args, err := json.Marshal(map[string]any{
		"Epoch": be.Epoch, "Epochs": be.Epochs, "ExitCode": be.ExitCode, "UseMemory": be.UseMemory, "Saves": be.Saves,
		"IgnoreSignal": be.IgnoreSignal, "LeavesWith": be.LeavesWith, "SaysSaved": be.SaysSaved, "ShowEnv": be.ShowEnv, "SavedExit": savedExit,
	})
	if err != nil {
		t.Fatal(err)
	}
	limit := ""
	if be.TimeLimit > 0 {
		limit = fmt.Sprintf("max_run_duration = %q", be.TimeLimit)
	}
	size := "cpu = 50"
	if be.Cores > 0 {
		size = fmt.Sprintf("cores = %d", be.Cores)
	}
	memory := int64(128)
	if be.MemoryBytes > 0 {
		memory = be.MemoryBytes >> 20
	}
	policy := b.policy
	if be.LeavesWith != 0 || be.ExitCode != 0 || be.MissingCommand {
		policy = "attempts = 0\n      mode     = \"fail\""
	}
	return fmt.Sprintf(`job %q {
  namespace = %q
  type      = "batch"
  group "g" {
    %s
    restart {
      %s
    }
    reschedule {
      attempts  = 0
      unlimited = false
    }
    task "main" {
      driver = "raw_exec"
      config {
        command = %q
        args    = [%q, %q]
      }
      kill_timeout = "1s"
      resources {
        %s
        memory = %d
      }
    }
  }
}
`, name, b.ns, limit, policy, path, args, b.dir, size, memory)
}

func (b *bench) job(t *testing.T, be drivertest.Behaviour) driver.Spec {
	t.Helper()
	name := be.Name
	if name == "" {
		name = "conformance"
	}
	return driver.Spec{Owner: be.Owner, Filename: name + ".nomad.hcl", Source: []byte(b.file(t, be)), Dir: b.dir}
}

// begin registers a job with a change, as its user does.
func (b *bench) begin(t *testing.T, s driver.Spec, intent string, c driver.Change) driver.Job {
	t.Helper()
	u := nomad.Submission{Client: b.client, Ask: func(context.Context, []byte) (nomad.Beginning, bool) {
		return nomad.Beginning{Intent: intent, Change: c}, true
	}}
	id, err := u.Submit(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	job, err := b.d.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func (b *bench) harness(t *testing.T) drivertest.Harness {
	t.Helper()
	nodes, _, err := b.client.Nodes().List(&api.QueryOptions{Params: map[string]string{"resources": "true"}})
	if err != nil || len(nodes) == 0 || nodes[0].NodeResources == nil {
		t.Fatal(errors.Join(err, errors.New("no node")))
	}
	// Nothing is discarded on a node that has just registered, and the suite's jobs are short.
	if node, _, err := b.client.Nodes().Info(nodes[0].ID, nil); strings.Contains(t.Name(), "discard") && err == nil {
		time.Sleep(time.Until(time.Unix(node.StatusUpdatedAt+11, 0)))
	}
	r := nodes[0].NodeResources
	return drivertest.Harness{
		Driver: b.d, Job: b.job, Begin: b.begin, Cores: len(r.Cpu.ReservableCpuCores), MemoryBytes: r.Memory.MemoryMB << 20,
		Checkpoint: driver.Checkpoint{Signal: "SIGUSR1", Exit: savedExit}, Reopen: b.reopen,
	}
}
