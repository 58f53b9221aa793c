package perf_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector/perf"
	"pitchpipe/exporter/hostfs"
)

func namesOf(events []perf.Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, e.Name)
	}
	return out
}

func TestEventsAreChosenByNameAndByPreset(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		chosen []string
		want   []string
	}{
		{"nothing", nil, nil},
		{"the software events, which are always counted", []string{"software", "task-clock", "cs"}, nil},
		{"a preset and an event that is in it", []string{"basic", "cycles", "LLC-loads"}, []string{
			"cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses", "LLC-loads",
		}},
		{"second names", []string{"cpu-cycles", " branch-instructions ", "faults", ""}, []string{"cycles", "branches", "page-faults"}},
		{"events of a PMU and of the kernel's tracepoints", []string{"msr/tsc/", "sched:sched_switch"}, []string{"msr/tsc/", "sched:sched_switch"}},
	} {
		events, err := perf.Select(tc.chosen)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if diff := cmp.Diff(tc.want, namesOf(events)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
		for _, e := range events {
			if name, ok := api.EventOf(e.Column); !ok || name != e.Name || e.Help == "" {
				t.Errorf("%s: %+v", tc.name, e)
			}
		}
	}
}

func TestUnknownEventsAreOneErrorThatListsTheKnownOnes(t *testing.T) {
	t.Parallel()
	for _, chosen := range [][]string{
		{"cycels"}, {"basic", "nonsense", "LLC-load-mises"}, {"../x/"}, {"cpu/../"}, {"cpu/event=0x3c/"}, {"a:b:c"}, {"cpu/x"},
	} {
		_, err := perf.Select(chosen)
		if !errors.Is(err, perf.ErrUnknown) {
			t.Errorf("%q: %v, want %v", chosen, err, perf.ErrUnknown)
			continue
		}
		for _, want := range []string{`"` + chosen[len(chosen)-1] + `"`, "pipetune", "memory", "cache-misses", "dTLB-load-misses", "PMU/EVENT/", "SYSTEM:TRACEPOINT"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v does not name %s", chosen, err, want)
			}
		}
	}
}

func TestPresetsNameKnownEvents(t *testing.T) {
	t.Parallel()
	for _, p := range perf.Presets() {
		events, err := perf.Select(p.Events)
		if err != nil || p.Help == "" {
			t.Errorf("%s: %v", p.Name, err)
		}
		if diff := cmp.Diff(p.Events, namesOf(events)); diff != "" {
			t.Errorf("%s has an event twice or always (-want +got):\n%s", p.Name, diff)
		}
	}
	// 54 events on PipeTune's command line and 4 more in its figure, 7 of them twice.
	if events, err := perf.Select([]string{"pipetune"}); err != nil || len(events) != 58-7 {
		t.Errorf("%d events of PipeTune, want 51: %v", len(events), err)
	}
}

func TestTheCatalogueNamesEachEventAndMetricOnce(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	attrs := map[perf.Attr]string{}
	for _, e := range perf.Catalogue() {
		for _, key := range []string{"event " + e.Name, "column " + e.Column, "metric " + e.Metric} {
			if seen[key] && key != "metric " {
				t.Errorf("%s twice", key)
			}
			seen[key] = true
		}
		a := perf.Attrs()[e.Name]
		if other, ok := attrs[a]; ok {
			t.Errorf("%s and %s are one", e.Name, other)
		}
		attrs[a] = e.Name
	}
}

func TestTermsOfAPMUGoWhereItsFormatsSay(t *testing.T) {
	t.Parallel()
	formats := map[string]string{"event": "config:0-7,32-35", "umask": "config:8-15", "edge": "config:18", "ldlat": "config1:0-15", "odd": "config3:0-7", "wide": "config:0-99", "bad": "config"}
	format := func(term string) (string, error) {
		if f, ok := formats[term]; ok {
			return f, nil
		}
		return "", os.ErrNotExist
	}
	for text, want := range map[string]perf.Attr{
		"event=0xcd,umask=0x1,ldlat=3": {Config: 0x1cd, Config1: 3},
		"event=0x5a3":                  {Config: 0x5_0000_00a3},
		"event=0x3c,edge":              {Config: 0x4003c},
		"config=0x7,config2=9":         {Config: 7, Config2: 9},
	} {
		got, err := perf.ParseTerms(text, format)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "event=", "event=x", "umask=0x100", "edge=2", "odd=1", "wide=1", "bad=1", "nosuch=1", "a b", "event=1,,"} {
		if got, err := perf.ParseTerms(text, format); !errors.Is(err, perf.ErrTerms) {
			t.Errorf("%q: %+v, %v; want %v", text, got, err, perf.ErrTerms)
		}
	}
}

