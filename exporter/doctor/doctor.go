package doctor

import (
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
	Exporter  api.Exporter // that runs, or as one would that this shell starts
	Running   bool         // the former
	Flags     bool         // flags were given, so that those of one that runs do not matter
	Hybrid    bool         // perf cgroups could be made: v1 trees beside the one that perf looks in
	Managers  []string     // of the jobs that run now
	Uncounted []string     // those whose cgroups are not where perf looks
	Socket    string
	SocketErr error // why no exporter answers there, nil = one does
	Listening error // why the socket could not be made, nil = it could
	NVIDIA    bool  // the node has NVIDIA devices
}

// root reports whether the exporter runs as root, with what capabilities it ever has.
func (f Facts) root() bool { return f.Exporter.UID == 0 }

// Heading says whose rights the findings are of.
func Heading(f Facts) string {
	held := strings.Join(f.Exporter.Capabilities, " ")
	if held == "" {
		held = "no capabilities that matter here"
	}
	who := fmt.Sprintf("user %d, %s", f.Exporter.UID, held)
	switch {
	case f.Running:
		return fmt.Sprintf("The exporter that answers on %s, with its rights: %s.", f.Socket, who)
	case f.SocketErr != nil:
		return fmt.Sprintf("No exporter answers: judged with this shell's rights: %s. Those of the packaged service differ.", who)
	case f.Flags:
		return fmt.Sprintf("Judged with this shell's rights, %s, and the flags that were given; an exporter answers on %s, and without flags it is examined.", who, f.Socket)
	default:
		return fmt.Sprintf("Judged with this shell's rights: %s. The exporter that answers on %s is too old to say what it may.", who, f.Socket)
	}
}

// Examine judges the facts: the sources in the order of the probes, and then what
// concerns the exporter as a whole.
func Examine(f Facts) []Finding {
	out := make([]Finding, 0, len(f.Node.Sources)+6)
	for _, s := range f.Node.Sources {
		out = append(out, source(s, f))
	}
	out = append(out, energy(f), perfCgroups(f), identity(f), kept(f), socket(f), jobs(f))
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
			// To open it would mend nothing, and RAPL reports what others compute.
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

func energy(f Facts) Finding {
	out := Finding{Name: "energy", State: Works, Why: "measured by " + f.Node.EnergySource}
	if f.Node.EnergySource == "modelled" {
		out.State = Limited
		out.Why = "modelled from the busy share of the cores: right on average, wrong on any one job"
		out.Mend = "--energy.model.idle-watts and --energy.model.max-watts, from a power meter or the data sheet"
	}
	return out
}

// perfCgroups concerns the schedulers' jobs whose cgroups perf cannot use.
func perfCgroups(f Facts) Finding {
	out := Finding{Name: "perf for schedulers' jobs", State: Works, Why: "their cgroups are where perf looks"}
	const legacy = "on this host Slurm and Nomad make v1 cgroups, and perf looks in another tree"
	switch {
	case slices.ContainsFunc(f.Node.Sources, func(s api.Source) bool { return strings.HasPrefix(s.Name, "perf/") && s.Support == api.Denied }):
		out.State, out.Why = Absent, "as long as perf is denied"
	case f.Node.Schema == api.SchemaAccounting:
		out.State, out.Why = Absent, "no perf on this node"
	case f.Hybrid && f.Exporter.Leaf && len(f.Uncounted) > 0 && f.Running:
		out.State, out.Mend = Limited, "journalctl -u pitchpipe-exporter, which says why; --perf.leaf needs root and ProtectControlGroups=no"
		out.Why = "--perf.leaf does not reach " + some(f.Uncounted)
	case f.Hybrid && f.Exporter.Leaf:
		out.Why = "they are moved to cgroups where perf looks"
	case f.Hybrid:
		out.State, out.Mend = Limited, "--perf.leaf"
		out.Why = legacy + ": their jobs have accounting alone"
		if len(f.Uncounted) > 0 {
			out.Why += ", as " + some(f.Uncounted) + " now"
		}
	case len(f.Uncounted) > 0:
		out.State, out.Mend = Limited, "systemctl restart pitchpipe-exporter after the hierarchies of cgroups were changed; else this is for pitchpipe's authors"
		out.Why = "the cgroups of " + some(f.Uncounted) + " are not where perf looks"
	}
	return out
}

// some names the first of many.
func some(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func identity(f Facts) Finding {
	if f.Exporter.Blind == "" {
		return Finding{Name: "progress reports", State: Works, Why: "processes are numbered as in this /proc"}
	}
	return Finding{
		Name: "progress reports", State: Broken,
		Why:  f.Exporter.Blind + ", so that the kernel cannot name whoever reports",
		Mend: "run the container in its host's process namespace (hostPID, --pid=host)",
	}
}

// kept concerns what outlives the exporter.
func kept(f Facts) Finding {
	out := Finding{Name: "state", State: Works, Why: "joules and budgets go on over a restart by " + f.Exporter.State}
	const begin = "jobs begin at 0 joules, and what they used of their budgets is forgotten, whenever the exporter is restarted"
	switch {
	case f.Exporter.State == "":
		out.State, out.Why = Limited, begin
		out.Mend = "--state.file=/var/lib/pitchpipe-exporter/state.json, as the packaged service has it"
	case f.Exporter.StateErr != "":
		out.State, out.Why = Limited, begin+": "+f.Exporter.StateErr
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
		if !f.root() {
			out.Mend = "sudo " + f.program() + " doctor, which looks as the packaged service does; or --socket, with a path that this user may write"
		}
	default:
		out.State, out.Why, out.Mend = Limited, "none answers on "+f.Socket+": judged with this shell's rights", "systemctl start pitchpipe-exporter"
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
