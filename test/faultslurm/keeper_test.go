package faultslurm_test

import (
	"context"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// keeper starts a program again whenever it ends, as systemd would.
type keeper struct {
	t      *testing.T
	name   string
	log    string // file
	launch func() (*exec.Cmd, error)
	done   chan struct{}

	mu      sync.Mutex
	process *process
	planned bool // the next end is ours
	exits   int  // that nobody planned
}

// keep has the program run until the test ends.
func keep(t *testing.T, name, log string, launch func() (*exec.Cmd, error)) *keeper {
	t.Helper()
	k := &keeper{t: t, name: name, log: log, launch: launch, done: make(chan struct{})}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	started := make(chan struct{})
	go k.loop(ctx, started)
	t.Cleanup(func() {
		stop()
		<-k.done
	})
	<-started
	return k
}

func (k *keeper) loop(ctx context.Context, started chan struct{}) {
	defer close(k.done)
	first := sync.OnceFunc(func() { close(started) })
	defer first()
	for ctx.Err() == nil {
		cmd, err := k.launch()
		var p *process
		if err == nil {
			p, err = begin(cmd, k.log)
		}
		if err != nil {
			k.t.Errorf("%s: %v", k.name, err)
			return
		}
		k.mu.Lock()
		k.process = p
		k.mu.Unlock()
		first()
		select {
		case <-p.ended:
		case <-ctx.Done():
			p.end(k.t)
			return
		}
		k.mu.Lock()
		if !k.planned {
			k.exits++
		}
		k.planned = false
		k.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// plan says that the program is about to die by our hand.
func (k *keeper) plan() *process {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.planned = true
	return k.process
}

// current is the program as it runs now.
func (k *keeper) current() *process {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.process
}

// unplan takes a plan back, where the program still runs.
func (k *keeper) unplan(p *process) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.process == p && p.alive() {
		k.planned = false
	}
}

// crash kills the program.
func (k *keeper) crash() { k.plan().kill() }

// unplanned is how often it ended by itself.
func (k *keeper) unplanned() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.exits
}
