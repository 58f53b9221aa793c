package layout

import (
	"slices"
	"strings"
	"testing"
)

// direction is one rule about imports of one part of the tree. Exactly one of deny
// and only is set; both hold prefixes of import paths, at the borders of folders.
type direction struct {
	from   string   // folder
	exact  bool     // that folder alone, not those below it
	except []string // folders below it that the rule leaves alone
	tests  bool     // the rule holds for test files too
	deny   []string
	only   []string // of the imports outside the standard library
	why    string
}

// pure are the folders whose packages compute and nothing else, and what each may
// import outside the standard library.
func pure() map[string][]string {
	numbers := []string{module + "/controller/tuning", "gonum.org/v1/gonum"}
	return map[string][]string{
		"controller/allocate": {},
		"controller/tuning":   {},
		"controller/stanza":   {module + "/controller/tuning", module + "/driver/jobfile", "github.com/hashicorp/hcl/v2", "github.com/zclconf/go-cty"},
		"controller/classify": numbers,
		"controller/forecast": numbers,
		"controller/search":   numbers,
		"controller/searcher": append(slices.Clone(numbers), module+"/controller/search/propose", module+"/controller/report", "gonum.org/v1/plot"),
		"controller/respond":  numbers,
		"controller/adapt":    numbers,
		"controller/plan":     append(slices.Clone(numbers), module+"/controller/respond", module+"/controller/adapt"),
		"controller/report":   append(slices.Clone(numbers), module+"/controller/verify", "gonum.org/v1/plot"),
		"controller/verify":   numbers,
	}
}

// stages are the rooms of the pipeline: each knows the nouns and none knows a
// sibling. The response model is not one: every room that predicts asks it.
func stages() []string {
	return []string{
		"watch", "stanza", "profile", "classify", "forecast", "search", "plan", "verify", "knowledge",
	}
}

func directions() []direction {
	out := []direction{
		{
			from: "driver", exact: true,
			only: []string{}, why: "the contract has to be importable by everybody, so it imports only the standard library",
		},
		{
			from: "driver", tests: true, deny: []string{module + "/controller"},
			why: "a driver knows its scheduler and nothing of tuning",
		},
		{
			from: "driver/jobfile", deny: []string{module + "/driver/local", module + "/driver/nomad", module + "/driver/slurm", module + "/exporter"},
			why: "job files are read without a scheduler",
		},
		{
			from: "exporter", tests: true, deny: []string{module + "/controller", module + "/driver"},
			why: "the exporter runs on nodes, has its own release and must not grow with the controller",
		},
		{
			from: "controller", deny: []string{module + "/exporter/collector", module + "/exporter/attrib", module + "/exporter/window", module + "/exporter/hostfs", module + "/exporter/cmd"},
			why: "of the exporter the controller knows the wire, which is exporter/api",
		},
		{
			from: "", except: []string{"controller/cmd", "controller/daemon", "test"}, deny: []string{module + "/controller/daemon", module + "/controller/cmd"},
			why: "wiring is at the top: nothing below imports it",
		},
		{
			from: "", except: []string{"exporter/cmd/pitchpipe-gpu"}, deny: []string{"github.com/ebitengine/purego"},
			why: "a vendor's library is loaded by the helper program alone: everything else is static and outlives a driver that hangs",
		},
		{
			from: "", except: []string{"test", "controller/daemon/daemontest"}, deny: []string{module + "/test"},
			why: "what ships does not depend on what tests it",
		},
	}
	for folder, allowed := range pure() {
		out = append(out, direction{
			from: folder, only: append([]string{module + "/" + folder}, allowed...),
			why: "it is pure: it computes on the nouns, and the daemon does the rest",
		})
	}
	for _, stage := range stages() {
		var siblings []string
		for _, other := range stages() {
			if other != stage {
				siblings = append(siblings, module+"/controller/"+other)
			}
		}
		out = append(out, direction{
			from: "controller/" + stage, deny: append(siblings, module+"/controller/reconcile"),
			why: "a stage knows no sibling: only reconcile knows the order",
		})
	}
	return out
}

