package slurmcluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"pitchpipe/test/sandbox"
)

// Errors of Start.
var (
	// ErrUnavailable says that this machine cannot run a cluster: not root, or a
	// package or a user is missing. The text says which.
	ErrUnavailable = errors.New("no Slurm here")
	// ErrOptions says that the options contradict themselves.
	ErrOptions = errors.New("impossible options")
)

// The users that scripts/setup-slurm makes. The first two are ordinary; with
// accounting each has their own account, Operator has Slurm's administrator level
// Operator, and Controller, who runs the controller of a site, has none.
const (
	Alpha      = "pitchpipe-u1"
	Beta       = "pitchpipe-u2"
	Operator   = "pitchpipe-op"
	Controller = "pitchpipe-ctl"
)

// Accounts of Alpha and Beta, in a cluster with accounting.
const (
	AlphaAccount = "alpha"
	BetaAccount  = "beta"
)

// Track says how Slurm keeps a job's processes together.
type Track int

// Ways to track processes.
const (
	// TrackAuto takes cgroups where the machine has them as Slurm 22.05 wants them.
	TrackAuto Track = iota
	// TrackCgroup is proctrack, task and jobacct_gather of cgroup, version 1.
	TrackCgroup
	// TrackLinux is proctrack/linuxproc: no cgroup per job, no memory limit.
	TrackLinux
)

// Options say what cluster is wanted. The zero value is one node without accounting.
type Options struct {
	// Accounting brings mariadbd and slurmdbd, so that sacct and sacctmgr answer.
	Accounting bool
	// Nodes is the number of slurmd's; 0 is one. Each has all CPUs of the machine, so
	// jobs on two nodes share cores: compare speeds on one.
	Nodes int
	// CPUs is what each node says it has; 0 is what the machine has. With more than
	// that jobs are not bound to cores.
	CPUs int
	// MemoryMB is what each node says it has; 0 is 16384.
	MemoryMB int
	Track    Track
	// JobSubmitLua is a file that becomes the cluster's job_submit.lua; files lists
	// more that are put next to it, such as a module that it loads.
	JobSubmitLua string
	Files        []string
	// TaskProlog is a program that is copied into the cluster and run for each task as
	// its user.
	TaskProlog string
	// Lines go into slurm.conf. A key that is there already is replaced.
	Lines []string
}

func (o Options) withDefaults() (Options, error) {
	if o.Nodes == 0 {
		o.Nodes = 1
	}
	if o.CPUs == 0 {
		o.CPUs = runtime.NumCPU()
	}
	if o.MemoryMB == 0 {
		o.MemoryMB = 16384
	}
	if o.Nodes < 0 || o.Nodes > 64 || o.CPUs < 0 || o.MemoryMB < 0 {
		return o, fmt.Errorf("%w: %d nodes, %d CPUs, %d MB", ErrOptions, o.Nodes, o.CPUs, o.MemoryMB)
	}
	for _, l := range o.Lines {
		if key, _, ok := strings.Cut(l, "="); !ok || strings.ContainsAny(key, " #") {
			return o, fmt.Errorf("%w: %q is not a line KEY=VALUE", ErrOptions, l)
		}
	}
	if o.Track == TrackAuto {
		o.Track = TrackLinux
		if cgroupV1() {
			o.Track = TrackCgroup
		}
	}
	if o.Track == TrackCgroup && !cgroupV1() {
		return o, fmt.Errorf("%w: the cgroup controllers %s are not mounted in version 1", ErrUnavailable, strings.Join(controllers(), ", "))
	}
	return o, nil
}

// controllers are those that Slurm makes directories in.
func controllers() []string { return []string{"cpuset", "memory", "freezer", "cpuacct"} }

func cgroupV1() bool {
	return !slices.ContainsFunc(controllers(), func(c string) bool {
		_, err := os.Stat(filepath.Join(sandbox.CgroupRoot, c, "cgroup.procs"))
		return err != nil
	})
}

// programs are what a cluster needs on PATH or in the folders of administrators.
func programs(accounting bool) []string {
	list := []string{"munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "sinfo", "scancel"}
	if accounting {
		list = append(list, "mariadbd", "mariadb-install-db", "slurmdbd", "sacctmgr", "sacct")
	}
	return list
}

// find looks for a program where daemons are too: a user's PATH may lack sbin.
func find(name string) (string, error) {
	if p, err := exec.LookPath(name); err == nil {
		return p, nil
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
		p := filepath.Join(dir, name)
		if info, err := os.Stat(p); err == nil && info.Mode().Perm()&0o111 != 0 {
			return p, nil
		}
	}
	return "", fmt.Errorf("%w: %s is missing: scripts/setup-slurm installs it", ErrUnavailable, name)
}

// Available says why a cluster cannot be started here, nil where it can.
func Available(o Options) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: needs root, for daemons that act for several users", ErrUnavailable)
	}
	for _, name := range programs(o.Accounting) {
		if _, err := find(name); err != nil {
			return err
		}
	}
	for _, name := range []string{"slurm", "munge", Alpha, Beta, Operator, Controller} {
		if _, err := user.Lookup(name); err != nil {
			return fmt.Errorf("%w: no user %s: scripts/setup-slurm makes it", ErrUnavailable, name)
		}
	}
	return nil
}
