package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
)

// State says how a thing stands.
type State string

// The states, from good to bad.
const (
	Works   State = "works"
	Limited State = "limited" // works for some; Why says for whom
	Absent  State = "absent"  // the node does not have it
	Denied  State = "denied"  // it is there, and the exporter may not use it
	Silent  State = "silent"  // it is there, and a read of it hangs
	Broken  State = "broken"  // the exporter cannot do its work
)

// Finding is what is to be said about one thing.
type Finding struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Why   string `json:"why,omitempty"`  // or by what means it works
	Mend  string `json:"mend,omitempty"` // one command, or one flag of the exporter
}

// Facts are what a doctor has to know beside the probes.
type Facts struct {
	Node      api.Node
	Program   string // path of the exporter
	Root      bool   // the examination ran as root
	Leaf      bool   // --perf.leaf is given
	Hybrid    bool   // leaves could be made: v1 trees with a v2 one beside them
	Managers  []string
	Socket    string
	SocketErr error // why no exporter answers there, nil = one does
	Listening error // why the socket could not be made, nil = it could
	OwnPids   bool  // the exporter's process numbers are not those of this /proc
	NVIDIA    bool  // the node has NVIDIA devices
	State     string
	StateErr  error // why that file cannot be what the next exporter goes on from
}

// Examine judges the facts: the sources in the order of the probes, and then what
// concerns the exporter as a whole.
func Examine(f Facts) []Finding {
	out := make([]Finding, 0, len(f.Node.Sources)+6)
	for _, s := range f.Node.Sources {
		out = append(out, source(s, f))
	}
	out = append(out, energy(f), leaves(f), identity(f), kept(f), socket(f), jobs(f))
	return out
}

func source(s api.Source, f Facts) Finding {
	out := Finding{Name: s.Name, State: Works, Why: strings.TrimPrefix(s.Reason, collector.ErrUnsupported.Error()+": ")}
	if s.Silent {
		out.State, out.Mend = Silent, "dmesg, which says what hangs; the exporter goes on without it, and is restarted when it answers"
		return out
	}
	switch s.Support {
	case api.Supported:
		if strings.Contains(s.Reason, ownOnly) {
			out.State, out.Mend = Limited, capabilities(f)
		}
	case api.Unsupported:
		out.State = Absent
		if s.Name == "gpu/nvidia" && f.NVIDIA {
			out.State, out.Mend = Limited, "put pitchpipe-gpu beside the exporter, or name it with --gpu.helper"
		}
	case api.Denied:
		if better := f.Node.EnergySource; strings.HasPrefix(s.Name, "energy/") && s.Name != "energy/"+better && better != "modelled" {
			// To open it would mend nothing, and RAPL tells what others compute.
			out.State, out.Why = Absent, "not needed, "+better+" is read: "+s.Reason
			return out
		}
		out.State, out.Mend = Denied, mend(s.Name, f)
		if strings.Contains(s.Reason, "filter of system calls") {
			out.Mend = "SystemCallFilter=perf_event_open for the service, or a seccomp profile that lets a container call it"
		}
	default:
		out.State, out.Why = Absent, fmt.Sprintf("the probe answered %q", s.Support)
	}
	return out
}

// ownOnly is what sources say that see the processes of the exporter's user alone.
const ownOnly = "own processes only"

func mend(name string, f Facts) string {
	kind, _, _ := strings.Cut(name, "/")
	switch {
	case kind == "perf" && f.Root:
		return "sysctl -w kernel.perf_event_paranoid=0"
	case kind == "perf":
		return capabilities(f)
	case name == "energy/perf-power" && f.Root:
		return "sysctl -w kernel.perf_event_paranoid=0"
	case name == "energy/perf-power", name == "energy/rapl" && denied(f, "energy/perf-power"):
		return capabilities(f) // which opens the counters to the exporter alone
	case name == "energy/rapl":
		return "chmod o+r /sys/class/powercap/intel-rapl*/energy_uj"
	case kind == "attrib", kind == "proc":
		return capabilities(f)
	default:
		return "sudo " + f.Program
	}
}

func denied(f Facts, name string) bool {
	return slices.ContainsFunc(f.Node.Sources, func(s api.Source) bool { return s.Name == name && s.Support == api.Denied })
}

