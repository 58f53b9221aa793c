package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
)

// State is how well a thing works.
type State string

// The states, from good to bad.
const (
	Works   State = "works"
	Limited State = "limited" // works for some; Why says who
	Absent  State = "absent"  // the node does not have it
	Denied  State = "denied"  // it is there, and the exporter may not use it
	Silent  State = "silent"  // it is there, and a read of it hangs
	Broken  State = "broken"  // the exporter cannot do its work
)

// Finding is the result of one check.
type Finding struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Why   string `json:"why,omitempty"`  // or by what means it works
	Mend  string `json:"mend,omitempty"` // one command, or one flag of the exporter
}

// Facts are what a doctor has to know besides the probes.
type Facts struct {
	Node      api.Node
	Exporter  api.Exporter // that runs, or as one would that this shell starts
	Running   bool         // the former
	Flags     bool         // flags were given, so those of one that runs do not matter
	Hybrid    bool         // perf cgroups could be made: v1 trees besides the one that perf looks in
	Managers  []string     // of the jobs that run now, as far as this user may see
	Uncounted []string     // those whose cgroups are not where perf looks
	Socket    string
	SocketErr error // why no exporter answers there, nil = one does
	Listening error // why the socket could not be made, nil = it could
	NVIDIA    bool  // the node has NVIDIA devices
}

// root reports whether the exporter runs as root, with what capabilities it ever has.
func (f Facts) root() bool { return f.Exporter.UID == 0 }

func (f Facts) program() string { return cmp.Or(f.Exporter.Program, "pitchpipe-exporter") }

// denied reports whether a source is denied for a reason that contains a text.
func (f Facts) denied(prefix, reason string) bool {
	return slices.ContainsFunc(f.Node.Sources, func(s api.Source) bool {
		return strings.HasPrefix(s.Name, prefix) && s.Support == api.Denied && strings.Contains(s.Reason, reason)
	})
}

// Heading says whose rights the findings are of.
func Heading(f Facts) string {
	held := cmp.Or(strings.Join(f.Exporter.Capabilities, " "), "no capabilities that matter here")
	who := fmt.Sprintf("user %d, %s", f.Exporter.UID, held)
	switch {
	case f.Running:
		return fmt.Sprintf("The exporter that answers on %s, with its rights: %s.", f.Socket, who)
	case f.SocketErr != nil:
		return fmt.Sprintf("No exporter answers: judged with this shell's rights: %s. Those of the packaged service differ.", who)
	case f.Flags:
		return fmt.Sprintf("Judged with this shell's rights, %s, and the given flags; without flags doctor examines the exporter on %s.", who, f.Socket)
	default:
		return fmt.Sprintf("Judged with this shell's rights: %s. The exporter that answers on %s is too old to say what it may.", who, f.Socket)
	}
}

// answer is a possible result of a check. Of those of a check the first whose condition is
// met applies.
type answer struct {
	when  bool
	state State
	why   string
	mend  string
}

func check(name string, answers ...answer) Finding {
	a := answers[slices.IndexFunc(answers, func(a answer) bool { return a.when })]
	return Finding{Name: name, State: a.state, Why: a.why, Mend: a.mend}
}