func FuzzParseTerms(f *testing.F) {
	f.Add("event=0xcd,umask=0x1,ldlat=3", "config:0-7,32-35")
	f.Add("edge", "config1:18")
	f.Fuzz(func(t *testing.T, text, format string) {
		_, err := perf.ParseTerms(text, func(string) (string, error) { return format, nil })
		if err != nil && !errors.Is(err, perf.ErrTerms) {
			t.Errorf("%v is not %v", err, perf.ErrTerms)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(make([]byte, 32))
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, buf []byte) {
		var c perf.Counts
		if err := perf.Decode(buf, &c); err == nil && (len(c.Values) == 0 || 24+8*len(c.Values) > len(buf)) {
			t.Errorf("%d values of %d bytes", len(c.Values), len(buf))
		}
	})
}

// The kernel lists tracepoints as a PMU too, which names none.
func TestAnEventThatAPMUDoesNotNameIsUnsupported(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"nothing/x/", "tracepoint/x/", "nothing:x"} {
		sources := perf.New(hostfs.Root{}, perf.Kernel{}, chosen(t, name)...).Probe(t.Context())
		if last := sources[len(sources)-1]; last.Name != "perf/"+name || last.Support == api.Supported {
			t.Errorf("%s: %+v", name, last)
		}
	}
}

// Real hosts have the msr PMU, virtual ones too: it is opened without bits that exclude
// anything, which it would refuse.
func TestAnEventOfAPMUIsCountedInAGroupOfItsOwn(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir := leaf(t)
	c := perf.New(hostfs.Root{}, perf.Kernel{}, chosen(t, "msr/tsc/", "page-faults")...)
	sources := c.Probe(t.Context())
	i := slices.IndexFunc(sources, func(s api.Source) bool { return s.Name == "perf/msr/tsc/" })
	if sources[i].Support != api.Supported {
		t.Skipf("%+v", sources[i])
	}
	if sources[i].Group != "msr-1" {
		t.Errorf("group %q, want msr-1", sources[i].Group)
	}
	if diff := cmp.Diff([]string{"page-faults", "msr/tsc/"}, c.Events()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	r := rising{reader: opened(t, c, targetOf(dir))}
	p := begin(t, "0 2 2000 30 1")
	p.join(t, dir)
	p.finish(t, func() { r.read(t) })
	r.read(t)
	clock, ticks := r.last[api.ColTaskClock], r.last[api.PerfEvent("msr/tsc/")]
	if hertz := ticks / clock; hertz < 1e8 || hertz > 1e11 {
		t.Errorf("%v ticks in %v s", ticks, clock)
	}
	if counted, absent := r.reader.(interface {
		Events() ([]string, []api.Source)
	}).Events(); len(counted) != 2 || len(absent) != 0 {
		t.Errorf("counts %v, lacks %v", counted, absent)
	}
}

// Each is opened so that a program which the exporter starts does not have it.
func TestDescriptorsAreClosedOnExecAndReleased(t *testing.T) {
	dir := leaf(t)
	count := func() int {
		n := 0
		links, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links {
			target, err := os.Readlink(link)
			if err != nil || !strings.Contains(target, "perf_event") {
				continue
			}
			n++
			info, err := os.ReadFile(strings.Replace(link, "/fd/", "/fdinfo/", 1))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(info), "flags:\t02") { // O_CLOEXEC is 02000000
				t.Errorf("%s stays open on exec:\n%s", target, info)
			}
		}
		return n
	}
	cpus, err := hostfs.Root{}.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	c := perf.New(hostfs.Root{}, perf.Kernel{})
	c.Probe(t.Context())
	before := count()
	r, err := c.Open(t.Context(), targetOf(dir))
	if err != nil {
		t.Fatal(err)
	}
	if got := count() - before; got != 5*len(cpus) {
		t.Errorf("%d descriptors, want five on each of %d CPUs", got, len(cpus))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := count(); got != before {
		t.Errorf("%d descriptors are left of the %d", got-before, 5*len(cpus))
	}
}