// under reports whether the path is the folder or lies below it; all lies below "".
func under(path, folder string) bool {
	return folder == "" || path == folder || strings.HasPrefix(path, folder+"/")
}

func underAny(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return under(path, f) })
}

func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return first != module && !strings.Contains(first, ".")
}

func (d direction) breaks(dir, imported string, test bool) bool {
	if !under(dir, d.from) || d.exact && dir != d.from || underAny(dir, d.except) || test && !d.tests {
		return false
	}
	if d.only != nil {
		return !standard(imported) && !underAny(imported, d.only)
	}
	return underAny(imported, d.deny)
}

func TestImportsGoInTheDirectionsOfTheDesign(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		for _, imported := range s.imports() {
			for _, d := range directions() {
				if d.breaks(s.dir, imported, s.test) {
					t.Errorf("%s imports %s: %s", s.path, imported, d.why)
				}
			}
		}
	}
}

// TestTheDirectionsForbidWhatTheyShould keeps the table itself honest.
func TestTheDirectionsForbidWhatTheyShould(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name          string
		dir, imported string
		test, broken  bool
	}{
		{"the nouns import a module", "controller/tuning", "gonum.org/v1/gonum/mat", false, true},
		{"the nouns import the standard library", "controller/tuning", "encoding/json", false, false},
		{"a test of the nouns imports a test library", "controller/tuning", "pgregory.net/rapid", true, false},
		{"the contract imports a driver", "driver", module + "/driver/local", false, true},
		{"a driver imports the contract", "driver/local", module + "/driver", false, false},
		{"a driver imports the nouns", "driver/slurm", module + "/controller/tuning", false, true},
		{"a driver's test imports the controller", "driver/slurm", module + "/controller/plan", true, true},
		{"the exporter imports the driver", "exporter/attrib", module + "/driver", false, true},
		{"the exporter imports its own wire", "exporter/window", module + "/exporter/api", false, false},
		{"the exporter loads a vendor's library", "exporter/collector/gpu", "github.com/ebitengine/purego", false, true},
		{"the helper loads it", "exporter/cmd/pitchpipe-gpu", "github.com/ebitengine/purego", false, false},
		{"the controller imports the wire", "controller/profile", module + "/exporter/api", false, false},
		{"the controller imports a client below the wire", "controller/profile", module + "/exporter/api/client", false, false},
		{"the controller imports a collector", "controller/profile", module + "/exporter/collector/perf", false, true},
		{"a pure package imports gonum", "controller/classify", "gonum.org/v1/gonum/stat", false, false},
		{"a pure package imports its own folder", "controller/classify", module + "/controller/classify/kmeans", false, false},
		{"a pure package imports a store", "controller/plan", "go.etcd.io/bbolt", false, true},
		{"the stanza imports job files", "controller/stanza", module + "/driver/jobfile", false, false},
		{"the stanza imports a driver", "controller/stanza", module + "/driver/local", false, true},
		{"another pure package imports hcl", "controller/plan", "github.com/hashicorp/hcl/v2", false, true},
		{"a stage imports a sibling", "controller/verify", module + "/controller/plan", false, true},
		{"a stage imports the loop", "controller/profile", module + "/controller/reconcile", false, true},
		{"the loop imports the nouns", "controller/reconcile", module + "/controller/tuning", false, false},
		{"a stage whose name begins like another's", "controller/planner", module + "/controller/search", false, false},
		{"a stage imports the daemon", "controller/knowledge", module + "/controller/daemon", false, true},
		{"main imports the daemon", "controller/cmd/pitchpipe", module + "/controller/daemon", false, false},
		{"what ships imports a workload", "controller/daemon", module + "/test/workload", false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			broken := slices.ContainsFunc(directions(), func(d direction) bool { return d.breaks(tc.dir, tc.imported, tc.test) })
			if broken != tc.broken {
				t.Errorf("%s imports %s: broken = %t, want %t", tc.dir, tc.imported, broken, tc.broken)
			}
		})
	}
}