// Examine judges the facts: the sources in the order of the probes, and then what
// concerns the exporter as a whole.
func Examine(f Facts) []Finding {
	var out []Finding
	for _, s := range f.Node.Sources {
		out = append(out, source(s, f))
	}
	const (
		legacy = "Slurm and Nomad make v1 cgroups here, and perf reads another tree: their jobs get only accounting counters"
		begin  = "jobs begin at 0 joules, and what they used of their budgets is forgotten, whenever the exporter is restarted"
	)
	uncounted, now := some(f.Uncounted), ""
	if uncounted != "" {
		now = ", as " + uncounted + " now"
	}
	socket := "--socket, with a path in a directory that its user may write"
	if !f.root() {
		socket = "sudo " + f.program() + " doctor, which looks as the packaged service does; or --socket, with a path that this user may write"
	}
	listening := ""
	if f.Listening != nil {
		listening = f.Listening.Error()
	}
	return append(
		out,
		check(
			"energy",
			answer{
				f.Node.EnergySource == "modelled", Limited, "modelled from the busy share of the cores: right on average, wrong on any one job",
				"--energy.model.idle-watts and --energy.model.max-watts, from a power meter or the data sheet",
			},
			answer{true, Works, "measured by " + f.Node.EnergySource, ""},
		),
		check(
			"perf for schedulers' jobs", // whose cgroups perf may be unable to use
			answer{f.denied("perf/", ""), Absent, "as long as perf is denied", ""},
			answer{f.Node.Schema == api.SchemaAccounting, Absent, "no perf on this node", ""},
			answer{
				f.Hybrid && f.Exporter.Leaf && uncounted != "" && f.Running, Limited, "--perf.leaf does not reach " + uncounted,
				"journalctl -u pitchpipe-exporter, which says why; --perf.leaf needs root and ProtectControlGroups=no",
			},
			answer{f.Hybrid && f.Exporter.Leaf, Works, "they are moved to cgroups where perf looks", ""},
			answer{f.Hybrid, Limited, legacy + now, "--perf.leaf"},
			answer{
				uncounted != "", Limited, "the cgroups of " + uncounted + " are not where perf looks",
				"systemctl restart pitchpipe-exporter if the cgroup hierarchies changed; else report it to Pitchpipe's authors",
			},
			answer{true, Works, "their cgroups are where perf looks", ""},
		),
		check(
			"progress reports",
			answer{
				f.Exporter.Blind != "", Broken, f.Exporter.Blind + ", so that the kernel cannot name the sender",
				"run the container in its host's process namespace (hostPID, --pid=host)",
			},
			answer{true, Works, "processes are numbered as in this /proc", ""},
		),
		check(
			"state", // what outlives the exporter
			answer{f.Exporter.State == "", Limited, begin, "--state.file=/var/lib/pitchpipe-exporter/state.json, as the packaged service has it"},
			answer{
				f.Exporter.StateErr != "", Limited, begin + ": " + f.Exporter.StateErr,
				"--state.file, in a directory that the exporter's user may write; a file that is not a state is kept next to it",
			},
			answer{true, Works, "joules and budgets go on over a restart by " + f.Exporter.State, ""},
		),
		check(
			"exporter",
			answer{f.SocketErr == nil, Works, "answers on " + f.Socket, ""},
			answer{f.Listening != nil, Broken, listening, socket},
			answer{true, Limited, "none answers on " + f.Socket + ": judged with this shell's rights", "systemctl start pitchpipe-exporter"},
		),
		check(
			"jobs",
			answer{
				len(f.Managers) == 0 && f.Exporter.Jobs > 0, Works,
				fmt.Sprintf("none runs now that this user may see, and %d in all; root and --api.readers see all", f.Exporter.Jobs), "",
			},
			answer{len(f.Managers) == 0, Works, "none runs now", ""},
			answer{true, Works, "found now: " + strings.Join(f.Managers, ", "), ""},
		),
	)
}

// ownOnly is in the reason of sources that see only the processes of the exporter's user.
const ownOnly = "own processes only"

func source(s api.Source, f Facts) Finding {
	why := strings.TrimPrefix(s.Reason, collector.ErrUnsupported.Error()+": ")
	denied, better := s.Support == api.Denied, f.Node.EnergySource
	return check(
		s.Name,
		answer{s.Silent, Silent, why, "dmesg, which says what hangs; the exporter goes on without it, and is restarted when it answers"},
		answer{s.Support == api.Supported && strings.Contains(s.Reason, ownOnly), Limited, why, capabilities(f)},
		answer{s.Support == api.Supported, Works, why, ""},
		answer{
			s.Support == api.Unsupported && s.Name == "gpu/nvidia" && f.NVIDIA, Limited, why,
			"put pitchpipe-gpu next to the exporter, or name it with --gpu.helper",
		},
		answer{s.Support == api.Unsupported, Absent, why, ""},
		// Opening it would improve nothing, and RAPL reports what others compute.
		answer{
			denied && strings.HasPrefix(s.Name, "energy/") && s.Name != "energy/"+better && better != "modelled",
			Absent, "not needed, " + better + " is read: " + s.Reason, "",
		},
		answer{
			denied && strings.Contains(s.Reason, "filter of system calls"), Denied, why,
			"SystemCallFilter=perf_event_open for the service, or a seccomp profile that lets a container call it",
		},
		answer{denied, Denied, why, mend(s.Name, f)},
		answer{true, Absent, fmt.Sprintf("the probe answered %q", s.Support), ""},
	)
}

