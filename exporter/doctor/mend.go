package doctor

import (
	"cmp"
	"slices"
	"strings"

	"pitchpipe/exporter/api"
)

// What opens things, and lasts.
const (
	paranoid = "sysctl -w kernel.perf_event_paranoid=2; to keep it: cp /usr/share/pitchpipe-exporter/60-pitchpipe-perf.conf /etc/sysctl.d/"
	powercap = "cp /usr/share/pitchpipe-exporter/pitchpipe-rapl.conf /etc/tmpfiles.d/ && systemd-tmpfiles --create /etc/tmpfiles.d/pitchpipe-rapl.conf, which opens them to the group pitchpipe, at each boot and to no other user, with the exporter's user in that group"
)

// asksAdmin is what sources say of a kernel of Debian's or Ubuntu's that CAP_PERFMON does
// not satisfy, and oldKernel what they say of one that does not know it.
const (
	asksAdmin = "asks for CAP_SYS_ADMIN above 2"
	oldKernel = "has no CAP_PERFMON"
)

func mend(name string, f Facts) string {
	kind, _, _ := strings.Cut(name, "/")
	counts := kind == "perf" || name == "energy/perf-power"
	switch {
	case counts && f.says(asksAdmin):
		return paranoid
	case counts && f.Running && f.root():
		right := "CAP_PERFMON"
		if f.says(oldKernel) {
			right = "CAP_SYS_ADMIN"
		}
		return "systemctl edit pitchpipe-exporter, with CapabilityBoundingSet=" + right + " below [Service]; in a container: the capability " + right
	case counts && f.root():
		return "sysctl -w kernel.perf_event_paranoid=0"
	case counts, name == "energy/rapl" && denied(f, "energy/perf-power"):
		return capabilities(f) // which opens the counters to the exporter alone
	case name == "energy/rapl":
		return powercap
	case kind == "attrib", kind == "proc":
		return capabilities(f)
	default:
		return "sudo " + f.program()
	}
}

// program is the path of the exporter.
func (f Facts) program() string { return cmp.Or(f.Exporter.Program, "pitchpipe-exporter") }

// says reports whether a perf event is denied for that reason.
func (f Facts) says(text string) bool {
	return slices.ContainsFunc(f.Node.Sources, func(s api.Source) bool {
		return strings.HasPrefix(s.Name, "perf/") && s.Support == api.Denied && strings.Contains(s.Reason, text)
	})
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
	count := "cap_perfmon"
	if f.says(oldKernel) {
		count = "cap_sys_admin"
	}
	for _, s := range f.Node.Sources {
		kind, _, _ := strings.Cut(s.Name, "/")
		closed := s.Support == api.Denied
		switch {
		case (kind == "perf" || s.Name == "energy/perf-power") && closed && !f.root():
			need(count)
		case (kind == "attrib" || kind == "proc") && closed, strings.Contains(s.Reason, ownOnly):
			need("cap_sys_ptrace")
		}
	}
	slices.Sort(names)
	return "setcap " + strings.Join(names, ",") + "+ep " + f.program()
}
