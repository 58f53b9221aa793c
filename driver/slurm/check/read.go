package check

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"
)

// ErrFormat is wrapped by errors about an output of Slurm that is not as known.
var ErrFormat = errors.New("unknown output of Slurm")

// UsersFields and AssocsFields are what sacctmgr -nP is asked for.
const (
	UsersFields  = "User,AdminLevel"
	AssocsFields = "Cluster,Account,User"
)

// NodesFormat is what sinfo -h -N -a -o is asked for.
const NodesFormat = "%N|%T|%n|%o|%v"

// User is one of the accounting.
type User struct{ Name, Level string }

// Association is a user's membership of an account on a cluster.
type Association struct{ Cluster, Account, User string }

// Node is one of the cluster.
type Node struct{ Name, State, Host, Address, Version string }

// Partition is one of the cluster.
type Partition struct {
	Name      string
	Hidden    bool
	Exclusive bool // a job gets whole nodes, whatever it asks for
	Up        bool
}

// table reads lines with so many fields and | between them.
func table(command string, output []byte, fields int) ([][]string, error) {
	var out [][]string
	for line := range strings.Lines(string(output)) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			continue
		}
		f := strings.Split(line, "|")
		if len(f) != fields {
			return nil, fmt.Errorf("%w: %s: %d fields in %.200q", ErrFormat, command, len(f), line)
		}
		out = append(out, f)
	}
	return out, nil
}

// Users reads sacctmgr -nP show user under UsersFields.
func Users(output []byte) ([]User, error) {
	rows, err := table("sacctmgr show user", output, 2)
	out := make([]User, 0, len(rows))
	for _, r := range rows {
		out = append(out, User{r[0], r[1]})
	}
	return out, err
}

// Associations reads sacctmgr -nP show assoc under AssocsFields. Those of accounts
// have no user.
func Associations(output []byte) ([]Association, error) {
	rows, err := table("sacctmgr show assoc", output, 3)
	var out []Association
	for _, r := range rows {
		if r[2] != "" {
			out = append(out, Association{r[0], r[1], r[2]})
		}
	}
	return out, err
}

// Nodes reads sinfo -h -N -a under NodesFormat, where a node has a line for each of
// its partitions.
func Nodes(output []byte) ([]Node, error) {
	rows, err := table("sinfo", output, 5)
	var out []Node
	seen := map[string]bool{}
	for _, r := range rows {
		if !seen[r[0]] {
			seen[r[0]] = true
			// A state has signs behind it: of a node that does not answer, *.
			out = append(out, Node{Name: r[0], State: r[1], Host: r[2], Address: r[3], Version: r[4]})
		}
	}
	return out, err
}

// Partitions reads scontrol -o show partition.
func Partitions(output []byte) ([]Partition, error) {
	var out []Partition
	for line := range strings.Lines(string(output)) {
		f := map[string]string{}
		for word := range strings.FieldsSeq(line) {
			if key, value, ok := strings.Cut(word, "="); ok {
				f[key] = value
			}
		}
		if len(f) == 0 {
			continue // there are none
		}
		if f["PartitionName"] == "" {
			return nil, fmt.Errorf("%w: scontrol show partition: no name in %.200q", ErrFormat, line)
		}
		out = append(out, Partition{
			Name: f["PartitionName"], Hidden: f["Hidden"] == "YES", Exclusive: f["OverSubscribe"] == "EXCLUSIVE", Up: f["State"] == "UP",
		})
	}
	return out, nil
}

// Clock reads from scontrol show config what time slurmctld has: it says times in
// UTC, since it is asked with TZ=UTC. The zero time: it does not say.
func Clock(output []byte) time.Time {
	m := regexp.MustCompile(`(?m)^Configuration data as of (\S+)`).FindSubmatch(output)
	if m == nil {
		return time.Time{}
	}
	t, err := time.Parse("2006-01-02T15:04:05", string(m[1]))
	if err != nil {
		return time.Time{}
	}
	return t
}

// PrologConf is what task_prolog.conf says.
type PrologConf struct{ SiteDir, SiteUser, OwnerDir, Exporter, Listener string }

// ReadPrologConf reads it as the task prolog does: lines NAME=value, of which the
// last of a name counts, nothing is trimmed, and others are passed over.
func ReadPrologConf(text string) PrologConf {
	var c PrologConf
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		switch name {
		case "site_dir":
			c.SiteDir = value
		case "site_user":
			c.SiteUser = value
		case "owner_dir":
			c.OwnerDir = value
		case "exporter":
			c.Exporter = value
		case "listener":
			c.Listener = value
		}
	}
	return c
}

// SettingsDir is the folder that the task prolog reads for jobs of this controller: the
// site's, or that of the owner below the home directory.
func (c PrologConf) SettingsDir(m Mode, home string) string {
	switch {
	case m == Site:
		return c.SiteDir
	case c.OwnerDir == "" || path.IsAbs(c.OwnerDir):
		return c.OwnerDir
	}
	return path.Join(home, c.OwnerDir)
}

// ConfOf is the file that a task prolog takes its settings from: what the line conf= of
// the script says, empty where there is none.
func ConfOf(prolog string) string {
	for line := range strings.Lines(prolog) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "conf="); ok {
			return strings.Trim(v, `'"`)
		}
	}
	return ""
}

// Submit is what a job_submit.lua does of ours.
type Submit struct {
	Loads  bool   // the module is loaded
	Calls  bool   // and called
	Fault  string // reject or warn; empty = it does not say
	Folder string // of the module; empty = it does not say
}

// ReadSubmit looks for the parts that a site takes over. Comments do not count.
func ReadSubmit(text string) Submit {
	var s Submit
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "--")
		line = strings.TrimSpace(line)
		s.Loads = s.Loads || strings.Contains(line, `"pitchpipe"`) && strings.Contains(line, "require")
		s.Calls = s.Calls || strings.Contains(line, "pitchpipe.submit(")
		if v, ok := assigned(line, "pitchpipe_on_fault"); ok {
			s.Fault = v
		}
		if v, ok := assigned(line, "pitchpipe_folder"); ok {
			s.Folder = v
		}
	}
	return s
}

// assigned reads NAME = "text".
func assigned(line, name string) (string, bool) {
	line = strings.TrimSpace(strings.TrimPrefix(line, "local "))
	rest, ok := strings.CutPrefix(line, name)
	if !ok {
		return "", false
	}
	rest, ok = strings.CutPrefix(strings.TrimSpace(rest), "=")
	rest = strings.TrimSpace(rest)
	if !ok || len(rest) < 2 || rest[0] != '"' && rest[0] != '\'' || rest[len(rest)-1] != rest[0] {
		return "", false
	}
	return rest[1 : len(rest)-1], true
}
