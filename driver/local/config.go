package local

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/driver"
	"pitchpipe/driver/local/cgroup"
)

// DefaultCgroupRoot is where cgroups are mounted.
const DefaultCgroupRoot = "/sys/fs/cgroup"

// ErrConfig is wrapped by New where its Config cannot be used on this machine.
var ErrConfig = errors.New("configuration of the local driver")

// CauseRoom: the change that was queued no longer fits the machine, which has less room
// than before. Only this driver has this cause.
const CauseRoom driver.Cause = "room"

// Config is what a Driver needs.
type Config struct {
	Dir     string // state; made where missing
	Cluster string // job ids are CLUSTER-NUMBER, and cgroups are named by them; default local

	Cores       int   // default: the CPUs that this process may use
	MemoryBytes int64 // default: the machine's memory

	// Supervisor is the argv prefix of a command that calls supervise.Main with the
	// arguments that follow, such as {"/usr/bin/pitchpipe", "supervise"}.
	Supervisor []string

	// Listener is the argv prefix of `pitchpipe listen`; empty = no listener. It
	// gets --pattern, --file, --offset and --total.
	Listener []string

	// Env is given to every job, such as where the exporter hears reports. The job
	// file and the submission override it.
	Env map[string]string

	// CgroupRoot is where cgroups are mounted; empty = none, and jobs are confined
	// by affinity, and their memory by looking.
	CgroupRoot string

	// MaxPending is how many jobs of one user may wait; default 1000.
	MaxPending int

	// Hold is how long a job that saved waits for the next Advance; default 30 s.
	Hold time.Duration

	Logger *slog.Logger // default: nothing is logged

	// AfterStep is called after each durable step with its name. Crash tests end
	// the process there; production leaves it nil.
	AfterStep func(step string)
}

// withDefaults fills in what is not set and refuses what cannot be.
func (c Config) withDefaults() (_ Config, cpus []int, tree cgroup.Tree, err error) {
	if c.Dir == "" || len(c.Supervisor) == 0 {
		return c, nil, tree, errors.New("local driver: Dir and Supervisor are needed")
	}
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return c, nil, tree, fmt.Errorf("local driver: state directory: %w", err)
	}
	c.Cluster, c.MaxPending, c.Hold = cmp.Or(c.Cluster, "local"), cmp.Or(c.MaxPending, 1000), cmp.Or(c.Hold, 30*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.AfterStep == nil {
		c.AfterStep = func(string) {}
	}
	tree = cgroup.Probe(c.CgroupRoot)
	if cpus, err = allowedCPUs(tree); err != nil {
		return c, nil, tree, err
	}
	if c.MemoryBytes == 0 {
		var info unix.Sysinfo_t
		if err := unix.Sysinfo(&info); err != nil {
			return c, nil, tree, fmt.Errorf("local driver: machine memory: %w", err)
		}
		c.MemoryBytes = int64(info.Totalram) * int64(info.Unit)
	}
	c.Cores = cmp.Or(c.Cores, len(cpus))
	switch {
	case strings.ContainsAny(c.Cluster, "/. \x00"):
		err = fmt.Errorf("%w: cluster name %q: no slash, dot or space", ErrConfig, c.Cluster)
	case c.Cores < 1 || c.Cores > len(cpus):
		err = fmt.Errorf("%w: %d cores asked for, this process may use %d", ErrConfig, c.Cores, len(cpus))
	case c.MemoryBytes < 0:
		err = fmt.Errorf("%w: %d bytes of memory", ErrConfig, c.MemoryBytes)
	default:
		cpus = cpus[:c.Cores]
	}
	return c, cpus, tree, err
}

// allowedCPUs lists the CPUs that this process may use and its jobs can have.
func allowedCPUs(tree cgroup.Tree) ([]int, error) {
	own, err := cgroup.OwnCPUs()
	if err != nil {
		return nil, fmt.Errorf("local driver: %w", err)
	}
	if offered := tree.CPUs(); len(offered) > 0 {
		own = slices.DeleteFunc(own, func(cpu int) bool { return !slices.Contains(offered, cpu) })
	}
	return own, nil
}

// baseEnv is what every job gets from this process, and the given.
func baseEnv(given map[string]string) map[string]string {
	out := map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin"}
	for _, name := range []string{"PATH", "HOME", "USER", "LANG", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			out[name] = value
		}
	}
	maps.Copy(out, given)
	return out
}
