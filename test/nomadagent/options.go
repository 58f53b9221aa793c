package nomadagent

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
)

// Errors of Launch.
var (
	// ErrUnavailable says that this machine has no such agent: the text says why.
	ErrUnavailable = errors.New("no Nomad agent here")
	// ErrOptions says that the options are impossible.
	ErrOptions = errors.New("impossible options")
)

// Kind is which Nomad is wanted.
type Kind int

// Kinds of Nomad.
const (
	Either    Kind = iota // the real agent where it is on PATH, else InProcess
	InProcess             // the server of test/nomadserver
	Real                  // the program nomad
)

// Options are what an agent is like. The zero value has no ACLs and the whole machine.
type Options struct {
	Kind Kind
	// ACL turns ACLs on; Agent.Token is the bootstrap token then.
	ACL bool
	// Cores is how many cores the node has, 0 = those of the machine. A real agent has
	// at most those.
	Cores int
	// MemoryMB is how much memory the node has, 0 = that of the machine.
	MemoryMB int
	// EventBuffer is how many events a real server keeps, 0 = 100.
	EventBuffer int
	// Oversubscribe lets memory_max count.
	Oversubscribe bool
	// Chroot is what a task of a real agent's driver exec can read, by its place on the
	// machine; none = Nomad's default, which is most of the machine.
	Chroot map[string]string
	// Volumes are folders of the machine that jobs of a real agent may mount, by name.
	Volumes map[string]string
}

// withDefaults chooses the kind of agent.
func (o Options) withDefaults() (Options, error) {
	if o.Cores < 0 || o.MemoryMB < 0 || o.EventBuffer < 0 {
		return o, fmt.Errorf("%w: %d cores, %d MB, %d events", ErrOptions, o.Cores, o.MemoryMB, o.EventBuffer)
	}
	switch o.Kind {
	case InProcess:
		return o, nil
	case Real:
		if err := Available(); err != nil {
			return o, err
		}
		if o.Cores > runtime.NumCPU() {
			return o, fmt.Errorf("%w: %d cores wanted of %d: only the server in this process can have more than the machine", ErrUnavailable, o.Cores, runtime.NumCPU())
		}
	default:
		o.Kind = InProcess
		if Available() == nil && o.Cores <= runtime.NumCPU() {
			o.Kind = Real
		}
	}
	return o, nil
}

// Available says why there can be no real agent, nil where there can.
func Available() error {
	if _, err := exec.LookPath("nomad"); err != nil {
		return fmt.Errorf("%w: the program nomad is not on PATH", ErrUnavailable)
	}
	return nil
}
