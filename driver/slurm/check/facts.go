package check

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver/slurm/parse"
)

// Seen is the outcome of a look at a file, or of a question to a service.
type Seen string

// The outcomes.
const (
	NotLooked Seen = ""
	Present   Seen = "present" // it is there, and answers
	Absent    Seen = "absent"  // it is not on this machine, or silent
	Closed    Seen = "closed"  // this account may not look, or gets no answer
)

// Facts are what a cluster shows of itself. The zero value of each part says that it
// is not known. Cluster gathers them, except those that a Looker says.
type Facts struct {
	Mode       Mode
	Caller     string // the account that looks
	Controller string // the account that the controller runs under
	Config     Config
	Here       Here

	Slurm      parse.Conf     // scontrol show config
	Skew       *time.Duration // seconds that this machine's clock and slurmctld's differ
	Nodes      []Node
	Partitions []parse.Partition
	Accounts   Accounts
	Jobs       *Jobs

	Submit     File   // job_submit.lua
	Modules    []File // of the plugin, in the folder that job_submit.lua names, one for each that this version ships
	Prolog     File
	PrologConf File
	Listener   File // the program that reports the progress of jobs
	Settings   File // their folder, where task_prolog.conf or the controller's configuration says

	Broker  Broker
	Options File // of the exporter of this machine: /etc/default/pitchpipe-exporter
	Proof   *Proof
}

// Config is what the controller's configuration says.
type Config struct {
	File       string // its path; empty = none was read
	Driver     string
	Mode       Mode
	Plugin     bool
	Scripts    bool // the broker believes the script where the plugin marked nothing
	TaskProlog bool
	State      string // the controller's own folder, which no other account can enter
	Settings   string
	Partitions []string
	Exporter   string // its socket on each node
	Policy     Policy
}

// Policy is what the site lets stanzas do.
type Policy struct {
	File  string // its path; empty = none
	Read  bool   // it was looked at; else nothing is known
	Fault string // why it cannot be used
	Apply bool   // by default, or in a known partition or account, a stanza's mode=apply is followed
}

// Here is the machine that looks.
type Here struct {
	Ctld  bool     // slurmctld runs here
	Nodes []string // those that this machine is
	Home  string   // of the account that the controller runs under
	UID   string   // its number
}

// File is one file or folder as it was found.
type File struct {
	Path  string
	Seen  Seen
	Owner string      // the account, or its number
	Mode  fs.FileMode // permissions, and whether it is a folder
	Open  bool        // every account can enter the folders above it
	FS    string      // kind of the filesystem, such as ext4 or nfs
	Text  string      // what is in it; empty where it is a folder or too long

	Shipped string // what this version has in its place
}

// Perm is its permissions as chmod takes them.
func (f File) Perm() string { return fmt.Sprintf("%04o", f.Mode.Perm()) }

// Safe reports whether it belongs to one of these and no other may write it.
func (f File) Safe(one, other string) bool {
	return (f.Owner == one || f.Owner == other) && f.Mode.Perm()&0o022 == 0
}

// May reports whether every account has these permissions.
func (f File) May(bits fs.FileMode) bool { return f.Mode.Perm()&bits == bits }

// Local reports whether its filesystem is one of this machine alone.
func (f File) Local() bool {
	return slices.Contains([]string{"ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "f2fs"}, f.FS)
}

// Node is one of the cluster, and its exporter.
type Node struct {
	Name, Host, State string // a state has signs after it: * of a node that does not answer
	Exporter
}

// Down reports whether Slurm itself does not reach a node, or was told not to.
func (n Node) Down() bool {
	return strings.HasSuffix(n.State, "*") || strings.HasPrefix(n.State, "down") || strings.HasPrefix(n.State, "power")
}

// Accounts is what the accounting knows of the accounts of the controller and of the broker.
type Accounts struct {
	Asked  bool // there is an accounting to ask
	Denied string
	Levels map[string]string // AdminLevel of each that it knows
	Assocs []Association     // memberships
}

// Association is a user's membership of an account.
type Association struct{ Account, User string }

// Jobs are how many each account sees.
type Jobs struct {
	Seen         int
	BySite       int  // seen under the controller's account
	ByController bool // BySite was asked for
}

// Broker is the socket of the broker.
type Broker struct {
	Socket  File
	Account string // that runs it; the owner of the socket
	Answer  Seen
	Text    string // of the answer, where it is not the expected one
}

// Exporter is the exporter of one node.
type Exporter struct {
	Address string // empty = the controller's configuration leads to none
	Answer  Seen
	Text    string // why it is silent
	Steps   string // how it finds the jobs that have no cgroup: supported, or why not
	Energy  string // source of joules; empty = none
}

// Proof is what two tiny jobs showed.
type Proof struct {
	Bad       string // what sbatch said about the faulty stanza; the job was refused
	Accepted  bool   // it was not refused
	Failed    string // why the good job could not be submitted
	Job       string
	Comment   string // its AdminComment
	Variable  Seen   // the TaskProlog set the variable of the settings file
	Measured  Seen   // an exporter has it in its list
	Unstarted string // why it did not run, or was not waited for
}
