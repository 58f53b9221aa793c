package parse

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// PlaceFormat is what sinfo -h -a -N -n NODE -o is asked for: a line for each partition
// that has the node.
const PlaceFormat = "%N|%R|%a|%T"

// Place is one node in one partition.
type Place struct {
	Node, Partition string
	Up              bool // the partition starts jobs
	Open            bool // the node would take another job: it is neither drained nor down
}

// Places reads the output of sinfo under PlaceFormat.
func Places(output []byte) ([]Place, error) {
	rows, err := Rows("sinfo", output, 4)
	var out []Place
	for _, f := range rows {
		if slices.Contains(f, "") {
			return nil, fmt.Errorf("%w: sinfo: %q", ErrFormat, f)
		}
		out = append(out, Place{Node: f[0], Partition: f[1], Up: f[2] == "up", Open: open(f[3])})
	}
	return out, err
}

// open reports whether a node in this state takes jobs. Signs behind the word say what else is
// known of it: * that it does not answer, - that the scheduler keeps it for a job.
func open(state string) bool {
	switch strings.ToLower(strings.TrimRight(state, "-+")) {
	case "idle", "mixed", "allocated", "completing", "planned":
		return true
	}
	return false
}

// FreeFormat is what sinfo -h -N -O is asked for.
const FreeFormat = "NodeList:|,StateLong:|,CPUsState:|,Threads:|,Memory:|,AllocMem:|"

// Free is what no job has of a node that would take another.
type Free struct {
	Node        string
	CPUs        int // of whole cores
	MemoryBytes int64
}

// Frees reads the output of sinfo under FreeFormat.
func Frees(output []byte) ([]Free, error) {
	rows, err := Rows("sinfo", output, strings.Count(FreeFormat, "|")+1)
	var out []Free
	for _, f := range rows {
		if f[0] == "" {
			return nil, fmt.Errorf("%w: sinfo: %q", ErrFormat, f)
		}
		cpus := append(strings.Split(f[2], "/"), "", "") // allocated/idle/other/total
		idle, err := count("CPUsState", cpus[1])
		threads, err2 := count("Threads", f[3])
		memory, err3 := Memory("Memory", f[4])
		used, err4 := Memory("AllocMem", f[5])
		if err = errors.Join(err, err2, err3, err4); err != nil {
			return nil, err
		}
		if open(f[1]) {
			out = append(out, Free{Node: f[0], CPUs: idle - idle%max(threads, 1), MemoryBytes: memory - used})
		}
	}
	return out, err
}

// Wait is one job that waits.
type Wait struct {
	ID      string // NUMBER, or ARRAY_TASK
	Reason  string
	Account string
	QOS     string
	User    string
}

// WaitFormat is what squeue -h -r -t PENDING -O is asked for. Of these only the account
// and the QOS are names, and Slurm allows no | in them.
const WaitFormat = "JobID:|,ArrayJobID:|,ArrayTaskID:|,Reason:|,UserName:|,Account:|,QOS:|"

// Waits reads the output of squeue under WaitFormat.
func Waits(output []byte) ([]Wait, error) {
	rows, err := Rows("squeue", output, strings.Count(WaitFormat, "|")+1)
	var out []Wait
	for _, f := range rows {
		w := Wait{ID: f[0], Reason: f[3], User: f[4], Account: none(f[5]), QOS: none(f[6])}
		if task := none(f[2]); task != "" {
			w.ID = f[1] + "_" + task
		}
		out = append(out, w)
	}
	return out, err
}

// Way is what a job that waits is to one that would be put back into the queue.
type Way string

// The ways.
const (
	Aside   Way = "aside"   // it waits for no room: for its owner, its time, another job
	Turn    Way = "turn"    // it waits for its turn in its array
	Ahead   Way = "ahead"   // it waits for room
	Limited Way = "limited" // it waits for a limit of its account, its QOS or its user
)

// Way says for what the job waits. What is not known counts as room.
func (w Wait) Way() Way {
	switch w.Reason {
	case "Dependency", "DependencyNeverSatisfied", "BeginTime", "JobHeldUser", "JobHeldAdmin", "Prolog", "Cleaning", "DeadLine",
		"BadConstraints", "InvalidAccount", "InvalidQOS", "PartitionDown", "PartitionInactive", "PartitionNodeLimit", "PartitionTimeLimit":
		return Aside
	case "JobArrayTaskLimit":
		return Turn
	}
	reason := strings.ReplaceAll(w.Reason, " ", "_")
	switch {
	case strings.HasSuffix(reason, "requeued_in_held_state"), strings.HasSuffix(reason, "requeued_held"):
		return Aside
	case strings.HasPrefix(w.Reason, "Assoc"), strings.HasPrefix(w.Reason, "QOS"):
		return Limited
	}
	return Ahead
}

// Shares reports whether a job that waits for a limit waits for one that another, which runs,
// counts against too: as far as can be seen, since an account may share one with others.
func (w Wait) Shares(with Job) bool {
	switch reason := w.Reason; {
	case strings.HasPrefix(reason, "QOSMax"), strings.HasPrefix(reason, "AssocMax"): // of each user
		return w.User == with.User
	case strings.HasPrefix(reason, "QOS"):
		return w.QOS == with.QOS
	}
	return w.Account == with.Account || w.User == with.User
}
