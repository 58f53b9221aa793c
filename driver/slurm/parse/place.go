package parse

import (
	"slices"
	"strings"
)

// NodeFormat is what sinfo -h -N -O is asked for: a line for each node of each partition.
const NodeFormat = "NodeList:|,PartitionName:|,Available:|,StateLong:|,CPUsState:|,Threads:|,Memory:|,AllocMem:|"

// Node is one node in one partition.
type Node struct {
	Name, Partition string
	Up              bool // the partition starts jobs
	Open            bool // the node would take another job: it is not drained or down
	CPUs, Idle      int  // in all, and those of whole cores that no job has
	Memory, Free    int64
}

// Nodes reads the output of sinfo under NodeFormat.
func Nodes(output []byte) ([]Node, error) {
	return table("sinfo", NodeFormat, output, func(r *reader) Node {
		n := Node{
			Name: r.text("NodeList"), Partition: r.text("PartitionName"), Up: r.text("Available") == "up", Open: open(r.text("StateLong")),
			Memory: read(r, "Memory", Memory),
		}
		cpus := append(strings.Split(r.fields["CPUsState"], "/"), "", "", "", "") // allocated/idle/other/total
		r.fields["idle"], r.fields["total"] = cpus[1], cpus[3]
		n.CPUs, n.Idle, n.Free = read(r, "total", count), read(r, "idle", count), n.Memory-read(r, "AllocMem", Memory)
		n.Idle -= n.Idle % max(read(r, "Threads", count), 1)
		return n
	})
}

// open reports whether a node in this state takes jobs. Signs after the word say what else is
// known of it: * that it does not answer, - that the scheduler keeps it for a job.
func open(state string) bool {
	word := strings.ToLower(strings.TrimRight(state, "-+"))
	return slices.Contains([]string{"idle", "mixed", "allocated", "completing", "planned"}, word)
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
	return table("squeue", WaitFormat, output, func(r *reader) Wait {
		w := Wait{ID: r.text("JobID"), Reason: r.fields["Reason"], User: r.fields["UserName"], Account: r.word("Account"), QOS: r.word("QOS")}
		if task := r.word("ArrayTaskID"); task != "" {
			w.ID = r.fields["ArrayJobID"] + "_" + task
		}
		return w
	})
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

// Way says what the job waits for. What is not known counts as room.
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
