package faultnomad_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/test/fault"
)

// Ways in which a job answers when it is asked to save.
const (
	wayLeave = "leave"
	waySay   = "say"
	wayEnd   = "end"
)

// job is a batch job, and what the harness did to it.
type job struct {
	owner  *owner
	name   string
	way    string        // how it answers when it is asked to save
	late   time.Duration // with wayEnd: how long after the signal it ends
	marked bool          // with the completion marker
	again  bool          // its restart policy starts it again after it left
	epochs int

	mu      sync.Mutex
	own     *nomadapi.Job // as its owner registered it last
	stopped bool          // by its owner
	purged  bool
	ending  bool // it was told to come to its end
}

const (
	epoch   = 400 * time.Millisecond // each is a message to the exporter
	epochs  = 12000
	memory  = 48 // MiB
	pattern = `epoch (?P<epoch>\\d+)/(?P<total>\\d+) loss (?P<loss>\\S+) acc (?P<quality>\\S+)`
)

func (j *job) id() string                { return j.name + "@" + j.owner.name }
func (j *job) path(suffix string) string { return j.owner.w.path(j.owner.name + "-" + j.name + suffix) }

// file is a job whose knobs change nothing about its epochs, so that settings are tried
// one after another: each is a real move.
func (j *job) file(hurry string) string {
	checkpoint := "exit   = 85"
	if j.way != wayLeave {
		checkpoint = `done   = "^saved$"`
	}
	stanza := fmt.Sprintf(`tuning {
      mode      = "apply"
      objective = "time"
      knob "threads" {
        env     = "OMP_NUM_THREADS"
        values  = [1, 2, 3]
        default = 1
      }
      knob "batch_size" {
        env     = "BATCH_SIZE"
        values  = [1, 2, 3, 4, 5, 6, 7, 8]
        default = 1
        quality = "same"
      }
      progress {
        pattern = "%s"
      }
      checkpoint {
        signal = "SIGUSR1"
        grace  = "30s"
        %s
      }
      profile {
        warmup_epochs = 0
        epochs        = 2
      }
      budget {
        restarts = 60
        probes   = 50
      }
    }`, pattern, checkpoint)
	if !j.marked {
		stanza = "scaling {\n enabled = false\n min = 1\n max = 1\n policy {\n" + stanza + "\n}\n}"
	}
	restart := "attempts = 0\n mode = \"fail\""
	if j.again {
		restart = "attempts = 1000\n interval = \"24h\"\n delay = \"5s\"\n mode = \"fail\""
	}
	args := []string{
		"--journal", j.path(".journal"), "--epochs", fmt.Sprint(j.epochs), "--epoch", epoch.String(), "--way", j.way, "--late", j.late.String(),
		"--hurry", hurry, "--hurry", j.path(".end"), "--term", "--rerun",
	}
	for i, a := range args {
		args[i] = fmt.Sprintf("%q", a)
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
        args    = [%s]
      }
      kill_signal  = "SIGTERM"
      kill_timeout = "5s"
      resources {
        cpu    = 20
        memory = %d
      }
    }
  }
}
`, j.name, j.owner.name, stanza, restart, j.owner.w.path("faultjob"), strings.Join(args, ", "), memory)
}

// submit has the job's owner submit it: by "pitchpipe run", or by "nomad job run" where it
// gets no completion marker.
func (j *job) submit(hurry string) error {
	client, file := j.owner.w.nomad, j.file(hurry)
	if j.marked {
		_, err := nomad.Submission{Client: client}.Submit(j.owner.w.t.Context(), driver.Spec{Filename: j.name + ".nomad.hcl", Source: []byte(file)})
		if err != nil {
			return err
		}
	} else {
		parsed, err := client.Jobs().ParseHCL(file, true)
		if err != nil {
			return fmt.Errorf("%w\n%s", err, file)
		}
		if _, _, err := client.Jobs().Register(parsed, j.owner.write()); err != nil {
			return err
		}
	}
	registered, _, err := client.Jobs().Info(j.name, j.owner.read())
	if err != nil {
		return err
	}
	j.own, err = spec.Owner(registered)
	return err
}

// registerAnew has the owner register the job: as it was, or with what he wants now.
func (j *job) registerAnew(what string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	own, err := spec.Clone(j.own)
	if err != nil {
		return err
	}
	switch what {
	case ownersOther:
		mib := *own.TaskGroups[0].Tasks[0].Resources.MemoryMB + 1
		own.TaskGroups[0].Tasks[0].Resources.MemoryMB = &mib
	case ownersPriority:
		priority := *own.Priority + 1
		own.Priority = &priority
	}
	if _, _, err := j.owner.w.nomad.Jobs().Register(own, j.owner.write()); err != nil {
		return err
	}
	j.own = own
	return nil
}

// stop makes the owner stop the job.
func (j *job) stop(purge bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, _, err := j.owner.w.nomad.Jobs().Deregister(j.name, purge, j.owner.write())
	j.stopped, j.purged = true, purge
	return err
}

// was tells what its owner did to the job.
func (j *job) was() (stopped, purged bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stopped, j.purged
}

// end lets the job come to its end.
func (j *job) end() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ending = true
	return os.WriteFile(j.path(".end"), nil, 0o600)
}

// lives reports whether the job is far from its end and its owner has left it alone.
func (j *job) lives() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.stopped && !j.ending && j.told().Ends == 0
}

// told is what the job noted; empty where it never ran.
func (j *job) told() fault.Told { return fault.Read(j.journal(), j.epochs) }

func (j *job) journal() string {
	text, err := os.ReadFile(j.path(".journal"))
	if err != nil {
		return ""
	}
	return string(text)
}

// allocations are those of the job, the oldest first.
func (j *job) allocations() ([]*nomadapi.AllocationListStub, error) {
	list, _, err := j.owner.w.nomad.Jobs().Allocations(j.name, true, j.owner.read())
	slices.SortFunc(list, func(a, b *nomadapi.AllocationListStub) int { return int(a.CreateIndex) - int(b.CreateIndex) }) //nolint:gosec // indexes are small here
	return list, err
}

// newest is the allocation that was made last, nil where there is none.
func (j *job) newest() *nomadapi.AllocationListStub {
	list, err := j.allocations()
	if err != nil || len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}