func some(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// What sources report under a Debian or Ubuntu kernel that CAP_PERFMON does not satisfy, and
// under one that does not know it.
const (
	asksAdmin = "asks for CAP_SYS_ADMIN above 2"
	oldKernel = "has no CAP_PERFMON"
)

// mend is the command that opens a source, and keeps it open.
func mend(name string, f Facts) string {
	kind, _, _ := strings.Cut(name, "/")
	counts := kind == "perf" || name == "energy/perf-power"
	right := "CAP_PERFMON"
	if f.denied("perf/", oldKernel) {
		right = "CAP_SYS_ADMIN"
	}
	return check(
		name,
		answer{
			when: counts && f.denied("perf/", asksAdmin),
			mend: "sysctl -w kernel.perf_event_paranoid=2; to keep it: cp /usr/share/pitchpipe-exporter/60-pitchpipe-perf.conf /etc/sysctl.d/",
		},
		answer{
			when: counts && f.Running && f.root(),
			mend: "systemctl edit pitchpipe-exporter, with CapabilityBoundingSet=" + right + " below [Service]; in a container: the capability " + right,
		},
		answer{when: counts && f.root(), mend: "sysctl -w kernel.perf_event_paranoid=0"},
		// The power PMU opens the counters only to the exporter.
		answer{when: counts || name == "energy/rapl" && f.denied("energy/perf-power", ""), mend: capabilities(f)},
		answer{
			when: name == "energy/rapl",
			mend: "cp /usr/share/pitchpipe-exporter/pitchpipe-rapl.conf /etc/tmpfiles.d/ && systemd-tmpfiles --create /etc/tmpfiles.d/pitchpipe-rapl.conf, which opens them to the group pitchpipe, at each boot and to no other user, with the exporter's user in that group",
		},
		answer{when: kind == "attrib" || kind == "proc", mend: capabilities(f)},
		answer{when: true, mend: "sudo " + f.program()},
	).Mend
}

// capabilities gives the program all that it lacks: a second setcap would take away what
// the first one gave.
func capabilities(f Facts) string {
	var names []string
	if !f.root() && (f.denied("perf/", "") || f.denied("energy/perf-power", "")) {
		names = append(names, "cap_perfmon")
		if f.denied("perf/", oldKernel) {
			names[0] = "cap_sys_admin"
		}
	}
	own := slices.ContainsFunc(f.Node.Sources, func(s api.Source) bool { return strings.Contains(s.Reason, ownOnly) })
	if own || f.denied("attrib/", "") || f.denied("proc/", "") {
		names = append(names, "cap_sys_ptrace")
	}
	return "setcap " + strings.Join(names, ",") + "+ep " + f.program()
}

// Verdict is the exit status that sums up, an error unless it is Healthy.
type Verdict int

// The verdicts. An error of the examination itself is 1.
const (
	Healthy  Verdict = 0 // everything that this node has is in use, or is absent
	Mendable Verdict = 2 // something is limited or denied, and a command mends it
	Ill      Verdict = 3 // the exporter cannot do its work here
)

// Error is for a program that exits with it.
func (v Verdict) Error() string {
	if v == Ill {
		return "the exporter cannot do its work here"
	}
	return "something can be mended"
}

// Judge sums up findings.
func Judge(findings []Finding) Verdict {
	v := Healthy
	for _, f := range findings {
		v = max(v, map[State]Verdict{Limited: Mendable, Denied: Mendable, Silent: Mendable, Broken: Ill}[f.State])
	}
	return v
}
