package fault

import (
	"context"
	"os/exec"
	"sync"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/test/sandbox"
)

// Keeper starts a program again whenever it ends, as systemd would.
type Keeper struct {
	t      testing.TB
	Name   string
	Log    string // file
	launch func() (*exec.Cmd, error)

	mu      sync.Mutex
	process *sandbox.Process
	planned bool // the next end is ours
	exits   int  // that were not planned
}

// Keep makes the program run until the test ends.
func Keep(t testing.TB, name, log string, launch func() (*exec.Cmd, error)) *Keeper {
	t.Helper()
	k := &Keeper{t: t, Name: name, Log: log, launch: launch}
	started := make(chan struct{})
	sandbox.Beside(t, name, func(ctx context.Context) error { return k.loop(ctx, started) })
	<-started
	return k
}

func (k *Keeper) loop(ctx context.Context, started chan struct{}) error {
	first := sync.OnceFunc(func() { close(started) })
	defer first()
	for ctx.Err() == nil {
		cmd, err := k.launch()
		var p *sandbox.Process
		if err == nil {
			p, err = sandbox.Begin(k.Name, k.Log, cmd)
		}
		if err != nil {
			return err
		}
		k.mu.Lock()
		k.process = p
		k.mu.Unlock()
		first()
		select {
		case <-p.Ended:
		case <-ctx.Done():
			return p.Leave(30 * time.Second)
		}
		k.mu.Lock()
		if !k.planned {
			k.exits++
		}
		k.planned = false
		k.mu.Unlock()
		_ = driver.Pause(ctx, 100*time.Millisecond) // the loop looks at ctx
	}
	return nil
}

// Plan says that the program is about to die by our hand.
func (k *Keeper) Plan() *sandbox.Process {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.planned = true
	return k.process
}

// Current is the program as it runs now.
func (k *Keeper) Current() *sandbox.Process {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.process
}

// Unplan takes a plan back, where the program still runs.
func (k *Keeper) Unplan(p *sandbox.Process) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.process == p && p.Alive() {
		k.planned = false
	}
}

// Crash kills the program.
func (k *Keeper) Crash() { k.Plan().Kill() }

// Examine tells the story how often it ended by itself, and fails the test where it did by
// its own fault.
func (k *Keeper) Examine(story *Story) {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	story.Logf("%s ended %d times unplanned", k.Name, k.exits)
	for _, word := range []string{"panic:", "fatal error:", "DATA RACE"} {
		if found := Grep(k.Log, word); found != "" {
			k.t.Errorf("%s says:\n%s", k.Name, found)
		}
	}
}