// capabilities gives the program all that it lacks: a second setcap would take away what
// the first one gave.
func capabilities(f Facts) string {
	var names []string
	need := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, s := range f.Node.Sources {
		kind, _, _ := strings.Cut(s.Name, "/")
		closed := s.Support == api.Denied
		switch {
		case kind == "perf" && closed && !f.Root, s.Name == "energy/perf-power" && closed && !f.Root:
			need("cap_perfmon")
		case (kind == "attrib" || kind == "proc") && closed, strings.Contains(s.Reason, ownOnly):
			need("cap_sys_ptrace")
		}
	}
	slices.Sort(names)
	return "setcap " + strings.Join(names, ",") + "+ep " + cmp.Or(f.Program, "pitchpipe-exporter")
}

func energy(f Facts) Finding {
	out := Finding{Name: "energy", State: Works, Why: "measured by " + f.Node.EnergySource}
	if f.Node.EnergySource == "modelled" {
		out.State = Limited
		out.Why = "modelled from the busy share of the cores: right on average, wrong on any one job"
		out.Mend = "--energy.model.idle-watts and --energy.model.max-watts, from a power meter or the data sheet"
	}
	return out
}

// leaves concerns the schedulers' jobs whose cgroups perf cannot use.
func leaves(f Facts) Finding {
	out := Finding{Name: "perf for schedulers' jobs", State: Works, Why: "their cgroups are where perf looks"}
	switch {
	case slices.ContainsFunc(f.Node.Sources, func(s api.Source) bool { return strings.HasPrefix(s.Name, "perf/") && s.Support == api.Denied }):
		out.State, out.Why = Absent, "as long as perf is denied"
	case f.Node.Schema == api.SchemaAccounting:
		out.State, out.Why = Absent, "no perf on this node"
	case f.Hybrid && f.Leaf:
		out.Why = "they are moved to cgroups where perf looks"
	case f.Hybrid:
		out.State, out.Mend = Limited, "--perf.leaf"
		out.Why = "on this hybrid host Slurm and Nomad make v1 cgroups, which perf does not use: their jobs have accounting alone"
	}
	return out
}

func identity(f Facts) Finding {
	if !f.OwnPids {
		return Finding{Name: "progress reports", State: Works, Why: "processes are numbered as in this /proc"}
	}
	return Finding{
		Name: "progress reports", State: Broken,
		Why:  "the exporter is in a process namespace of its own, so that the kernel cannot name whoever reports",
		Mend: "run the container in its host's process namespace (hostPID, --pid=host)",
	}
}

// kept concerns what outlives the exporter.
func kept(f Facts) Finding {
	out := Finding{Name: "state", State: Works, Why: "joules and budgets go on over a restart by " + f.State}
	const begin = "jobs begin at 0 joules, and what they used of their budgets is forgotten, whenever the exporter is restarted"
	switch {
	case f.State == "":
		out.State, out.Why = Limited, begin
		out.Mend = "--state.file=/var/lib/pitchpipe-exporter/state.json, as the packaged service has it"
	case f.StateErr != nil:
		out.State, out.Why = Limited, begin+": "+f.StateErr.Error()
		out.Mend = "--state.file, in a directory that the exporter's user may write; a file that is no state is kept beside it"
	}
	return out
}

func socket(f Facts) Finding {
	out := Finding{Name: "exporter", State: Works, Why: "answers on " + f.Socket}
	switch {
	case f.SocketErr == nil:
	case f.Listening != nil:
		out.State, out.Why = Broken, f.Listening.Error()
		out.Mend = "--socket, with a path in a directory that its user may write"
		if !f.Root {
			out.Mend = "sudo " + cmp.Or(f.Program, "pitchpipe-exporter") + " doctor, which looks as the packaged service does; or --socket, with a path that this user may write"
		}
	default:
		out.State, out.Why, out.Mend = Limited, "none answers on "+f.Socket, "systemctl start pitchpipe-exporter"
	}
	return out
}

func jobs(f Facts) Finding {
	if len(f.Managers) == 0 {
		return Finding{Name: "jobs", State: Works, Why: "none runs now"}
	}
	return Finding{Name: "jobs", State: Works, Why: "found now: " + strings.Join(f.Managers, ", ")}
}

// Verdict is the exit status that sums up.
type Verdict int

// The verdicts. An error of the examination itself is 1.
const (
	Healthy  Verdict = 0 // everything that this node has is in use, or is absent
	Mendable Verdict = 2 // something is limited or denied, and a command mends it
	Ill      Verdict = 3 // the exporter cannot do its work here
)

// Judge sums up findings.
func Judge(findings []Finding) Verdict {
	v := Healthy
	for _, f := range findings {
		switch f.State {
		case Works, Absent:
		case Limited, Denied, Silent:
			v = max(v, Mendable)
		case Broken:
			v = Ill
		}
	}
	return v
}
